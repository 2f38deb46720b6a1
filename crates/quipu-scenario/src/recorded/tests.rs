use std::fs;

use quipu_base::{Bytes, Instant, Rate};
use quipu_link::{BuiltinTrace, Capacity};

use super::*;
use crate::{LinkSpec, Network, PathSpec, Scenario, find_network};

fn path(text: &str) -> PathSpec {
    text.parse().unwrap()
}

fn down(path: &PathSpec) -> &LinkSpec {
    &path.own_links().unwrap().down
}

fn up(path: &PathSpec) -> &LinkSpec {
    &path.own_links().unwrap().up
}

fn refused(text: &str) -> String {
    let read = text.parse::<PathSpec>();
    let error = read.and_then(|path| path.validate()).unwrap_err().to_string();
    // The uplink has what is wrong with the downlink, too.
    error.trim_start_matches("down: ").to_owned()
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// What its links can carry up to an instant.
fn carried(link: &LinkSpec, until: Instant) -> Bytes {
    Capacity::of(&link.config(Bytes(28))).between(Instant::ZERO, until)
}

#[test]
fn a_recording_that_ships_gives_each_direction_its_own() {
    let path = path("name=att,trace=us-drive-08-att,delay=30ms");
    path.validate().unwrap();
    assert_eq!(path.summary(), "att trace us-drive-08-att 30ms");
    let builtin = BuiltinTrace::named("us-drive-08-att").unwrap();
    let rates = [builtin.down(), builtin.up()].map(|read| read.unwrap().mean_rate());
    for (link, mean) in [down(&path), up(&path)].into_iter().zip(rates) {
        let config = link.config(Bytes(28));
        assert_eq!(config.trace.as_ref().map(DeliveryTrace::mean_rate), Some(mean));
        // Two products of the mean rate and the round trip.
        assert_eq!(config.queue_bytes().0, mean.bytes_in(Duration::from_millis(60)).0 * 2);
        assert_eq!(link.capacity(at(0), at(60_000)), carried(link, at(60_000)));
    }
    assert!(!path.own_links().unwrap().down.is_random());
    let network = Network::from_links(vec![path]);
    assert_eq!(network.name, "us-drive-08-att");
    assert_eq!(network.round_trip(0).unwrap(), Duration::from_millis(60));
}

#[test]
fn recorded_delays_and_losses_reach_the_link() {
    let path = path(
        "name=x,rate=10mbit,delay=5ms,delay_trace=us-drive-07-tmobile,\
         loss_trace=us-drive-07-tmobile,from=2s,at_end=hold",
    );
    path.validate().unwrap();
    assert_eq!(
        path.summary(),
        "x 10mbit delay us-drive-07-tmobile +5ms loss us-drive-07-tmobile from 2s then hold"
    );
    // Half of 39.6 ms at the median, and 5 ms.
    let usual = Duration::from_micros(24_800);
    assert_eq!(down(&path).usual_delay(), usual);
    let config = down(&path).config(Bytes(28));
    assert_eq!((config.rate, config.delay), (Some(Rate::from_mbit_per_sec(10)), usual));
    let pings = BuiltinTrace::named("us-drive-07-tmobile").unwrap().pings().unwrap();
    let play = Play { from: Duration::from_secs(2), at_end: AtEnd::Hold };
    let (delays, losses) = (pings.delays(play), pings.losses(play));
    for time in (0..40_000).step_by(333) {
        let delay = config.delays.as_ref().unwrap().value_at(at(time));
        assert_eq!(delay, delays.value_at(at(time)) + Duration::from_millis(5));
        let loss = config.losses.as_ref().unwrap().value_at(at(time));
        assert_eq!(loss, losses.value_at(at(time)));
    }
    assert!(down(&path).is_random(), "pings were lost");
}

#[test]
fn what_is_written_reads_back_the_same() {
    let texts = [
        "name=a,trace=us-drive-08-att,delay=30ms,from=random,up.rate=5mbit",
        "name=a,rate=5mbit,delay=30ms,up.trace=us-drive-08-att,up.at_end=stop",
        "name=a,trace=wifi-5ghz-strong,delay_trace=us-drive-01-att,up.delay=3ms,at_end=hold",
        "name=a,rate=5mbit,delay=1ms,loss_trace=us-drive-05-verizon,up.loss=1%",
    ];
    for text in texts {
        let path = path(text);
        path.validate().unwrap();
        let again: PathSpec = toml::from_str(&toml::to_string(&path).unwrap()).unwrap();
        assert_eq!(again, path);
        assert_eq!(again.summary(), path.summary());
    }
    let up = |text: &str| up(&path(text)).summary();
    assert_eq!(up(texts[0]), "5mbit 30ms");
    assert_eq!(up(texts[1]), "trace us-drive-08-att 30ms then stop");
    assert_eq!(up(texts[2]), "trace wifi-5ghz-strong 3ms then hold");
    assert_eq!(up(texts[3]), "5mbit 1ms loss 1%");
}

const STARLINK: &str = "time_s,down_mbps,up_mbps,test\n0,300,30,1\n1,8,0.8,1\n2,0,16,2\n";

#[test]
fn files_count_from_the_folder_of_the_scenario_and_their_content_must_stay() {
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().join("traces");
    fs::create_dir(&traces).unwrap();
    fs::write(traces.join("sat.csv"), STARLINK).unwrap();
    fs::write(traces.join("cell.down"), "0\n1\n3\n3\n").unwrap();
    let text = "networks = [{ name = \"n\", paths = [\n\
                { name = \"sat\", down = { trace = \"traces/sat.csv\", delay = \"20ms\" } },\n\
                { name = \"cell\", down = { trace = \"./traces/cell.down\", delay = \"9ms\" } } ] }]";
    let file = folder.path().join("scenario.toml");
    fs::write(&file, text).unwrap();
    let scenario = Scenario::load(&file).unwrap();
    scenario.validate().unwrap();
    let network = &scenario.networks[0];
    assert_eq!(network.paths[0].summary(), "sat trace sat.csv 20ms");
    // 300 and 8 Mbit/s for a second each; the uplink has its own column.
    assert_eq!(carried(down(&network.paths[0]), at(2_000)), Bytes(38_500_000));
    assert_eq!(carried(up(&network.paths[0]), at(3_000)), Bytes(5_850_000));
    assert_eq!(carried(down(&network.paths[1]), at(3)), Bytes(6_000));

    // What is written beside a result can be read from anywhere, and tells the content.
    let written = scenario.to_toml().unwrap();
    let name = traces.join("sat.csv");
    let hash = with_hash("", Some(content_hash(STARLINK.as_bytes())));
    assert!(written.contains(&format!("{}{hash}", name.display())), "{written}");
    let again = Scenario::from_toml(&written, "elsewhere/scenario.toml").unwrap();
    again.validate().unwrap();
    assert_eq!(again, scenario);
    assert_eq!(again.to_toml().unwrap(), written);
    let field = scenario.with_field("runs", "2").unwrap();
    assert_eq!(field.networks, scenario.networks);

    fs::write(&name, STARLINK.replace("300", "301")).unwrap();
    let changed = Scenario::from_toml(&written, "scenario.toml").unwrap();
    let error = changed.validate().unwrap_err().to_string();
    assert!(error.contains("sat.csv: has the content xxh3:"), "{error}");
    assert!(error.ends_with("for the file has changed since"), "{error}");

    // So do those of a network in a file of its own.
    fs::write(folder.path().join("n.toml"), network_of(text)).unwrap();
    let found = find_network(&folder.path().join("n.toml").display().to_string()).unwrap();
    assert!(found.paths.iter().all(|path| path.validate().is_ok()));
}

/// The network of `text` as a file of its own.
fn network_of(text: &str) -> String {
    text.replace("networks = [{ name = \"n\", ", "name = \"n\"\n").replace(" }]", "")
}

#[test]
fn a_column_can_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.csv");
    fs::write(&file, STARLINK).unwrap();
    let text = format!("name=x,trace={},column=up_mbps,delay=1ms", file.display());
    let path = path(&text);
    path.validate().unwrap();
    assert_eq!(carried(down(&path), at(1_000)), Bytes(3_750_000));
    assert_eq!(path.summary(), "x trace x.csv up_mbps 1ms");
    let error = refused(&text.replace("up_mbps", "mbit"));
    assert!(
        error.contains("line 1: no column `mbit`, expected it among `time_s`, `down_mbps`"),
        "{error}"
    );
}

/// As the Irish 5G data set has them, shortened.
const IRISH: &str = "\u{feff}Timestamp;DL_bitrate;UL_bitrate;PINGAVG\r\n\
                     2019-12-16 13:40:04;8000;1000;50\r\n2019-12-16 13:40:05;16000;3000;40\r\n";

#[test]
fn files_with_other_columns_are_read_once_these_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("drive.csv");
    fs::write(&file, IRISH).unwrap();
    let plain = format!("name=x,trace={0},delay_trace={0}", file.display());
    let unnamed = refused(&plain);
    assert!(
        unnamed.ends_with(
            "name the columns: `time_column = \"Timestamp\", column = \"DL_bitrate:kbit/s\"`, or \
             --trace-columns \"time=Timestamp,rate=DL_bitrate:kbit/s\", with the file's own unit in \
             place of kbit/s (bit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s)"
        ),
        "{unnamed}"
    );

    let own = format!(
        "{plain},time_column=Timestamp,column=DL_bitrate:kbps,rtt_column=PINGAVG:ms,\
         up.column=UL_bitrate:kbps"
    );
    let named: PathSpec = path(&own);
    named.validate().unwrap();
    assert_eq!(carried(down(&named), at(2_000)), Bytes(3_000_000));
    assert_eq!(carried(up(&named), at(2_000)), Bytes(500_000));
    assert_eq!(down(&named).usual_delay(), Duration::from_millis(20));

    // What is written beside a result names them too.
    let again: PathSpec = toml::from_str(&toml::to_string(&named).unwrap()).unwrap();
    assert_eq!(again, named);
    again.validate().unwrap();

    let columns = "time=Timestamp,rate=DL_bitrate:kbps,up=UL_bitrate:kbps,rtt=PINGAVG:ms";
    let lte = path("name=y,trace=us-drive-08-att,delay=9ms");
    let mut network = Network::from_links(vec![path(&plain), lte.clone()]);
    assert!(network.name_columns(&columns.parse().unwrap()));
    assert_eq!(network.paths, [named, lte], "a recording that ships has no columns");
}

#[test]
fn hints_name_what_is_missing_alone() {
    let folder = tempfile::tempdir().unwrap();
    let hint = |header: &str, field: &str| {
        let file = folder.path().join("x.csv");
        fs::write(&file, format!("{header}\n")).unwrap();
        let rate = if field == "trace" { "" } else { "rate=1mbit," };
        let error = refused(&format!("{rate}{field}={},delay=1ms", file.display()));
        error.split_once("--trace-columns ").map(|(_, hint)| hint.to_owned()).unwrap_or_default()
    };
    assert_eq!(hint("ts,mbps", "trace"), "\"time=ts\"");
    assert_eq!(hint("time_s,Throughput (Mbps)", "trace"), "\"rate=Throughput (Mbps)\"");
    assert_eq!(
        hint("Time (s),avg_latency_ms", "delay_trace"),
        "\"time=Time (s),rtt=avg_latency_ms\""
    );
    assert_eq!(hint("t,PacketLoss", "loss_trace"), "\"time=t,loss=PacketLoss\"");
    assert_eq!(hint("a,b", "trace"), "");
}

#[test]
fn two_paths_of_one_name_are_refused_with_both_positions() {
    let text = "networks = [{ name = \"n\", paths = [\n\
                { name = \"a\", down = { rate = \"1mbit\", delay = \"1ms\" } },\n\
                { name = \"b\", down = { rate = \"1mbit\", delay = \"1ms\" } },\n\
                { name = \"a\", down = { rate = \"1mbit\", delay = \"1ms\" } } ] }]";
    let error = Scenario::from_toml(text, "x.toml").unwrap().validate().unwrap_err().to_string();
    assert_eq!(
        error,
        "networks[0].paths[2].name is a, as paths[0]; expected a name of its own for each of \
         paths[0] and paths[2]"
    );
}

#[cfg(unix)]
#[test]
fn a_device_without_an_end_is_no_recording() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("endless.csv");
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    let error = refused(&format!("trace={},delay=1ms", file.display()));
    assert!(error.ends_with("is larger than 64 MiB; expected at most that"), "{error}");
}

#[test]
fn each_run_begins_elsewhere_and_all_links_of_a_drive_together() {
    let network = find_network("us-drive-08").unwrap();
    assert!(network.is_random());
    let starts = |run| {
        let network = network.for_run(Seed::new(run));
        let links = network.paths.iter().flat_map(|path| [down(path).from, up(path).from]);
        links.map(|from| from.unwrap()).collect::<Vec<_>>()
    };
    let of_runs: Vec<Vec<TraceStart>> = (0..200).map(starts).collect();
    for starts in &of_runs {
        assert!(starts.iter().all(|start| *start == starts[0]), "{starts:?}");
    }
    let millis = of_runs.iter().map(|starts| match starts[0] {
        TraceStart::At(time) => time.as_millis(),
        TraceStart::Random => panic!("drawn"),
    });
    let mut millis: Vec<u64> = millis.collect();
    millis.sort_unstable();
    // Evenly over the shortest of the four, 116.4 s.
    assert!(millis[0] < 3_000 && millis[199] > 113_000 && millis[199] < 116_500, "{millis:?}");
    assert!((50_000..66_000).contains(&millis[100]), "{millis:?}");
    millis.dedup();
    assert!(millis.len() > 190);
    assert_eq!(starts(7), of_runs[7], "the same run is the same");
    let fixed = find_network("wifi+lte").unwrap();
    assert!(matches!(fixed.for_run(Seed::new(1)), std::borrow::Cow::Borrowed(_)));
}

#[test]
fn recordings_that_are_none_are_refused_by_field_and_name() {
    assert_eq!(
        refused("trace=us-drive-8-att,delay=1ms"),
        "trace us-drive-8-att: no such file, and no recording of that name; expected one of \
         `quipu traces`; did you mean `us-drive-08-att`?"
    );
    assert!(refused("trace=/nowhere/to/be/found.csv,delay=1ms").contains("found.csv: "));
    assert_eq!(
        refused("delay=1ms"),
        "rate or trace is missing; expected a rate such as 30mbit, or the name or file of a \
         recording of one"
    );
    let beside = "rate is 3mbit; expected none beside a trace";
    assert_eq!(refused("rate=3mbit,trace=us-drive-08-att,delay=1ms"), beside);
    let column = refused("trace=us-drive-08-att,column=x,delay=1ms");
    assert_eq!(column, "trace us-drive-08-att: has no columns; expected no column, found x");
    assert!(refused("rate=3mbit,column=x,delay=1ms").starts_with("column is x; expected none"));
    for (field, value) in [("from", "3s"), ("at_end", "stop")] {
        let error = refused(&format!("rate=3mbit,delay=1ms,{field}={value}"));
        let expected = "none without a trace, a delay_trace or a loss_trace";
        assert_eq!(error, format!("{field} is {value}; expected {expected}"));
    }
    assert_eq!(
        refused("trace=us-drive-01-tmobile,delay=1ms"),
        "trace us-drive-01-tmobile: there are no rates in it"
    );
    let hold = refused("trace=us-drive-08-att,delay=1ms,at_end=hold");
    assert!(hold.contains("at_end is hold, expected loop or stop"), "{hold}");
    let zero = refused("trace=us-drive-01-verizon,delay=1ms,at_end=hold");
    assert!(
        zero.contains("expected more than zero at the end of a recording that holds"),
        "{zero}"
    );
    for at_end in ["stop", "loop"] {
        let late = refused(&format!("trace=us-drive-01-att,delay=1ms,from=200s,at_end={at_end}"));
        let expected = "from is 200s; expected less than 102500ms, the length of the recording";
        assert_eq!(late, expected);
    }
    assert!(refused("trace=us-drive-01-att,delay=1ms,at_end=lop").contains("did you mean `loop`?"));
    assert!(refused("trace=us-drive-01-att,delay=1ms,from=now").starts_with("from is `now`"));
    assert!(refused("rate=1mbit,delay_trace=us-drive-01-att,steps=1s:9ms").contains("none beside"));
    assert!(refused("trace=us-drive-01-att,delay=1ms,steps=1s:9mbit").contains("none beside"));
    let jitter = refused("rate=1mbit,delay_trace=us-drive-01-att,jitter=30ms");
    assert!(jitter.contains("jitter is 30.000 ms, expected not more than the delay"), "{jitter}");
}

#[test]
fn mistakes_in_files_are_told_with_file_line_and_value() {
    let folder = tempfile::tempdir().unwrap();
    let told = |name: &str, content: &[u8]| {
        let file = folder.path().join(name);
        fs::write(&file, content).unwrap();
        let error = refused(&format!("trace={},delay=1ms", file.display()));
        error.strip_prefix(&format!("trace {}: ", file.display())).unwrap().to_owned()
    };
    assert_eq!(
        told("a.down", b"1\n2\nx\n"),
        "line 3: `x`, expected milliseconds, a whole number up to 4294967295"
    );
    assert_eq!(
        told("a.csv", b"time_s,mbps\n0,fast\n"),
        "line 2: `mbps` is `fast`, expected a decimal number, such as 12.5"
    );
    assert_eq!(told("b.csv", b"time_s,mbps\n0,1\n\xff\n"), "line 3: no text; expected UTF-8");
    assert!(told("c.csv", b"").starts_with("line 1: no column `time_s`"));
    let folder = refused(&format!("trace={},delay=1ms", folder.path().display()));
    assert!(folder.contains("cannot be read"), "{folder}");
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.csv");
    fs::File::create(&file).unwrap().set_len(MOST_TRACE_BYTES + 1).unwrap();
    let error = refused(&format!("trace={},delay=1ms", file.display()));
    assert!(error.ends_with("is larger than 64 MiB; expected at most that"), "{error}");
}

#[test]
fn lists_tell_rates_and_lengths() {
    let notes = builtin_traces();
    assert_eq!(notes.len(), BuiltinTrace::all().len());
    let note = notes.iter().find(|note| note.name == "us-drive-08-att").unwrap();
    let mbit = note.rates.unwrap().map(|rate| rate.bits_per_sec() / 100_000);
    assert_eq!((mbit, note.length.as_millis() / 1_000), ([129, 63], 116));
    let note = notes.iter().find(|note| note.name == "us-drive-05-tmobile").unwrap();
    assert!(note.rates.is_none() && note.pings.is_some());
    assert_eq!(note.length.as_millis() / 1_000, 30);
}
