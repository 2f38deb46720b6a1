//! `quipu compare --live`, and what `quipu serve --experiments` answers.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::server::{Server, assert_failed, quipu, text};

const PAGE: &str = "dojo-demo";
const VIAS: [&str; 4] = ["--via", "127.0.0.1", "--via", "127.0.0.2"];

fn replaying(more: &[&str]) -> Server {
    let mut command = quipu();
    command.args(["serve", "--har", PAGE, "--listen", "127.0.0.1:0"]).args(more);
    Server::run(command, |line| line.starts_with("pin "))
}

fn pin(server: &Server) -> &str {
    let pin = server.lines.iter().find_map(|line| line.strip_prefix("pin "));
    pin.expect("it is printed")
}

fn compare(server: &Server) -> Command {
    let mut command = quipu();
    let url = format!("https://127.0.0.1:{}", server.port);
    command.args(["compare", "--live", &url, "--pin", pin(server)]);
    command
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

fn read(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join(file)).expect(file)
}

#[test]
fn policies_and_single_uplinks_are_compared_over_real_paths() {
    let mut server = replaying(&["--experiments"]);
    let results = TempDir::new().expect("a folder");
    let folder = results.path().join("live");
    let mut command = compare(&server);
    command.args(VIAS).args(["--page", PAGE, "--stream", "rr,dwrr", "--runs", "2", "--out"]);
    let compared = output(command.arg(&folder));
    assert!(compared.status.success(), "{}", text(&compared.stderr));
    let printed = text(&compared.stdout);
    let head = printed.lines().find(|line| line.contains(" · ")).expect("a head");
    assert!(head.starts_with("live from https://127.0.0.1:"), "{printed}");
    assert!(
        head.contains(" (127.0.0.1, 127.0.0.2) · chrome") && head.contains("rustls TLS"),
        "{printed}"
    );
    assert!(head.ends_with(" · 2 runs, seed 1 · live"), "{printed}");
    let rows = ["rr + minrtt ", "dwrr + minrtt ", "127.0.0.1 alone ", "127.0.0.2 alone "];
    for row in rows {
        assert!(printed.lines().any(|line| line.starts_with(row)), "{row}: {printed}");
    }

    let summary: serde_json::Value =
        serde_json::from_str(&read(&folder, "summary.json")).expect("JSON");
    assert_eq!(
        (&summary["world"], &summary["complete"], &summary["runs_finished"]),
        (&"live".into(), &true.into(), &8.into())
    );
    let shares = |row: usize| {
        let shares = summary["rows"][row]["shares"].as_array().expect("shares");
        shares.iter().map(|it| it["per_mille"].as_u64().expect("a share")).collect::<Vec<_>>()
    };
    assert_eq!(shares(0).iter().sum::<u64>(), 1_000, "of what arrived");
    assert_eq!((shares(2), shares(3)), (vec![1_000, 0], vec![0, 1_000]), "each uplink alone");
    assert!(summary["rows"][0]["metrics"][0]["bound"].is_null(), "nobody knows it");
    let scenario = read(&folder, "scenario.toml");
    assert!(scenario.contains("server = \"https://127.0.0.1:"), "{scenario}");
    assert!(
        scenario.contains("uplink = \"127.0.0.2\"") && !scenario.contains("rate ="),
        "{scenario}"
    );
    assert_eq!(read(&folder, "runs.csv").lines().count(), 1 + 8);
    let networks = read(&folder, "networks.csv");
    assert!(networks.lines().skip(1).all(|row| row.ends_with(",,,,,,,")), "{networks}");

    let report = output(quipu().arg("report").arg(&folder));
    assert!(report.status.success(), "{}", text(&report.stderr));
    let noted = "note: No load is shown in full: the loads were made over real uplinks.";
    assert_eq!(text(&report.stderr).trim(), noted);
    assert!(read(&folder, "report.html").contains("World: live."));
    let again = output(quipu().arg("run").arg(folder.join("scenario.toml")));
    assert_eq!(again.status.code(), Some(1));
    let told = text(&again.stdout);
    assert!(told.contains("networks.server is https://127.0.0.1:"), "{told}");
    assert_eq!(server.stop().0, Some(0));
}

#[test]
fn finished_loads_are_printed_and_written_after_ctrl_c() {
    let results = TempDir::new().expect("a folder");
    let log = results.path().join("access.json");
    let server = replaying(&["--experiments", "--access-log", log.to_str().expect("UTF-8")]);
    let folder = results.path().join("live");
    let mut command = compare(&server);
    command.args(["--page", PAGE, "--stream", "rr,dwrr", "--runs", "1000", "--out"]);
    let child = command.arg(&folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    // Two questions at first, and one before each load: when the third load begins, two have ended.
    let questions = || read(results.path(), "access.json").matches("/policies").count();
    for _ in 0..3_000 {
        if questions() >= 5 {
            break;
        }
        Command::new("sleep").arg("0.02").status().expect("there is a sleep");
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("there is a kill").success());
    let compared = child.wait_with_output().expect("it ends");
    let (printed, told) = (text(&compared.stdout), text(&compared.stderr));
    assert_eq!((compared.status.code(), told.as_str()), (Some(130), "error: interrupted\n"));
    assert!(printed.contains("Incomplete: "), "{printed}");
    let summary: serde_json::Value =
        serde_json::from_str(&read(&folder, "summary.json")).expect("JSON");
    let finished = summary["runs_finished"].as_u64().expect("a number");
    assert!((2..2_000).contains(&finished) && summary["complete"] == false, "{summary}");
    assert_eq!(read(&folder, "runs.csv").lines().count() as u64, 1 + finished);
}

#[test]
fn what_is_wrong_is_told_before_any_load() {
    let server = replaying(&[]);
    let page = ["--page", PAGE, "--runs", "1"];
    let without = output(compare(&server).args(page));
    assert_failed(&without, 1, "does not let clients choose policies");
    assert!(text(&without.stderr).contains("--experiments"));
    let refused = |more: &[&str]| output(compare(&server).args(more));
    assert_failed(&refused(&[]), 2, "--page: expected the page that the server has");
    let policy = ["--page", PAGE, "--path", "minrt"];
    assert_failed(&refused(&policy), 2, "minrtt");
    assert_failed(&refused(&["--page", PAGE, "--network", "wifi+lte"]), 2, "cannot be used with");
    assert_failed(&refused(&["--page", PAGE, "--http", "h2"]), 2, "expected h3");
    let window = ["--page", PAGE, "--initial-window=32"];
    assert_failed(&refused(&window), 2, "transport: expected no field but start set");
    let nobody = ["compare", "--live", "https://127.0.0.1:1", "--pin", pin(&server)];
    assert_failed(&output(quipu().args(nobody).args(page)), 1, "listens");
    let via = output(quipu().args(["compare", "--via", "lo"]));
    assert_failed(&via, 2, "--live");
}

#[test]
fn another_page_than_the_servers_is_no_load() {
    let server = replaying(&["--experiments"]);
    let compared =
        output(compare(&server).args(["--page", "rust-vec", "--stream", "rr", "--runs", "1"]));
    let (printed, told) = (text(&compared.stdout), text(&compared.stderr));
    assert_eq!(compared.status.code(), Some(1), "{told}");
    assert!(printed.contains("status 404; is another page served?"), "{printed}");
    assert!(told.starts_with("error: 1 of 1 runs failed: "), "{told}");
}

#[test]
fn a_server_tells_where_it_has_policies_or_why_not() {
    let server = replaying(&["--experiments"]);
    let folder = TempDir::new().expect("a folder");
    let url = format!("https://127.0.0.1:{}/.well-known/quipu/policies", server.port);
    let ask = |question: &str| {
        let file = folder.path().join("question.json");
        std::fs::write(&file, question).expect("written");
        let mut command = quipu();
        command.args(["fetch", &url, "--pin", pin(&server), "--request", "POST", "--upload"]);
        let answer = output(command.arg(&file));
        assert!(answer.status.success(), "{}", text(&answer.stderr));
        text(&answer.stdout)
    };
    let answer = ask("{\"path\": \"ecf\", \"stream\": \"wrr\"}");
    let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
    assert!(answer["port"].as_u64().is_some_and(|port| port != u64::from(server.port)), "{answer}");
    assert!(answer["policies"]["path"].as_str().is_some_and(|name| name.starts_with("ecf:")));
    assert!(answer["policies"]["congestion"].is_string(), "what is not given has its default");
    let same: serde_json::Value =
        serde_json::from_str(&ask("{\"stream\": \"wrr\", \"path\": \"ecf\"}")).expect("JSON");
    assert_eq!(same, answer);
    assert!(ask("{\"path\": \"minrt\"}").contains("minrtt"));
    assert!(ask("{\"paht\": \"minrtt\"}").contains("there is no layer \"paht\""));
    assert!(ask("{\"path\": \"minrtt congestion=cubic\"}").contains("no path policy"));
}

#[test]
fn ports_of_experiments_are_those_that_were_given() {
    let site = TempDir::new().expect("a folder");
    for (more, part) in [
        (&["--experiments=9-1"][..], "expected FIRST-LAST"),
        (&["--experiments", "--listen", "127.0.0.1:4455", "--listen", "[::1]:4455"], "one address"),
    ] {
        let refused = output(quipu().arg("serve").arg(site.path()).args(more));
        assert_failed(&refused, 2, part);
    }
}
