//! What clients may take of a server, as the options say.

use std::time::Duration;

use quipu_lab::base::Duration as Span;
use quipu_serve::tcp::Limits;
use quipu_tokio::{Admission, TransportConfig};

use crate::args::LimitOptions;
use crate::live;

/// Those of connections over TCP.
pub(super) fn of_tcp(options: &LimitOptions) -> Limits {
    let default = Limits::default();
    Limits {
        connections: options.max_connections.map_or(default.connections, |most| most as usize),
        streams: options.max_requests.unwrap_or(default.streams),
        idle: options.idle_timeout.map_or(default.idle, |idle| Duration::from_secs(idle.into())),
        ..default
    }
}

/// Those of a connection over QUIC.
pub(super) fn of_transport(options: &LimitOptions) -> TransportConfig {
    let default = (*live::transport()).clone();
    let idle = |seconds: u32| Span::from_secs(seconds.into());
    TransportConfig {
        // HTTP/3 has three streams of its own, which count by themselves.
        max_streams: options.max_requests.map_or(default.max_streams, u64::from),
        idle_timeout: options.idle_timeout.map_or(default.idle_timeout, idle),
        ..default
    }
}

/// Those of all connections over QUIC.
pub(super) fn of_admission(options: &LimitOptions) -> Admission {
    let default = Admission::default();
    let or = |given: Option<u32>, default| given.map_or(default, |most| most as usize);
    Admission {
        max_connections: or(options.max_connections, default.max_connections),
        max_per_source: or(options.max_per_address, default.max_per_source),
        ..default
    }
}
