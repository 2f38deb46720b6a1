//! qlog files of a run, held against their schemas and the engine's counters.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use jsonschema::Validator;
use quipu_base::PathId;
use quipu_qlog::{Form, QlogFolder};
use quipu_quic::PathCounters;
use serde_json::Value;

use crate::run::{Ran, run};

/// The records of one file, and its bytes.
struct Read {
    bytes: Vec<u8>,
    header: Value,
    events: Vec<Value>,
}

impl Read {
    fn count(&self, name: &str, matching: impl Fn(&Value) -> bool) -> u64 {
        let found = self.events.iter().filter(|event| event["name"] == name && matching(event));
        found.count() as u64
    }

    fn data(&self, name: &str) -> Vec<&Value> {
        let found = self.events.iter().filter(|event| event["name"] == name);
        found.map(|event| &event["data"]).collect()
    }
}

/// Files by what follows the connection's name in theirs, and what the engines counted.
fn logged(form: Form) -> (BTreeMap<String, Read>, Ran) {
    let folder = tempfile::tempdir().unwrap();
    let logs = QlogFolder::create(folder.path(), form, "two paths, one dies").unwrap();
    let ran = run(Some([logs.recorders(), logs.recorders()]));
    let written = logs.finish().unwrap();
    let there = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(written.len(), there, "nothing else is left in the folder");
    let mut groups: Vec<String> = Vec::new();
    let files = written.iter().map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let (group, rest) = name.split_once('_').unwrap();
        groups.push(group.to_owned());
        let read = read(path);
        let common = &read.header["trace"]["common_fields"];
        assert_eq!(common["group_id"], group);
        (rest.to_owned(), read)
    });
    let files: BTreeMap<_, _> = files.collect();
    groups.dedup();
    assert_eq!(groups.len(), 1, "both ends have one name for the connection");
    (files, ran)
}

/// Splits a text sequence into its texts. <https://www.rfc-editor.org/rfc/rfc7464#section-2>
fn read(path: &Path) -> Read {
    let bytes = fs::read(path).unwrap();
    assert_eq!((bytes.first(), bytes.last()), (Some(&0x1e), Some(&b'\n')));
    let records = bytes[1..].split(|byte| *byte == 0x1e);
    let mut values = records.map(|record| {
        assert_eq!(record.last(), Some(&b'\n'));
        serde_json::from_slice::<Value>(record).unwrap()
    });
    let header = values.next().unwrap();
    let events = values.collect();
    Read { bytes, header, events }
}

fn schema(text: &str) -> Validator {
    jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
}

fn current_schema() -> Validator {
    schema(include_str!("../../../quipu-qlog/schemas/current.schema.json"))
}

fn old_schema() -> Validator {
    schema(include_str!("../../../quipu-qlog/schemas/version-0.3.schema.json"))
}

fn check(schema: &Validator, read: &Read) {
    for record in std::iter::once(&read.header).chain(&read.events) {
        let fault = schema.validate(record).err().map(|error| error.to_string());
        assert_eq!(fault, None, "in {record}");
    }
}

/// Times never go back.
fn check_order(read: &Read) {
    let times: Vec<f64> = read.events.iter().map(|event| event["time"].as_f64().unwrap()).collect();
    assert!(times.is_sorted());
}

#[test]
fn the_current_form_fits_its_schemas() {
    let schema = current_schema();
    let (files, _) = logged(Form::Current);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["client.sqlog", "server.sqlog"]);
    for read in files.values() {
        check(&schema, read);
        check_order(read);
    }
    // What the run is about is there.
    let server = &files["server.sqlog"];
    let states: Vec<_> = server.data("quipu:path_updated");
    let states: Vec<_> = states.iter().map(|data| (&data["path_id"], &data["new"])).collect();
    for expected in ["usable", "suspect", "abandoned", "dropped"] {
        assert!(states.iter().any(|(path, new)| **path == 0 && **new == expected), "{expected}");
    }
    assert!(server.count("quic:packet_sent", |event| event["tuple"] == "1") > 0);
    assert_eq!(
        server.count("quic:connection_closed", |event| event["data"]["initiator"] == "remote"),
        1
    );
    assert!(server.count("quipu:scheduled", |event| event["data"]["outcome"] == "send") > 0);
    assert!(server.count("quipu:scheduled", |event| !event["data"]["candidates"].is_null()) > 0);
    assert!(
        server.count("quic:timer_updated", |event| event["data"]["event_type"] == "expired") > 0
    );
    assert!(server.count("quic:congestion_state_updated", |_| true) > 0);
    let has_frame = |event: &Value, name: &str| {
        event["data"]["frames"].as_array().unwrap().iter().any(|f| f["frame_type"] == name)
    };
    for frame in ["path_ack", "path_new_connection_id", "path_abandon", "max_path_id"] {
        let found = server.count("quic:packet_received", |event| has_frame(event, frame));
        assert!(found > 0, "{frame}");
    }
}

#[test]
fn the_form_of_version_03_fits_its_schema() {
    let schema = old_schema();
    let (files, _) = logged(Form::Version03);
    let names = ["client_path0", "client_path1", "server_path0", "server_path1"];
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        names.map(|name| format!("{name}.sqlog")).each_ref()
    );
    for read in files.values() {
        check(&schema, read);
        check_order(read);
    }
    let path = &files["server_path1.sqlog"];
    let numbers: Vec<u64> = path
        .data("transport:packet_sent")
        .iter()
        .map(|data| data["header"]["packet_number"].as_u64().unwrap())
        .collect();
    // Numbers grow, and few are skipped.
    assert!(numbers.len() > 100 && numbers.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(numbers.last().unwrap() - (numbers.len() as u64) < 10, "{numbers:?}");
    let acks = path.data("transport:packet_received");
    let is_ack = |data: &&&Value| {
        data["frames"].as_array().unwrap().iter().any(|frame| frame["frame_type"] == "ack")
    };
    assert!(acks.iter().filter(is_ack).count() > 50, "acknowledgements are known as such");
}

#[test]
fn a_schema_refuses_what_it_must() {
    let header: Value = serde_json::json!({ "file_schema": "x", "serialization_format": "y" });
    let event =
        |name: &str, data: Value| serde_json::json!({ "time": 1.5, "name": name, "data": data });
    let header_1rtt =
        serde_json::json!({ "packet_type": "1RTT", "packet_number": 3, "path_id": 1 });
    let sent = |frame: Value| {
        event("quic:packet_sent", serde_json::json!({ "header": header_1rtt, "frames": [frame] }))
    };
    let schema = current_schema();
    assert!(schema.is_valid(&sent(serde_json::json!({ "frame_type": "ping" }))));
    for wrong in [
        header,
        event("quic:packet_send", serde_json::json!({})),
        event("quic:packet_sent", serde_json::json!({})),
        event("quic:packet_lost", serde_json::json!({ "trigger": "chance" })),
        event("quipu:scheduled", serde_json::json!({ "ask": "packet" })),
        sent(serde_json::json!({ "frame_type": "pong" })),
        sent(serde_json::json!({ "frame_type": "ping", "other": 1 })),
        sent(serde_json::json!({ "frame_type": "max_data", "maximum": -1 })),
        sent(serde_json::json!({ "frame_type": "path_ack", "acked_ranges": [[1, 2]] })),
    ] {
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
    let schema = old_schema();
    let packet = |frame: Value| {
        let header = serde_json::json!({ "packet_type": "1RTT", "packet_number": 3 });
        event("transport:packet_sent", serde_json::json!({ "header": header, "frames": [frame] }))
    };
    assert!(schema.is_valid(&packet(serde_json::json!({ "frame_type": "ping" }))));
    assert!(schema.is_valid(&packet(serde_json::json!({ "frame_type": "path_ack" }))));
    for wrong in [
        event("quic:packet_sent", serde_json::json!({})),
        packet(serde_json::json!({ "frame_type": "padding" })),
        packet(serde_json::json!({ "frame_type": "ping", "other": 1 })),
    ] {
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn events_add_up_to_the_counters() {
    let (files, ran) = logged(Form::Current);
    let (old_files, _) = logged(Form::Version03);
    for (end, counters) in ["client", "server"].into_iter().zip(&ran.counters) {
        let file = &files[&format!("{end}.sqlog")];
        for (PathId(path), counters) in counters {
            let tuple = |event: &Value| match event["tuple"].as_str() {
                None => *path == 0,
                Some(tuple) => tuple == path.to_string(),
            };
            let count = |name: &str| file.count(name, tuple);
            let old = &old_files[&format!("{end}_path{path}.sqlog")];
            compare(&count, counters, ["quic:packet_sent", "quic:packet_lost"]);
            let old_count = |name: &str| old.count(name, |_| true);
            compare(&old_count, counters, ["transport:packet_sent", "recovery:packet_lost"]);
            let data_bytes: u64 = file
                .events
                .iter()
                .filter(|event| event["name"] == "quic:packet_sent" && tuple(event))
                .map(|event| event["data"]["raw"]["length"].as_u64().unwrap())
                .sum();
            assert_eq!(data_bytes, counters.bytes_sent, "{end}, path {path}");
        }
    }
}

fn compare(count: &dyn Fn(&str) -> u64, counters: &PathCounters, [sent, lost]: [&str; 2]) {
    assert_eq!(count(sent), counters.packets_sent);
    assert_eq!(count(lost), counters.packets_lost);
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    for form in [Form::Current, Form::Version03] {
        let (first, second) = (logged(form).0, logged(form).0);
        assert!(first.keys().eq(second.keys()));
        assert!(first.values().map(|read| &read.bytes).eq(second.values().map(|read| &read.bytes)));
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_told_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    let logs = QlogFolder::create(&inner, Form::Current, "").unwrap();
    fs::remove_dir(&inner).unwrap();
    fs::write(&inner, "in the way").unwrap();
    let ran = run(Some([logs.recorders(), logs.recorders()]));
    assert_eq!(ran.trace, run(None).trace);
    let error = logs.finish().unwrap_err().to_string();
    assert!(error.starts_with("cannot write ") && error.contains(".sqlog: "), "{error}");
}
