//! The connection as a whole: its start, states and end, parameters, streams and keys.

use quipu_base::{Instant, PathId, Role, StreamId};
use quipu_quic::connection::CloseReason;
use quipu_quic::recorder::{ConnectionState, Started, StreamSide, StreamState};
use quipu_quic::transport_parameters::TransportParameters;
use quipu_quic::wire::ConnectionId;

use super::path::endpoint_fields;
use crate::Form;
use crate::frame::{stream_type, transport_error};
use crate::json::Json;
use crate::recorder::QlogRecorder;

pub(crate) fn started(log: &mut QlogRecorder, now: Instant, started: &Started) {
    let form = log.form;
    let Some(file) = log.file(PathId::ZERO) else { return };
    let (local, remote) = (started.route.local, started.route.remote);
    match form {
        Form::Current => {
            let json = file.begin(now, "quic:connection_started", PathId::ZERO);
            for (name, address, cid) in
                [("local", local, &started.local_cid), ("remote", remote, &started.remote_cid)]
            {
                json.begin(name);
                endpoint_fields(json, address);
                begin_list!(json, "connection_ids");
                json.hex_item(cid.as_bytes());
                json.end_list();
                json.end();
            }
        }
        Form::Version03 => {
            let json = file.begin(now, "connectivity:connection_started", PathId::ZERO);
            json.word("ip_version", if local.is_ipv4() { "v4" } else { "v6" });
            json.text("src_ip", &local.ip().to_string());
            json.text("dst_ip", &remote.ip().to_string());
            word!(json, "protocol", "QUIC");
            number!(json, "src_port", u64::from(local.port()));
            number!(json, "dst_port", u64::from(remote.port()));
            json.hex("src_cid", started.local_cid.as_bytes());
            json.hex("dst_cid", started.remote_cid.as_bytes());
        }
    }
    file.end();
    new_state(log, now, "attempted");
}

pub(crate) fn state(log: &mut QlogRecorder, now: Instant, state: ConnectionState) {
    let name = match state {
        ConnectionState::HandshakeComplete => "handshake_complete",
        ConnectionState::HandshakeConfirmed => "handshake_confirmed",
        ConnectionState::Closing => "closing",
        ConnectionState::Draining => "draining",
        ConnectionState::Closed => "closed",
    };
    new_state(log, now, name);
}

fn new_state(log: &mut QlogRecorder, now: Instant, state: &'static str) {
    let form = log.form;
    let old = log.state.replace(state);
    let Some(file) = log.file(PathId::ZERO) else { return };
    let name = form.pick("quic:connection_state_updated", "connectivity:connection_state_updated");
    let json = file.begin(now, name, PathId::ZERO);
    if let Some(old) = old {
        json.word("old", old);
    }
    json.word("new", state);
    file.end();
}

pub(crate) fn closed(log: &mut QlogRecorder, now: Instant, reason: &CloseReason) {
    let form = log.form;
    let Some(file) = log.file(PathId::ZERO) else { return };
    let name = form.pick("quic:connection_closed", "connectivity:connection_closed");
    let json = file.begin(now, name, PathId::ZERO);
    let peers = matches!(
        reason,
        CloseReason::PeerTransport { .. }
            | CloseReason::PeerApplication { .. }
            | CloseReason::StatelessReset
    );
    json.word(form.pick("initiator", "owner"), if peers { "remote" } else { "local" });
    let transport = form.pick("connection_error", "connection_code");
    let trigger = match reason {
        CloseReason::PeerFault(error) => {
            transport_error(json, transport, error.code.0, form);
            json.text("reason", &error.reason);
            "error"
        }
        CloseReason::PeerTransport { code, reason } => {
            transport_error(json, transport, *code, form);
            json.text("reason", reason);
            "error"
        }
        CloseReason::PeerApplication { code, reason } => {
            application_code(json, *code, form);
            json.text("reason", reason);
            "application"
        }
        CloseReason::Application { code } => {
            application_code(json, *code, form);
            "application"
        }
        CloseReason::IdleTimeout => "idle_timeout",
        CloseReason::StatelessReset => "stateless_reset",
        CloseReason::Version => "version_mismatch",
        _ => "error",
    };
    json.word("trigger", trigger);
    file.end();
}

fn application_code(json: &mut Json, code: u64, form: Form) {
    match form {
        Form::Current => {
            word!(json, "application_error", "unknown");
            number!(json, "error_code", code);
        }
        // Version 0.3 has 32 bits for it.
        Form::Version03 => number!(json, "application_code", code.min(u64::from(u32::MAX))),
    }
}

pub(crate) fn parameters(
    log: &mut QlogRecorder,
    now: Instant,
    own: bool,
    parameters: &TransportParameters,
) {
    let form = log.form;
    let exponent = if own { &mut log.own_exponent } else { &mut log.peer_exponent };
    *exponent = parameters.ack_delay_exponent;
    let Some(file) = log.file(PathId::ZERO) else { return };
    let name = form.pick("quic:parameters_set", "transport:parameters_set");
    let json = file.begin(now, name, PathId::ZERO);
    json.word(form.pick("initiator", "owner"), if own { "local" } else { "remote" });
    let ids = [
        ("original_destination_connection_id", &parameters.original_destination_connection_id),
        ("initial_source_connection_id", &parameters.initial_source_connection_id),
        ("retry_source_connection_id", &parameters.retry_source_connection_id),
    ];
    for (name, id) in ids {
        if let Some(id) = id {
            json.hex(name, ConnectionId::as_bytes(id));
        }
    }
    json.boolean("disable_active_migration", parameters.disable_active_migration);
    // Version 0.3 has 32 bits for these two.
    let limit = if form == Form::Version03 { u64::from(u32::MAX) } else { u64::MAX };
    let numbers = [
        ("max_idle_timeout", parameters.max_idle_timeout.as_millis()),
        ("max_udp_payload_size", parameters.max_udp_payload_size.min(limit)),
        ("ack_delay_exponent", u64::from(parameters.ack_delay_exponent)),
        ("max_ack_delay", parameters.max_ack_delay.as_millis()),
        ("active_connection_id_limit", parameters.active_connection_id_limit.min(limit)),
        ("initial_max_data", parameters.initial_max_data.0),
        ("initial_max_stream_data_bidi_local", parameters.initial_max_stream_data_bidi_local.0),
        ("initial_max_stream_data_bidi_remote", parameters.initial_max_stream_data_bidi_remote.0),
        ("initial_max_stream_data_uni", parameters.initial_max_stream_data_uni.0),
        ("initial_max_streams_bidi", parameters.initial_max_streams_bidi),
        ("initial_max_streams_uni", parameters.initial_max_streams_uni),
    ];
    for (name, value) in numbers {
        json.number(name, value);
    }
    if form == Form::Current {
        if let Some(maximum) = parameters.initial_max_path_id {
            number!(json, "initial_max_path_id", u64::from(maximum.0));
        }
        if parameters.max_datagram_frame_size > 0 {
            number!(json, "max_datagram_frame_size", parameters.max_datagram_frame_size);
        }
        if parameters.grease_quic_bit {
            json.boolean("grease_quic_bit", true);
        }
        json.boolean("ack_return_paths", parameters.ack_return_paths);
    }
    file.end();
}

pub(crate) fn stream(
    log: &mut QlogRecorder,
    now: Instant,
    stream: StreamId,
    side: StreamSide,
    state: StreamState,
) {
    let form = log.form;
    let Some(file) = log.file(PathId::ZERO) else { return };
    let name = form.pick("quic:stream_state_updated", "transport:stream_state_updated");
    let json = file.begin(now, name, PathId::ZERO);
    number!(json, "stream_id", stream.0);
    json.word("stream_type", stream_type(stream.direction()));
    json.word(
        "new",
        match state {
            StreamState::Open => "open",
            StreamState::DataRead => "data_read",
            StreamState::ResetSent => "reset_sent",
            StreamState::ResetReceived => "reset_received",
            StreamState::Closed => "closed",
        },
    );
    json.word(
        "stream_side",
        match side {
            StreamSide::Sending => "sending",
            StreamSide::Receiving => "receiving",
        },
    );
    file.end();
}

/// Version 0.3 asks for the key itself, which is not told.
pub(crate) fn keys_updated(log: &mut QlogRecorder, now: Instant, updates: u64) {
    if log.form == Form::Version03 {
        return;
    }
    let Some(file) = log.file(PathId::ZERO) else { return };
    for role in [Role::Client, Role::Server] {
        let json = file.begin(now, "quic:key_updated", PathId::ZERO);
        json.word(
            "key_type",
            if role.is_client() { "client_1rtt_secret" } else { "server_1rtt_secret" },
        );
        number!(json, "key_phase", updates);
        file.end();
    }
}
