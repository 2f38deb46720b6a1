use quipu_base::{Bytes, Offset, PacketNumber, StreamId};
use quipu_quic::wire::frame::{AckRange, EcnCounts, write_ack, write_return_paths};
use quipu_quic::wire::{ConnectionId, FrameType, ResetToken, Writer};
use serde_json::{Value, json};

use super::*;

fn context(form: Form) -> Context {
    Context { form, path: PathId(1), ack_delay_exponent: 3 }
}

/// The list `frames` of a payload.
fn told(payload: &[u8], form: Form) -> Value {
    let mut json = Json::default();
    json.raw("{");
    write_all(&mut json, Frames::new(payload), context(form));
    json.end();
    let mut value: Value = serde_json::from_slice(&json.out).unwrap();
    value["frames"].take()
}

fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut buffer = [0; 200];
    let mut writer = Writer::new(&mut buffer);
    write(&mut writer);
    let length = writer.position();
    buffer[..length].to_vec()
}

fn one(frame: &Frame<'_>, form: Form) -> Value {
    let payload = written(|writer| frame.write(writer).unwrap());
    told(&payload, form)[0].clone()
}

#[test]
fn an_acknowledgement_names_its_path_unless_the_file_is_the_paths() {
    let ack = |path| {
        written(|writer| {
            let ranges = [(9, 12), (3, 3)]
                .map(|(first, last)| AckRange::new(PacketNumber(first), PacketNumber(last)));
            let ecn = Some(EcnCounts { ect0: 5, ect1: 0, ce: 1 });
            write_ack(writer, path, 100, ranges, ecn).unwrap();
        })
    };
    let fields = |mut head: Value| {
        let rest = json!({
            "ack_delay": 0.8, "acked_ranges": [[9, 12], [3]], "ect1": 0, "ect0": 5, "ce": 1
        });
        head.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!([head])
    };
    let path_ack = |id: u64| fields(json!({ "frame_type": "path_ack", "path_id": id }));
    let plain = fields(json!({ "frame_type": "ack" }));
    assert_eq!(told(&ack(None), Form::Current), plain);
    assert_eq!(told(&ack(Some(PathId(1))), Form::Current), path_ack(1));
    assert_eq!(told(&ack(Some(PathId(1))), Form::Version03), plain);
    assert_eq!(told(&ack(Some(PathId(2))), Form::Version03), path_ack(2));
}

#[test]
fn data_are_told_by_their_length() {
    let stream =
        Frame::Stream(Stream { stream: StreamId(4), offset: Offset(7), fin: true, data: b"abc" });
    let head = json!({ "frame_type": "stream", "stream_id": 4, "offset": 7, "fin": true });
    let with = |key: &str, value: Value| {
        let mut object = head.clone();
        object[key] = value;
        object
    };
    assert_eq!(one(&stream, Form::Current), with("raw", json!({ "payload_length": 3 })));
    assert_eq!(one(&stream, Form::Version03), with("length", json!(3)));
}

#[test]
fn datagrams_are_told_by_their_length() {
    let datagram = Frame::Datagram { data: b"abc", has_length: true };
    let raw = json!({ "payload_length": 3 });
    let expected = json!({ "frame_type": "datagram", "raw": raw });
    assert_eq!(one(&datagram, Form::Current), expected);
    let expected = json!({ "frame_type": "unknown", "frame_type_value": 0x30, "raw": raw });
    assert_eq!(one(&datagram, Form::Version03), expected);
}

#[test]
fn frames_without_a_name_in_qlog_are_told_by_their_number() {
    let frame = Frame::ImmediateAck;
    assert_eq!(
        one(&frame, Form::Current),
        json!({ "frame_type": "unknown", "frame_type_bytes": 0x1f })
    );
    let expected = json!({ "frame_type": "unknown", "frame_type_value": 0x1f });
    assert_eq!(one(&frame, Form::Version03), expected);
}

#[test]
fn errors_have_the_names_of_qlog() {
    let close = |code| Frame::ConnectionClose {
        error_code: code,
        frame_type: FrameType::PING,
        reason: b"why",
    };
    let told = |code| one(&close(code), Form::Current);
    assert_eq!(told(0x0a)["error"], "protocol_violation");
    assert_eq!(told(0x12e)["error"], "crypto_error_0x12e");
    assert_eq!(
        (&told(0x3e76)["error"], &told(0x3e76)["error_code"]),
        (&json!("unknown"), &json!(0x3e76))
    );
    assert_eq!(told(0)["trigger_frame_type"], 1);
    assert_eq!(one(&close(0x3e76), Form::Version03)["error_code"], 0x3e76);
    let reset =
        Frame::ResetStream { stream: StreamId(8), error_code: 1 << 40, final_size: Offset(9) };
    assert_eq!(one(&reset, Form::Current)["error_code"], 1u64 << 40);
    assert_eq!(one(&reset, Form::Version03)["error_code"], u32::MAX);
}

#[test]
fn frames_of_multipath_name_their_path() {
    let of = |frame: &Frame<'_>| one(frame, Form::Current);
    let id = NewConnectionId {
        path: Some(PathId(2)),
        sequence: 1,
        retire_prior_to: 0,
        id: ConnectionId::new(&[0xab; 8]).unwrap(),
        reset_token: ResetToken::new([1; 16]),
    };
    let expected = json!({
        "frame_type": "path_new_connection_id", "path_id": 2, "sequence_number": 1,
        "retire_prior_to": 0, "connection_id": "abababababababab"
    });
    assert_eq!(of(&Frame::NewConnectionId(id)), expected);
    let retire = Frame::RetireConnectionId { path: None, sequence: 4 };
    assert_eq!(of(&retire), json!({ "frame_type": "retire_connection_id", "sequence_number": 4 }));
    let abandon = Frame::PathAbandon { path: PathId(3), error_code: 0x3e };
    assert_eq!(
        of(&abandon),
        json!({ "frame_type": "path_abandon", "path_id": 3, "error_code": 0x3e })
    );
    let advice = written(|writer| {
        write_return_paths(writer, 6, &[(PathId(0), PathId(1))]).unwrap();
    });
    assert_eq!(
        told(&advice, Form::Current)[0],
        json!({
            "frame_type": "ack_return_paths", "sequence_number": 6,
            "pairs": [{ "data_path_id": 0, "return_path_id": 1 }]
        })
    );
}

#[test]
fn a_frame_that_cannot_be_read_ends_the_list() {
    let mut payload = written(|writer| Frame::MaxData { maximum: Bytes(5) }.write(writer).unwrap());
    payload.extend([0x21, 0x00]);
    let told = told(&payload, Form::Current);
    assert_eq!(told.as_array().unwrap().len(), 2);
    assert_eq!(told[1], json!({ "frame_type": "unknown", "frame_type_bytes": 0x21 }));
}
