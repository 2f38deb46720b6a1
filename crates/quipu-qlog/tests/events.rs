//! Every kind of event, in both forms, held against the schemas.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;

use quipu_base::{
    Bytes, Duration, Instant, Offset, PacketNumber, PathId, PerMille, Rate, Role, StreamId,
};
use quipu_policy::congestion::Published;
use quipu_policy::{
    Ask, DecidedBy, Decision, Note, PathKey, PathState, PathStatus, PathView, Refusal, Span,
    StreamKey,
};
use quipu_qlog::{Form, QlogFolder};
use quipu_quic::Route;
use quipu_quic::connection::CloseReason;
use quipu_quic::error::{ErrorCode, TransportError};
use quipu_quic::recorder::{
    ConnectionState, DropReason, Event, LossSign, Metrics, Outcome, PacketInfo, PathEvent,
    Scheduled, Started, StreamSide, StreamState, Timer,
};
use quipu_quic::transport_parameters::TransportParameters;
use quipu_quic::wire::{ConnectionId, PacketKind};
use serde_json::Value;

const PATH: PathKey = PathKey { slot: 1, id: PathId(3) };
const STREAM: StreamKey = StreamKey { slot: 0, id: StreamId(4) };

fn cid(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).unwrap()
}

fn started(role: Role, address: &str) -> Started {
    Started {
        role,
        route: Route::new(address.parse().unwrap(), address.parse().unwrap()),
        local_cid: cid(1),
        remote_cid: cid(2),
        original_dcid: cid(0xab),
    }
}

/// The events of a file, checked, by its name.
fn logged(form: Form, events: &[Event<'_>]) -> Vec<(String, Vec<Value>)> {
    let schema = match form {
        Form::Current => include_str!("../schemas/current.schema.json"),
        Form::Version03 => include_str!("../schemas/version-0.3.schema.json"),
    };
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let logs = QlogFolder::create(folder.path(), form, "every event").unwrap();
    let first = started(Role::Server, "10.0.0.1:443");
    let mut recorder = (logs.recorders())(&first).unwrap();
    let mut now = Instant::ZERO;
    for event in std::iter::once(&Event::Started(first)).chain(events) {
        recorder.record(now, event);
        now += Duration::from_nanos(1_500_001);
    }
    drop(recorder);
    let files = logs.finish().unwrap();
    let read = |path: &std::path::PathBuf| {
        let bytes = fs::read(path).unwrap();
        let records = bytes[1..].split(|byte| *byte == 0x1e);
        let records: Vec<Value> =
            records.map(|record| serde_json::from_slice(record).unwrap()).collect();
        for record in &records {
            let fault = schema.validate(record).err().map(|error| error.to_string());
            assert_eq!(fault, None, "in {record}");
        }
        (path.file_name().unwrap().to_str().unwrap().to_owned(), records)
    };
    files.iter().map(read).collect()
}

fn view() -> PathView {
    let rtt = Duration::from_micros(20_500);
    PathView {
        key: PATH,
        state: PathState::Usable,
        status: PathStatus::Available,
        packets_sent: 3,
        last_sent_at: None,
        pto_count: 70_000,
        srtt: Some(rtt),
        rttvar: rtt,
        min_rtt: Some(rtt),
        latest_rtt: Some(rtt),
        cwnd: Bytes(12_000),
        ssthresh: Some(Bytes(6_000)),
        in_flight: Bytes(1_200),
        release_at: Instant::ZERO,
        rate: Some(Rate::from_mbit_per_sec(5)),
        limited: false,
        amplification_limited: false,
        blocked: false,
        loss: PerMille(0),
        payload: Bytes(1_300),
    }
}

#[test]
fn every_reason_to_close_fits() {
    let fault = TransportError::protocol_violation("they did");
    let reasons = [
        CloseReason::PeerFault(fault),
        CloseReason::PeerFault(TransportError::new(ErrorCode::crypto(40), "alert")),
        CloseReason::PeerTransport { code: 0x3e, reason: "\u{0} \"".to_owned() },
        CloseReason::PeerApplication { code: u64::MAX >> 2, reason: String::new() },
        CloseReason::Application { code: 7 },
        CloseReason::IdleTimeout,
        CloseReason::StatelessReset,
        CloseReason::Version,
    ];
    let events: Vec<Event<'_>> = reasons.iter().map(Event::Closed).collect();
    for form in [Form::Current, Form::Version03] {
        let files = logged(form, &events);
        let closed = |record: &&Value| {
            record["name"].as_str().is_some_and(|name| name.ends_with(":connection_closed"))
        };
        assert_eq!(files[0].1.iter().filter(closed).count(), reasons.len());
    }
}

#[test]
fn every_kind_of_packet_and_of_loss_fits() {
    let payload = [0x01, 0x00, 0x00, 0x21];
    let kinds = [PacketKind::Initial, PacketKind::Handshake, PacketKind::OneRtt];
    let packets = kinds.map(|kind| PacketInfo {
        kind,
        path: if kind == PacketKind::OneRtt { PATH.id } else { PathId::ZERO },
        number: PacketNumber(9),
        size: 30,
        dcid: cid(5),
        scid: if kind == PacketKind::OneRtt { ConnectionId::EMPTY } else { cid(6) },
        token: usize::from(kind == PacketKind::Initial) * 12,
        payload: &payload,
    });
    let mut events = Vec::new();
    for packet in packets {
        events.push(Event::PacketSent { packet, probe: true });
        events.push(Event::PacketReceived { packet, ecn: 1 });
        for sign in [LossSign::Reordering, LossSign::Time] {
            let PacketInfo { kind, path, number, .. } = packet;
            events.push(Event::PacketLost { kind, path, number, sign });
        }
    }
    for reason in [
        DropReason::DoesNotOpen,
        DropReason::Duplicate,
        DropReason::Invalid,
        DropReason::NoKeys,
        DropReason::NoPath,
        DropReason::Unsupported,
    ] {
        for kind in [None, Some(PacketKind::ZeroRtt)] {
            events.push(Event::PacketDropped { kind, path: PathId::ZERO, size: 40, reason });
        }
    }
    events.push(Event::PacketKept { kind: PacketKind::OneRtt, size: 50 });
    for form in [Form::Current, Form::Version03] {
        let files = logged(form, &events);
        let records: usize = files.iter().map(|(_, records)| records.len()).sum();
        // Each file has a header; the first its start and first state.
        assert_eq!(records, files.len() + 2 + events.len());
    }
    let files = logged(Form::Version03, &events);
    assert!(files.iter().any(|(name, _)| name == "abababababababab_server_path3.sqlog"));
}

#[test]
fn paths_have_files_in_whatever_order_they_come() {
    let paths = [5, 1, 3].map(PathId);
    let events = paths.map(|path| Event::TimerExpired { path, timer: Timer::Probe });
    let names: Vec<String> =
        logged(Form::Version03, &events).into_iter().map(|(name, _)| name).collect();
    let expected = [0, 1, 3, 5].map(|path| format!("abababababababab_server_path{path}.sqlog"));
    assert_eq!(names, expected);
}

#[test]
fn everything_about_paths_streams_and_the_connection_fits() {
    let route = started(Role::Client, "[::1]:443").route;
    let parameters = TransportParameters {
        original_destination_connection_id: Some(cid(0xab)),
        retry_source_connection_id: Some(cid(1)),
        initial_max_path_id: Some(PathId(4)),
        ack_return_paths: true,
        grease_quic_bit: true,
        max_datagram_frame_size: u64::MAX >> 2,
        max_udp_payload_size: u64::MAX >> 2,
        ..TransportParameters::default()
    };
    let mut events = vec![
        Event::Parameters { own: true, parameters: &parameters },
        Event::Parameters { own: false, parameters: &parameters },
        Event::KeysUpdated { updates: 1 },
    ];
    for change in [
        PathEvent::Assigned { route },
        PathEvent::Validated,
        PathEvent::Suspect,
        PathEvent::Revived,
        PathEvent::DatagramSize { before: 1_200, size: 1_472 },
        PathEvent::Status { status: PathStatus::Backup, own: true },
        PathEvent::Status { status: PathStatus::Available, own: false },
        PathEvent::Abandoned { code: 0x3e },
        PathEvent::Dropped,
    ] {
        events.push(Event::Path { path: PATH.id, change });
    }
    for state in [
        ConnectionState::HandshakeComplete,
        ConnectionState::HandshakeConfirmed,
        ConnectionState::Closing,
        ConnectionState::Draining,
        ConnectionState::Closed,
    ] {
        events.push(Event::State(state));
    }
    for (side, state) in [
        (StreamSide::Sending, StreamState::Open),
        (StreamSide::Receiving, StreamState::DataRead),
        (StreamSide::Sending, StreamState::ResetSent),
        (StreamSide::Receiving, StreamState::ResetReceived),
        (StreamSide::Sending, StreamState::Closed),
    ] {
        events.push(Event::Stream { stream: StreamId(3), side, state });
    }
    let at = Instant::ZERO + Duration::from_secs(3);
    for timer in [Timer::Loss, Timer::Probe, Timer::PathValidation] {
        events.push(Event::TimerSet { path: PATH.id, expires_at: Some((timer, at)) });
        events.push(Event::TimerExpired { path: PATH.id, timer });
    }
    events.push(Event::TimerSet { path: PATH.id, expires_at: Some((Timer::Probe, at)) });
    events.push(Event::TimerSet { path: PATH.id, expires_at: None });
    let view = view();
    let moved = PathView { cwnd: Bytes(9_000), srtt: None, rate: None, ..view.clone() };
    let slow = Published { state: "slow start", ..Published::default() };
    let recovery = Published { state: "recovery", ..Published::default() };
    for (view, controller) in [(&view, &slow), (&view, &recovery), (&moved, &recovery)] {
        events.push(Event::Metrics(Metrics {
            view,
            controller,
            packets_in_flight: 2,
            pacing_rate: Some(Rate::from_mbit_per_sec(7)),
        }));
    }
    for form in [Form::Current, Form::Version03] {
        let files = logged(form, &events);
        let of = |name: &str| {
            let all = files.iter().flat_map(|(_, records)| records);
            all.filter(|r| r["name"].as_str().is_some_and(|n| n.ends_with(name))).count()
        };
        assert_eq!(of(":connection_state_updated"), 6);
        assert_eq!(of(":stream_state_updated"), 5);
        assert_eq!(of(":metrics_updated") + of(":recovery_metrics_updated"), 2);
        assert_eq!(of(":congestion_state_updated"), 2);
        assert_eq!(of("timer_updated"), if form == Form::Current { 8 } else { 6 });
    }
}

#[test]
fn every_answer_of_policies_fits_and_is_told_once() {
    let candidates = [
        Note { label: "srtt", path: Some(PATH), stream: None, score: 0.02 },
        Note { label: "tag", path: None, stream: Some(STREAM), score: f64::INFINITY },
    ];
    let span = Span::new(Offset(5), Offset(9));
    let send = Decision::Send { path: PATH, stream: STREAM, from: None, max: Bytes(4) };
    let sends = Outcome::Sends { path: PATH.id, stream: STREAM.id, span, copy: false };
    let until = Instant::ZERO + Duration::from_secs(1);
    let mut answers = vec![
        (Ask::Packet, Some(send), sends),
        (Ask::Fill { path: PATH, space: Bytes(100) }, Some(send), sends),
        (
            Ask::Packet,
            Some(Decision::Copy { path: PATH, stream: STREAM, span }),
            Outcome::Sends { path: PATH.id, stream: STREAM.id, span, copy: true },
        ),
        (Ask::Packet, Some(Decision::Probe { path: PATH }), Outcome::Probes { path: PATH.id }),
        (Ask::Packet, Some(Decision::Wait { until, on: Some(PATH) }), Outcome::Rests),
        (Ask::Packet, Some(Decision::Wait { until, on: None }), Outcome::Rests),
        (Ask::Packet, Some(Decision::Idle), Outcome::Rests),
        (Ask::Packet, None, sends),
    ];
    for refusal in [
        Refusal::PathClosed(PATH),
        Refusal::OtherPath(PATH),
        Refusal::NoStream(STREAM),
        Refusal::NotPending(STREAM, Offset(1)),
        Refusal::NotInFlight(STREAM, span),
        Refusal::NothingLeft(STREAM),
        Refusal::MustNotWait,
        Refusal::MustNotProbe(PATH),
    ] {
        answers.push((Ask::Packet, Some(send), Outcome::Refused(refusal)));
    }
    // That nothing more goes into a packet is not told.
    let idle = (Ask::Fill { path: PATH, space: Bytes(9) }, Some(Decision::Idle), Outcome::Rests);
    let told = answers.len();
    answers.push(idle);
    let parts = [
        DecidedBy::Policy,
        DecidedBy::Plan,
        DecidedBy::Lost,
        DecidedBy::Skipped,
        DecidedBy::Reinjection,
    ];
    let events: Vec<Event<'_>> = answers
        .iter()
        .zip(parts.into_iter().cycle())
        .map(|(&(ask, decision, outcome), decided_by)| {
            let candidates = &candidates[..];
            Event::Scheduled(Scheduled { ask, decision, decided_by, candidates, outcome })
        })
        .collect();
    let files = logged(Form::Current, &events);
    let scheduled: Vec<&Value> =
        files[0].1.iter().filter(|record| record["name"] == "quipu:scheduled").collect();
    assert_eq!(scheduled.len(), told);
    let first = &scheduled[0]["data"];
    assert_eq!(first["candidates"][0]["score"], 0.02);
    assert!(first["candidates"][1]["score"].is_null(), "infinity has no form in JSON");
    assert_eq!((&first["offset"], &first["length"]), (&5.into(), &4.into()));
    assert_eq!(scheduled[7]["data"]["decided_by"], "engine");
    let old = logged(Form::Version03, &events);
    assert_eq!(old[0].1.len(), 3, "the header, the start and its state");
}
