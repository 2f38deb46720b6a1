//! The engine without async, sockets or simulator: `cargo run --example drive_by_hand`.
//!
//! Two endpoints, a wire that is a list, and the one loop that every driver of the engine has:
//! send what can be sent, let the applications act, then go to the next arrival or deadline. Look
//! at `main`; `Wire` is where the engine writes its datagrams, `act` is an application.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;

use quipu_base::{Duration, Instant, Seed, StreamDirection};
use quipu_null_tls::{NullClient, NullServer};
use quipu_quic::endpoint::{ClientConfig, ServerConfig};
use quipu_quic::{
    Arrival, ConnectionEvent, ConnectionHandle, Endpoint, Outbox, Route, Transmit, TransportConfig,
};
use quipu_testkit::plain_policies;

/// Each datagram takes so long.
const DELAY: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    let (here, there) = ("192.0.2.1:50000".parse()?, "192.0.2.2:443".parse()?);
    let transport = Arc::new(TransportConfig::default());
    let mut now = Instant::ZERO;

    let mut server = Endpoint::seeded(Seed::new(1).stream("server", 0));
    let tls = Arc::new(NullServer::new(&[b"greeting"])?);
    let (policies, settings) = (plain_policies(), Arc::clone(&transport));
    server.listen(ServerConfig::new(tls, settings, policies))?;

    let mut client = Endpoint::seeded(Seed::new(1).stream("client", 0));
    let tls = Arc::new(NullClient::new(&[b"greeting"])?);
    let config = ClientConfig::new(tls, transport, plain_policies());
    let handle = client.connect(now, &config, "server", Route::new(here, there))?;

    let mut ends = [("client", client, Some(handle)), ("server", server, None)];
    let mut in_flight = VecDeque::new();
    loop {
        for (index, (name, endpoint, handle)) in ends.iter_mut().enumerate() {
            *handle = handle.or_else(|| endpoint.accept());
            act(name, endpoint, *handle, now)?;
            let mut wire = Wire::default();
            endpoint.poll_transmit(now, &mut wire);
            let sent = wire.sent.into_iter();
            in_flight
                .extend(sent.map(|(route, datagram)| (now + DELAY, 1 - index, route, datagram)));
        }
        let arrival = in_flight.front().map(|(at, ..)| *at);
        let deadlines = ends.iter().map(|(_, endpoint, _)| endpoint.poll_timeout());
        let Some(next) = deadlines.chain([arrival]).flatten().min() else { return Ok(()) };
        now = now.max(next);
        for (_, endpoint, _) in &mut ends {
            endpoint.handle_timeout(now);
        }
        while in_flight.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, receiver, sender, mut datagram)) = in_flight.pop_front() else { break };
            let route = Route::new(sender.remote, sender.local);
            ends[receiver].1.handle_datagram(now, Arrival { route, ecn: 0 }, &mut datagram);
        }
    }
}

/// The client greets on a stream, the server answers on it, the client closes.
fn act(
    name: &str,
    endpoint: &mut Endpoint,
    handle: Option<ConnectionHandle>,
    now: Instant,
) -> Result<(), Box<dyn Error>> {
    let Some(connection) = handle.and_then(|handle| endpoint.connection_mut(handle)) else {
        return Ok(());
    };
    while let Some(event) = connection.poll() {
        println!("{now} {name}: {event:?}");
        match event {
            ConnectionEvent::Connected if name == "client" => {
                let stream = connection.open_stream(now, StreamDirection::Bidirectional);
                let stream = stream.ok_or("the server allows no stream")?;
                connection.write(now, stream, "hello".into())?;
                connection.finish(now, stream)?;
            }
            ConnectionEvent::Readable(stream) => {
                let mut text = Vec::new();
                let read =
                    connection.read(now, stream, &mut |bytes| text.extend_from_slice(bytes))?;
                println!("{now} {name}: received {:?}", String::from_utf8_lossy(&text));
                if name == "client" {
                    connection.close(now, 0, b"thank you");
                } else if read.end {
                    connection.write(now, stream, "hello to you".into())?;
                    connection.finish(now, stream)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where the engine writes its datagrams.
#[derive(Default)]
struct Wire {
    buffer: Vec<u8>,
    sent: Vec<(Route, Vec<u8>)>,
}

impl Outbox for Wire {
    fn has_room(&self) -> bool {
        true
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        self.buffer.resize(size, 0);
        &mut self.buffer
    }

    fn send(&mut self, transmit: Transmit) {
        self.sent.push((transmit.route, self.buffer[..transmit.len].to_vec()));
    }
}
