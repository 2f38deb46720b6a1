//! Which connection a request went over, and when that was set up.
//!
//! A request is bound to a stream job. A job has a socket out of the pool, or a session of HTTP/2 or HTTP/3 that others
//! share. A socket is created by a connect job, which resolves the name first.

use std::collections::BTreeMap;

use super::event::{Event, Phase, What};

/// A begin and an end, in ms of the log's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub(super) begin: Option<f64>,
    pub(super) end: Option<f64>,
}

impl Span {
    /// Takes an event that begins or ends it. The first begin and the last end count.
    fn take(&mut self, event: &Event) {
        match event.phase {
            Phase::Begin => {
                self.begin.get_or_insert(event.at);
            }
            Phase::End => self.end = Some(event.at),
            Phase::Instant => {}
        }
    }

    /// Both ends, as far as they come after `start`.
    pub(super) fn after(self, start: f64) -> Option<(f64, f64)> {
        let (begin, end) = (self.begin?.max(start), self.end?);
        (end > begin).then_some((begin, end))
    }
}

#[derive(Default)]
struct Job {
    socket: Option<u64>,
    session: Option<u64>,
    /// The job of HTTP/3 that it waits for.
    quic: Option<u64>,
}

#[derive(Default)]
struct Socket {
    created_by: Option<u64>,
    connect: Span,
    tls: Span,
}

/// How a connection was set up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SetUp {
    pub(super) dns: Span,
    /// Of the transport; with HTTP/3 of all.
    pub(super) transport: Span,
    pub(super) tls: Span,
}

/// All connections of a log.
#[derive(Default)]
pub(super) struct Connections {
    jobs: BTreeMap<u64, Job>,
    sockets: BTreeMap<u64, Socket>,
    /// The sockets of sessions.
    sessions: BTreeMap<u64, u64>,
    /// By connect job.
    dns: BTreeMap<u64, Span>,
    quic: BTreeMap<u64, Span>,
}

impl Connections {
    pub(super) fn take(&mut self, event: &Event) {
        let Event { source, .. } = *event;
        let other = event.params.source_dependency.number();
        match event.what {
            What::SocketOfJob => self.jobs.entry(source).or_default().socket = other,
            What::SessionOfJob => self.jobs.entry(source).or_default().session = other,
            What::JobOfQuic => self.jobs.entry(source).or_default().quic = other,
            What::ProtocolOfSession => {
                self.sessions.extend(other.map(|socket| (source, socket)));
            }
            What::SocketAlive if event.phase == Phase::Begin => {
                self.sockets.entry(source).or_default().created_by = other;
            }
            What::Connect => self.sockets.entry(source).or_default().connect.take(event),
            What::TlsConnect => self.sockets.entry(source).or_default().tls.take(event),
            What::QuicConnect => self.quic.entry(source).or_default().take(event),
            What::DnsRequest => self.dns.entry(source).or_default().take(event),
            What::DnsTasks => {
                self.dns.entry(source).or_default().begin.get_or_insert(event.at);
            }
            _ => {}
        }
    }

    /// The socket that `job` took out of the pool.
    pub(super) fn socket(&self, job: u64) -> Option<u64> {
        self.jobs.get(&job)?.socket
    }

    /// The number of the connection of `job`: that of its socket, else that of its session.
    pub(super) fn number(&self, job: u64) -> Option<u64> {
        let job = self.jobs.get(&job)?;
        match job.session {
            Some(session) => Some(self.sessions.get(&session).copied().unwrap_or(session)),
            None => job.quic.or(job.socket),
        }
    }

    /// How connection `number` was set up for `job`.
    pub(super) fn set_up(&self, job: u64, number: u64) -> SetUp {
        let Some(socket) = self.sockets.get(&number) else {
            let quic = self.jobs.get(&job).and_then(|job| job.quic);
            let transport = quic.and_then(|quic| self.quic.get(&quic)).copied().unwrap_or_default();
            let dns = quic.and_then(|quic| self.dns.get(&quic)).copied().unwrap_or_default();
            return SetUp { dns, transport, tls: transport };
        };
        let mut dns =
            socket.created_by.and_then(|job| self.dns.get(&job)).copied().unwrap_or_default();
        // New versions do not tell when the name was resolved: the connection began then.
        dns.end = dns.end.or(socket.connect.begin);
        SetUp { dns, transport: socket.connect, tls: socket.tls }
    }
}
