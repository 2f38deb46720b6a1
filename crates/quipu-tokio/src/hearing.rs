//! Who waits for a handshake hears what the network says of its datagrams.

use std::convert::Infallible;
use std::sync::Arc;

use quipu_quic::Route;

use crate::icmp::Report;
use crate::socket::Socket;
use crate::state::{Shared, State};

/// The kernel keeps for this socket what the network says of its datagrams, for as long as this lives.
/// Nobody else hears: an established connection has nothing to fear from what others forge.
pub(crate) struct Hearing {
    shared: Arc<Shared>,
    socket: Arc<Socket>,
}

impl Hearing {
    /// Hears of datagrams by that route, if there is a socket for it.
    pub(crate) fn begin(shared: &Arc<Shared>, route: &Route) -> Option<Self> {
        let state = shared.lock();
        let socket = state.batches.sockets().iter().find(|socket| socket.serves(route))?;
        // Under the lock: a socket is renewed while nobody hears.
        socket.add_listener();
        Some(Hearing { shared: Arc::clone(shared), socket: Arc::clone(socket) })
    }

    /// Tells every handshake what is said of it.
    pub(crate) async fn tell_all(&self) -> Infallible {
        loop {
            let report = self.socket.next_report().await;
            tell(&mut self.shared.lock(), &self.socket, &report);
        }
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        if self.socket.remove_listener() {
            self.shared.act(|state, _| state.batches.set_stale());
        }
    }
}

/// Tells the handshakes that go by a socket what the network says, unless their server has answered.
pub(crate) fn tell(state: &mut State, socket: &Socket, report: &Report) {
    let State { engine, entries, .. } = state;
    for (&handle, entry) in entries {
        let has_answered = || {
            let mut paths = engine.connection(handle)?.path_samples();
            Some(paths.any(|path| path.counters.bytes_received > 0))
        };
        let goes_there = entry.started.is_some_and(|started| socket.serves(&started.route));
        if goes_there && entry.is_beginning() && has_answered() == Some(false) {
            entry.on_report(report);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};

    use quipu_base::{Duration, Instant};
    use quipu_policy::Registry;
    use quipu_quic::endpoint::{ClientConfig, EndpointConfig};
    use quipu_quic::tls::rustls::{provider, secure_source};
    use tracing::Span;

    use super::*;
    use crate::clock::Clock;
    use crate::connecting::connect;
    use crate::driver::drive;
    use crate::engine::{Engine, Parts};
    use crate::error::ConnectError;
    use crate::icmp::{Hint, Reason};
    use crate::identity::{Pin, pinned};
    use crate::socket::KERNEL_BUFFER;
    use crate::timer::Timer;

    /// An endpoint of a client, with its driver.
    fn client() -> Arc<Shared> {
        let (config, source) = (EndpointConfig::default(), secure_source(&provider()));
        let parts = Parts { config, source, server: None, recorders: None };
        let engine = Engine::new(parts, Instant::ZERO, None).unwrap();
        let shared = Shared::new(engine, Clock::start(), KERNEL_BUFFER, Span::none());
        let shared = Arc::new(shared);
        tokio::spawn(drive(Arc::clone(&shared), Timer::new().unwrap(), None));
        shared
    }

    /// What comes of a handshake with a server that says nothing, if the network says `reason` of it and quotes
    /// `quoted` of the first datagram's header, and what the endpoint heard.
    async fn unanswered(reason: Reason, quoted: usize) -> (ConnectError, Option<Hint>) {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let remote = silent.local_addr().unwrap();
        let shared = client();
        let tls = pinned(Pin([0; 32]), &[b"test"]).unwrap();
        let policies = crate::policies(&Registry::builtin(), "").unwrap();
        let config = ClientConfig::new(Arc::new(tls), Arc::default(), policies);
        let config = config.with_handshake_timeout(Duration::from_millis(300));
        let connecting = connect(&shared, &[], &config, remote, "quipu.test");
        let saying = async {
            while shared.lock().entries.is_empty() {
                tokio::task::yield_now().await;
            }
            say(&shared, remote, reason, quoted)
        };
        let (connected, heard) = tokio::join!(connecting, saying);
        (connected.unwrap_err(), heard)
    }

    fn say(shared: &Shared, remote: SocketAddr, reason: Reason, quoted: usize) -> Option<Hint> {
        let mut state = shared.lock();
        let entry = state.entries.values().next().unwrap();
        let original = entry.started.unwrap().original_dcid;
        let mut header = vec![0xc0, 0, 0, 0, 1, original.length() as u8];
        header.extend_from_slice(original.as_bytes());
        header.truncate(quoted);
        let hint = Hint { reason, from: Some("192.0.2.254".parse().unwrap()) };
        let socket = Arc::clone(&state.batches.sockets()[0]);
        tell(&mut state, &socket, &Report { remote, hint, quoted: header });
        state.entries.values().next().unwrap().hint
    }

    #[tokio::test]
    async fn a_host_that_cannot_be_reached_explains_why_a_handshake_timed_out() {
        let (error, heard) = unanswered(Reason::Host, 14).await;
        assert!(heard.is_some());
        assert!(matches!(error, ConnectError::Unreachable { .. }), "{error:?}");
        let message = error.to_string();
        let told = "by 127.0.0.1: host unreachable, says 192.0.2.254; is the server's host on";
        assert!(message.contains(told), "{message}");
    }

    #[tokio::test]
    async fn a_message_that_quotes_no_connection_id_ends_nothing() {
        let (error, _) = unanswered(Reason::Port, 0).await;
        assert!(matches!(error, ConnectError::Unreachable { .. }), "{error:?}");
        assert!(error.to_string().contains("port unreachable, says 192.0.2.254"), "{error}");
        let (error, _) = unanswered(Reason::Port, 14).await;
        assert!(matches!(error, ConnectError::NobodyListens(_)), "{error:?}");
    }

    #[tokio::test]
    async fn nothing_is_heard_once_the_server_has_answered() {
        let (server, shared) = (UdpSocket::bind("127.0.0.1:0").unwrap(), client());
        server.set_nonblocking(true).unwrap();
        let server = tokio::net::UdpSocket::from_std(server).unwrap();
        let remote = server.local_addr().unwrap();
        let tls = pinned(Pin([0; 32]), &[b"test"]).unwrap();
        let policies = crate::policies(&Registry::builtin(), "").unwrap();
        let config = ClientConfig::new(Arc::new(tls), Arc::default(), policies);
        let config = config.with_handshake_timeout(Duration::from_secs(600));
        let connecting = connect(&shared, &[], &config, remote, "quipu.test");
        let saying = async {
            let mut first = [0; 1500];
            let (_, client) = server.recv_from(&mut first).await.unwrap();
            // A datagram for the client's connection ID, whatever is in it.
            let at = 6 + usize::from(first[5]);
            let id = first[at + 1..][..usize::from(first[at])].to_vec();
            let mut answer = vec![0xc0, 0, 0, 0, 1, id.len() as u8];
            answer.extend(id);
            answer.extend([0; 100]);
            server.send_to(&answer, client).await.unwrap();
            let received = || {
                let state = shared.lock();
                state.counters.datagrams_received
            };
            while received() == 0 {
                tokio::task::yield_now().await;
            }
            let heard = say(&shared, remote, Reason::Port, 14);
            assert!(!shared.lock().entries.values().next().unwrap().refused);
            heard
        };
        tokio::select! {
            biased;
            heard = saying => assert_eq!(heard, None),
            connected = connecting => unreachable!("no handshake is over: {connected:?}"),
        }
    }
}
