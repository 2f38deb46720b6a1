//! Paths: their life, what is known of them, their timers.

use std::net::SocketAddr;

use quipu_base::{Bytes, Duration, Instant, PathId, Rate};
use quipu_policy::PathStatus;
use quipu_quic::recorder::{Metrics, PathEvent, Timer};

use super::packet::tuple;
use crate::Form;
use crate::json::Json;
use crate::recorder::QlogRecorder;

/// Address and port as `ip_v4` and `port_v4`, or those of version 6.
pub(super) fn endpoint(json: &mut Json, name: &'static str, address: SocketAddr) {
    json.begin(name);
    endpoint_fields(json, address);
    json.end();
}

pub(super) fn endpoint_fields(json: &mut Json, address: SocketAddr) {
    let (ip, port) = match address {
        SocketAddr::V4(_) => ("ip_v4", "port_v4"),
        SocketAddr::V6(_) => ("ip_v6", "port_v6"),
    };
    json.text(ip, &address.ip().to_string());
    json.number(port, u64::from(address.port()));
}

pub(crate) fn changed(log: &mut QlogRecorder, now: Instant, path: PathId, change: PathEvent) {
    if let PathEvent::DatagramSize { before, size } = change {
        let form = log.form;
        let Some(file) = log.file(path) else { return };
        let name = form.pick("quic:mtu_updated", "connectivity:mtu_updated");
        let json = file.begin(now, name, tuple(form, path));
        number!(json, "old", u64::from(before));
        number!(json, "new", u64::from(size));
        file.end();
        return;
    }
    if log.form == Form::Version03 {
        // There is no event for it; a file per path is what tells of paths.
        let _ = log.file(path);
        return;
    }
    let Some(file) = log.file(path) else { return };
    if let PathEvent::Assigned { route } | PathEvent::Moved { new: route, .. } = change {
        let json = file.begin(now, "quic:tuple_assigned", path);
        json.key("tuple_id");
        json.raw("\"");
        if path != PathId::ZERO {
            json.integer(u64::from(path.0));
        }
        json.raw("\"");
        endpoint(json, "tuple_remote", route.remote);
        endpoint(json, "tuple_local", route.local);
        file.end();
    }
    if let PathEvent::Moved { .. } = change {
        return;
    }
    let json = file.begin(now, "quipu:path_updated", path);
    number!(json, "path_id", u64::from(path.0));
    match change {
        PathEvent::Assigned { .. } => {
            json.word("new", if path == PathId::ZERO { "usable" } else { "validating" });
        }
        PathEvent::Validated | PathEvent::Revived => word!(json, "new", "usable"),
        PathEvent::Suspect => word!(json, "new", "suspect"),
        PathEvent::Status { status, own } => {
            json.word(
                "status",
                match status {
                    PathStatus::Available => "available",
                    PathStatus::Backup => "backup",
                },
            );
            json.word("initiator", if own { "local" } else { "remote" });
        }
        PathEvent::Abandoned { code } => {
            word!(json, "new", "abandoned");
            number!(json, "error_code", code);
        }
        PathEvent::Dropped => word!(json, "new", "dropped"),
        // Told above.
        PathEvent::DatagramSize { .. } | PathEvent::Moved { .. } => {}
    }
    file.end();
}

/// The metrics written last, so that only what changed is written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Written {
    min_rtt: Option<Duration>,
    smoothed_rtt: Option<Duration>,
    latest_rtt: Option<Duration>,
    rtt_variance: Option<Duration>,
    pto_count: u32,
    cwnd: Bytes,
    in_flight: Bytes,
    ssthresh: Option<Bytes>,
    packets_in_flight: usize,
    pacing_rate: Option<Rate>,
    delivery_rate: Option<Rate>,
    state: Option<&'static str>,
}

impl Written {
    fn of(metrics: &Metrics<'_>) -> Written {
        let view = metrics.view;
        Written {
            min_rtt: view.min_rtt,
            smoothed_rtt: view.srtt,
            latest_rtt: view.latest_rtt,
            rtt_variance: view.srtt.map(|_| view.rttvar),
            pto_count: view.pto_count,
            cwnd: view.cwnd,
            in_flight: view.in_flight,
            ssthresh: view.ssthresh,
            packets_in_flight: metrics.packets_in_flight,
            pacing_rate: metrics.pacing_rate,
            delivery_rate: view.rate,
            state: Some(metrics.controller.state).filter(|state| !state.is_empty()),
        }
    }
}

pub(crate) fn metrics(log: &mut QlogRecorder, now: Instant, metrics: &Metrics<'_>) {
    let path = metrics.view.key.id;
    let form = log.form;
    let new = Written::of(metrics);
    let Some(memory) = log.memory(path) else { return };
    let old = std::mem::replace(&mut memory.metrics, new);
    if old == new {
        return;
    }
    let Some(file) = log.file(path) else { return };
    if (Written { state: old.state, ..new }) != old {
        let name = form.pick("quic:recovery_metrics_updated", "recovery:metrics_updated");
        let json = file.begin(now, name, tuple(form, path));
        write_changes(json, &old, &new, form);
        if form == Form::Current {
            number!(json, "path_id", u64::from(path.0));
        }
        file.end();
    }
    if let Some(state) = new.state
        && old.state != new.state
    {
        let name = form.pick("quic:congestion_state_updated", "recovery:congestion_state_updated");
        let json = file.begin(now, name, tuple(form, path));
        if let Some(old) = old.state {
            json.word("old", old);
        }
        json.word("new", state);
        if form == Form::Current {
            number!(json, "path_id", u64::from(path.0));
        }
        file.end();
    }
}

fn write_changes(json: &mut Json, old: &Written, new: &Written, form: Form) {
    let times = [
        ("min_rtt", old.min_rtt, new.min_rtt),
        ("smoothed_rtt", old.smoothed_rtt, new.smoothed_rtt),
        ("latest_rtt", old.latest_rtt, new.latest_rtt),
        ("rtt_variance", old.rtt_variance, new.rtt_variance),
    ];
    for (name, old, new) in times {
        if let Some(new) = new.filter(|_| old != new) {
            json.millis(name, new);
        }
    }
    let known = |changed: bool, value: u64| changed.then_some(value);
    let bits = |rate: Option<Rate>| rate.map(|rate| rate.bits_per_sec());
    let pto_count = u64::from(new.pto_count).min(u64::from(u16::MAX));
    let numbers = [
        ("pto_count", known(old.pto_count != new.pto_count, pto_count)),
        ("congestion_window", known(old.cwnd != new.cwnd, new.cwnd.0)),
        ("bytes_in_flight", known(old.in_flight != new.in_flight, new.in_flight.0)),
        ("ssthresh", new.ssthresh.filter(|_| old.ssthresh != new.ssthresh).map(|bytes| bytes.0)),
        (
            "packets_in_flight",
            known(old.packets_in_flight != new.packets_in_flight, new.packets_in_flight as u64),
        ),
        ("pacing_rate", bits(new.pacing_rate.filter(|_| old.pacing_rate != new.pacing_rate))),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            json.number(name, value);
        }
    }
    if form == Form::Current
        && let Some(rate) =
            bits(new.delivery_rate.filter(|_| old.delivery_rate != new.delivery_rate))
    {
        number!(json, "delivery_rate", rate);
    }
}

fn timer_type(form: Form, timer: Timer) -> Option<&'static str> {
    match (form, timer) {
        (Form::Current, Timer::Loss) => Some("loss_timeout"),
        (Form::Version03, Timer::Loss) => Some("ack"),
        (_, Timer::Probe) => Some("pto"),
        (Form::Current, Timer::PathValidation) => Some("path_validation"),
        (Form::Version03, Timer::PathValidation) => None,
    }
}

fn timer_updated(
    log: &mut QlogRecorder,
    now: Instant,
    path: PathId,
    timer: Timer,
    event_type: &'static str,
    delta: Option<Duration>,
) {
    let form = log.form;
    let Some(timer_type) = timer_type(form, timer) else { return };
    let Some(file) = log.file(path) else { return };
    let name = form.pick("quic:timer_updated", "recovery:loss_timer_updated");
    let json = file.begin(now, name, tuple(form, path));
    json.word("timer_type", timer_type);
    if form == Form::Current {
        number!(json, "timer_id", u64::from(path.0));
    }
    json.word("event_type", event_type);
    if let Some(delta) = delta {
        json.millis("delta", delta);
    }
    file.end();
}

/// A timer that only moves on, as the probe timer does with each packet, is not written again.
pub(crate) fn timer_set(
    log: &mut QlogRecorder,
    now: Instant,
    path: PathId,
    expires_at: Option<(Timer, Instant)>,
) {
    let Some(memory) = log.memory(path) else { return };
    let new = expires_at.map(|(timer, _)| timer);
    let old = std::mem::replace(&mut memory.timer, new);
    if old == new {
        return;
    }
    match (old, expires_at) {
        (_, Some((timer, at))) => timer_updated(log, now, path, timer, "set", Some(at - now)),
        (Some(timer), None) => timer_updated(log, now, path, timer, "cancelled", None),
        (None, None) => {}
    }
}

pub(crate) fn timer_expired(log: &mut QlogRecorder, now: Instant, path: PathId, timer: Timer) {
    if let Some(memory) = log.memory(path) {
        memory.timer = memory.timer.filter(|set| *set != timer);
    }
    timer_updated(log, now, path, timer, "expired", None);
}
