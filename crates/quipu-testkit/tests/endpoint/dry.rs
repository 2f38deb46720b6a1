//! A source of random bytes that fails at any point.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quipu_base::{Duration, StreamDirection};
use quipu_quic::endpoint::EndpointConfig;
use quipu_quic::random::{NoRandomness, SecureSource};
use quipu_quic::{ConnectionEvent, Endpoint, Route};
use quipu_testkit::{SERVER_NAME, server_address};

use super::{Two, events, plain_server};

/// Gives so many bytes, all different from zero, and then none.
struct Budget {
    left: AtomicUsize,
    next: AtomicUsize,
}

impl SecureSource for Budget {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoRandomness> {
        let take = |left: usize| left.checked_sub(bytes.len());
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .map_err(|_| NoRandomness)?;
        for byte in bytes {
            // No two runs of eight are alike.
            let next = self.next.fetch_add(1, Ordering::Relaxed) as u64;
            *byte = (next.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8 | 1;
        }
        Ok(())
    }
}

fn endpoint(bytes: usize, first: usize) -> Endpoint {
    let budget = Budget { left: bytes.into(), next: first.into() };
    Endpoint::new(EndpointConfig::default(), Arc::new(budget)).unwrap()
}

/// Both ends run out of random bytes, sooner or later. What cannot be random is not sent: there are
/// fewer connection IDs, paths are not validated, clients are not let in, and nothing else happens.
#[test]
fn a_source_that_fails_stops_what_needs_it_and_nothing_else() {
    let mut connected = 0;
    for client in (0..8).map(|pools| pools * 256) {
        for server in (0..8).map(|pools| pools * 256) {
            let mut two = Two::new(|config| config);
            (two.client, two.server) = (endpoint(client, 0), endpoint(server, 1 << 20));
            two.server.listen(plain_server()).unwrap();
            let route = Route::new(([10, 0, 0, 1], 1000).into(), server_address());
            let handle = two.client.connect(two.now, &two.config, SERVER_NAME, route);
            let Ok(handle) = handle else {
                assert_eq!(client, 0);
                continue;
            };
            two.settle();
            if events(&mut two.client, handle).contains(&ConnectionEvent::Connected) {
                connected += 1;
                let now = two.now;
                let connection = two.client.connection_mut(handle).unwrap();
                let second = Route::new(([10, 0, 0, 2], 1000).into(), server_address());
                // Fails where there is no connection ID for it.
                let _ = connection.open_path(now, second);
                let stream = connection.open_stream(now, StreamDirection::Bidirectional).unwrap();
                connection.write(now, stream, vec![7; 5_000].into()).unwrap();
                two.wait(Duration::from_secs(3));
                let far = two.server.accept().unwrap();
                let read = events(&mut two.server, far);
                assert!(read.contains(&ConnectionEvent::Readable(stream)), "{client} {server}");
            } else {
                assert_eq!(server, 0, "a client is let in while there are connection IDs");
            }
        }
    }
    assert_eq!(connected, 49);
}
