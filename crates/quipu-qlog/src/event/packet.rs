//! Packets: sent, received, lost, dropped, kept.

use quipu_base::{Instant, PacketNumber, PathId};
use quipu_quic::recorder::{DropReason, LossSign, PacketInfo};
use quipu_quic::wire::PacketKind;

use crate::Form;
use crate::frame::{raw, write_all};
use crate::json::Json;
use crate::recorder::QlogRecorder;

fn packet_type(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Initial => "initial",
        PacketKind::ZeroRtt => "0RTT",
        PacketKind::Handshake => "handshake",
        PacketKind::OneRtt => "1RTT",
    }
}

/// Number and kind of a packet, and its path, where the form has a place for it.
#[inline]
fn begin_header(json: &mut Json, form: Form, kind: PacketKind, path: PathId, number: PacketNumber) {
    begin!(json, "header");
    if kind == PacketKind::OneRtt {
        word!(json, "packet_type", "1RTT");
    } else {
        json.word("packet_type", packet_type(kind));
    }
    number!(json, "packet_number", number.0);
    if kind == PacketKind::OneRtt && form == Form::Current {
        number!(json, "path_id", u64::from(path.0));
    }
}

#[inline]
fn write_packet(
    log: &mut QlogRecorder,
    now: Instant,
    packet: &PacketInfo<'_>,
    own: bool,
    probe: bool,
) {
    let form = log.form;
    let context = log.context(packet.path, own);
    let name = match (form, own) {
        (Form::Current, true) => "quic:packet_sent",
        (Form::Current, false) => "quic:packet_received",
        (Form::Version03, true) => "transport:packet_sent",
        (Form::Version03, false) => "transport:packet_received",
    };
    let tuple = tuple(form, packet.path);
    let Some(file) = log.file(packet.path) else { return };
    let json = file.begin(now, name, tuple);
    begin_header(json, form, packet.kind, packet.path, packet.number);
    if packet.kind != PacketKind::OneRtt {
        if packet.token > 0 {
            begin!(json, "token");
            raw(json, "length", packet.token);
            json.end();
        }
        word!(json, "version", "00000001");
        json.hex("scid", packet.scid.as_bytes());
        json.hex("dcid", packet.dcid.as_bytes());
    }
    json.end();
    raw(json, "length", packet.size);
    if probe {
        word!(json, "trigger", "pto_probe");
    }
    write_all(json, packet.frames(), context);
    file.end();
}

/// The path of an event, where a file holds those of several.
pub(super) fn tuple(form: Form, path: PathId) -> PathId {
    match form {
        Form::Current => path,
        Form::Version03 => PathId::ZERO,
    }
}

pub(crate) fn sent(log: &mut QlogRecorder, now: Instant, packet: &PacketInfo<'_>, probe: bool) {
    write_packet(log, now, packet, true, probe);
}

pub(crate) fn received(log: &mut QlogRecorder, now: Instant, packet: &PacketInfo<'_>) {
    write_packet(log, now, packet, false, false);
}

pub(crate) fn lost(
    log: &mut QlogRecorder,
    now: Instant,
    kind: PacketKind,
    path: PathId,
    number: PacketNumber,
    sign: LossSign,
) {
    let form = log.form;
    let Some(file) = log.file(path) else { return };
    let name = form.pick("quic:packet_lost", "recovery:packet_lost");
    let json = file.begin(now, name, tuple(form, path));
    begin_header(json, form, kind, path, number);
    json.end();
    json.word(
        "trigger",
        match sign {
            LossSign::Reordering => "reordering_threshold",
            LossSign::Time => "time_threshold",
        },
    );
    file.end();
}

pub(crate) fn dropped(
    log: &mut QlogRecorder,
    now: Instant,
    kind: Option<PacketKind>,
    path: PathId,
    size: usize,
    reason: DropReason,
) {
    let form = log.form;
    // A forged connection ID opens no file.
    let Some(file) = log.file(path) else { return };
    let name = form.pick("quic:packet_dropped", "transport:packet_dropped");
    let json = file.begin(now, name, tuple(form, path));
    begin!(json, "header");
    json.word("packet_type", kind.map_or("unknown", packet_type));
    json.end();
    raw(json, "length", size);
    json.word(
        "trigger",
        match (reason, form) {
            (DropReason::DoesNotOpen, _) => "decryption_failure",
            (DropReason::Duplicate, Form::Current) => "duplicate",
            (DropReason::Invalid, _) => "invalid",
            (DropReason::NoKeys, Form::Current) => "key_unavailable",
            (DropReason::NoPath | DropReason::UnknownAddress, _) => "rejected",
            (DropReason::Unsupported, _) => "unsupported",
            (DropReason::Duplicate | DropReason::NoKeys, Form::Version03) => "general",
        },
    );
    file.end();
}

pub(crate) fn buffered(log: &mut QlogRecorder, now: Instant, kind: PacketKind, size: usize) {
    let form = log.form;
    let Some(file) = log.file(PathId::ZERO) else { return };
    let name = form.pick("quic:packet_buffered", "transport:packet_buffered");
    let json = file.begin(now, name, PathId::ZERO);
    begin!(json, "header");
    json.word("packet_type", packet_type(kind));
    json.end();
    raw(json, "length", size);
    word!(json, "trigger", "keys_unavailable");
    file.end();
}
