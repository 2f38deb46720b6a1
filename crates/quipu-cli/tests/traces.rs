//! Recordings of links: files with columns of others, and `quipu trace convert`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn quipu(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(arguments.split(' '))
        .current_dir(folder)
        .output()
        .expect("the program starts")
}

fn error_of(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

const BUS: &str = "\"Timestamp\";\"DL_bitrate\";\"UL_bitrate\"\r\n\
                   2019-12-16T13:40:04Z;8200;1100\r\n2019-12-16T13:40:05Z;16400,5;2900\r\n";

#[test]
fn a_result_holds_the_columns_that_were_named_and_runs_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("bus.csv"), BUS).expect("a file");
    let link = "--link name=bus,trace=bus.csv,delay=20ms";
    let compare = "compare --page sitespeed --runs 1 --stream dwrr";
    let unnamed = error_of(&quipu(folder.path(), &format!("{compare} {link}")));
    let columns = "time=Timestamp,rate=DL_bitrate:kbit/s";
    assert!(unnamed.contains(&format!("--trace-columns \"{columns}\"")), "{unnamed}");

    let named = format!("{compare} {link} --trace-columns {columns},up=UL_bitrate:kbps --out one");
    let output = quipu(folder.path(), &named);
    assert!(output.status.success(), "{output:?}");
    let scenario = fs::read_to_string(folder.path().join("one/scenario.toml")).expect("a file");
    assert!(scenario.contains("time_column = \"Timestamp\""), "{scenario}");
    assert!(scenario.contains("column = \"UL_bitrate:kbit/s\""), "{scenario}");
    assert!(quipu(folder.path(), "run one/scenario.toml --out two").status.success());
    let runs = |name: &str| fs::read(folder.path().join(name).join("runs.csv")).expect("a file");
    assert_eq!(runs("one"), runs("two"));

    let wrong = |columns: &str| {
        error_of(&quipu(folder.path(), &format!("{compare} {link} --trace-columns {columns}")))
    };
    assert!(wrong("tme=Timestamp").contains("--trace-columns: `tme=Timestamp`: expected one of"));
    assert!(wrong("time=Timestamp,rate=DL_bitrate:kbts").contains("`kbts` is no unit of column"));
    let none = format!("{compare} --trace-columns {columns}");
    let none = error_of(&quipu(folder.path(), &none));
    assert!(none.contains("no link follows a CSV file whose columns have no names yet"), "{none}");
}

#[test]
fn run_names_the_columns_of_a_file_that_names_none() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("bus.csv"), BUS).expect("a file");
    let path = r#"{ name = "bus", down = { trace = "bus.csv", delay = "20ms" } }"#;
    let scenario = format!(
        "pages = [\"sitespeed\"]\nruns = 1\n[policies]\nstream = [\"dwrr\"]\n\
         [[networks]]\nname = \"bus\"\npaths = [{path}]\n"
    );
    fs::write(at("bus.toml"), scenario).expect("a file");
    let unnamed = error_of(&quipu(folder.path(), "run bus.toml"));
    let columns = "time=Timestamp,rate=DL_bitrate:kbit/s";
    assert!(unnamed.contains(&format!("--trace-columns \"{columns}\"")), "{unnamed}");

    let run = |columns: &str, out: &str| {
        quipu(folder.path(), &format!("run bus.toml --trace-columns {columns} --out {out}"))
    };
    let output = run(&format!("{columns},up=UL_bitrate:kbit/s"), "one");
    assert!(output.status.success(), "{output:?}");
    let written = fs::read_to_string(at("one/scenario.toml")).expect("a file");
    assert!(written.contains("column = \"UL_bitrate:kbit/s\""), "{written}");
    let wrong = error_of(&run("tme=Timestamp", "two"));
    assert!(wrong.contains("--trace-columns: `tme=Timestamp`: expected one of"), "{wrong}");
    let named = "run one/scenario.toml --out two --trace-columns time=Timestamp";
    let named = error_of(&quipu(folder.path(), named));
    assert!(
        named.contains("no link follows a CSV file whose columns have no names yet"),
        "{named}"
    );
    assert!(!at("two").exists());
}

#[test]
fn recordings_are_converted_and_what_was_done_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("bus.csv"), BUS).expect("a file");
    fs::write(at("log"), "time\n").expect("a file");
    let convert = "trace convert bus.csv --from csv --columns \
                   time=Timestamp,rate=DL_bitrate:kbps,up=UL_bitrate:kbps --out";
    let output = quipu(folder.path(), &format!("{convert} ours.csv"));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(
        text,
        "ours.csv: 2 rows over 2.0 s\nmean of down_mbps: 12.30 Mbit/s\nmean of up_mbps: 2.00 Mbit/s\n"
    );
    let written = fs::read_to_string(at("ours.csv")).expect("a file");
    assert_eq!(written, "time_s,down_mbps,up_mbps\n0,8.2,1.1\n1,16.4005,2.9\n");

    let back =
        quipu(folder.path(), "trace convert ours.csv --from csv --to mahimahi --out ours.down");
    let text = String::from_utf8(back.stdout).expect("UTF-8");
    assert!(text.starts_with("ours.down: 2050 opportunities over 2.0 s\n"), "{text}");

    let exists = error_of(&quipu(folder.path(), &format!("{convert} ours.csv")));
    assert!(exists.contains("ours.csv exists; expected a new file, or --force to replace it"));
    assert!(quipu(folder.path(), &format!("{convert} ours.csv --force")).status.success());
    let wrong = error_of(&quipu(folder.path(), "trace convert log --from lumos --out out.csv"));
    assert!(wrong.contains("log: line 1: no column `chunk_size`"), "{wrong}");
    let near = error_of(&quipu(folder.path(), "trace convert log --from lumoss --out out.csv"));
    assert!(near.contains("did you mean `lumos`?"), "{near}");
    let columns = "trace convert log --from lumos --columns time=t --out out.csv";
    assert!(
        error_of(&quipu(folder.path(), columns)).contains("--columns: only files of --from csv")
    );
    assert!(!at("out.csv").exists());
}
