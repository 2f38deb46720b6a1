//! The first record of a file.

use quipu_base::Role;
use serde::Serialize;

use crate::Form;

/// Schema of QUIC's events that is followed; drafts carry their number.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-quic-qlog-quic-events-13>
pub const QUIC_SCHEMA: &str = "urn:ietf:params:qlog:events:quic-13";

/// Our extension of QUIC's events: path identifiers and the frames of RFC 10069. The URI is a name,
/// not an address; its domain is one that nobody can own.
pub const MULTIPATH_SCHEMA: &str = "https://quipu.invalid/112026/quic#multipath-2";

/// Our events of paths and scheduling.
pub const QUIPU_SCHEMA: &str = "https://quipu.invalid/112026/quipu-2";

/// Fields are in the order in which they are written: a reader recognises a file by its first
/// bytes.
#[derive(Serialize)]
#[serde(untagged)]
enum Header<'a> {
    Current {
        file_schema: &'static str,
        serialization_format: &'static str,
        title: &'a str,
        trace: Trace<'a>,
    },
    Version03 {
        qlog_version: &'static str,
        qlog_format: &'static str,
        title: &'a str,
        trace: OldTrace<'a>,
    },
}

#[derive(Serialize)]
struct Trace<'a> {
    title: &'a str,
    common_fields: CommonFields<'a>,
    vantage_point: VantagePoint,
    event_schemas: [&'static str; 3],
}

#[derive(Serialize)]
struct CommonFields<'a> {
    group_id: &'a str,
    time_format: &'static str,
    reference_time: ReferenceTime,
}

/// Times count from the start of the run, on a clock of its own.
#[derive(Serialize)]
struct ReferenceTime {
    clock_type: &'static str,
    epoch: &'static str,
}

#[derive(Serialize)]
struct OldTrace<'a> {
    title: &'a str,
    common_fields: OldCommonFields<'a>,
    vantage_point: VantagePoint,
}

#[derive(Serialize)]
struct OldCommonFields<'a> {
    group_id: &'a str,
    protocol_type: [&'static str; 1],
    time_format: &'static str,
    reference_time: f64,
}

#[derive(Serialize)]
struct VantagePoint {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// The vantage point's name in qlog.
pub(crate) fn vantage(role: Role) -> &'static str {
    if role.is_client() { "client" } else { "server" }
}

/// Writes the record of a file of that form. `trace` names its trace, `group` its connection.
pub(crate) fn write(
    out: &mut Vec<u8>,
    form: Form,
    title: &str,
    trace: &str,
    group: &str,
    role: Role,
) {
    let vantage_point = VantagePoint { name: "quipu", kind: vantage(role) };
    let header = match form {
        Form::Current => Header::Current {
            file_schema: "urn:ietf:params:qlog:file:sequential",
            serialization_format: "application/qlog+json-seq",
            title,
            trace: Trace {
                title: trace,
                common_fields: CommonFields {
                    group_id: group,
                    time_format: "relative_to_epoch",
                    reference_time: ReferenceTime { clock_type: "monotonic", epoch: "unknown" },
                },
                vantage_point,
                event_schemas: [QUIC_SCHEMA, MULTIPATH_SCHEMA, QUIPU_SCHEMA],
            },
        },
        Form::Version03 => Header::Version03 {
            qlog_version: "0.3",
            qlog_format: "JSON-SEQ",
            title,
            trace: OldTrace {
                title: trace,
                common_fields: OldCommonFields {
                    group_id: group,
                    protocol_type: ["QUIC"],
                    time_format: "relative",
                    reference_time: 0.0,
                },
                vantage_point,
            },
        },
    };
    out.push(crate::file::SEPARATOR);
    // A buffer takes all that is written to it.
    let _ = serde_json::to_writer(&mut *out, &header);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_recognised_by_its_first_bytes() {
        let mut out = Vec::new();
        write(&mut out, Form::Current, "a \"title\"", "trace", "00ff", Role::Server);
        let start = br#"{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq","title":"a \"title\"","#;
        assert_eq!((out[0], &out[1..=start.len()]), (0x1e, &start[..]));
        let value: serde_json::Value = serde_json::from_slice(&out[1..]).unwrap();
        assert_eq!(value["trace"]["common_fields"]["group_id"], "00ff");
        assert_eq!(value["trace"]["vantage_point"]["type"], "server");

        out.clear();
        write(&mut out, Form::Version03, "t", "trace", "00ff", Role::Client);
        let value: serde_json::Value = serde_json::from_slice(&out[1..]).unwrap();
        assert_eq!(
            (&value["qlog_version"], &value["qlog_format"]),
            (&"0.3".into(), &"JSON-SEQ".into())
        );
    }
}
