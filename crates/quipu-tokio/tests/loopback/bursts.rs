//! What leaves back to back is no more than the pacer lets go: batches do not join bursts.

use std::collections::BTreeMap;

use bytes::Bytes;
use quipu_base::{Duration, Instant, PathId};
use quipu_quic::Burst;
use quipu_tokio::replay::{Recording, Sent};
use quipu_tokio::{Endpoint, PathEvent, TransportConfig, Via, policies};

use crate::setup::{NAME, Setup, limited, noise};

/// Datagrams of a path before its pace counts: until a round trip is known there is none.
const UNPACED: usize = 50;

/// Smaller ones carry acknowledgements, which are not paced.
const LEAST_DATA: usize = 200;

/// Packets that a probe timeout sends beside the pace.
/// <https://www.rfc-editor.org/rfc/rfc9002#section-6.2.4>
const PROBES: usize = 2;

/// What a server that sends 3 MB over two paths, with bursts of `packets`, sent.
struct Outcome {
    /// Datagrams with data that left a path in one turn, the most of them.
    most: usize,
    /// Turns of a path in which anything left.
    turns: usize,
    /// Calls of the kernel.
    calls: u64,
}

async fn bursts_of(packets: u32) -> Outcome {
    let burst = Burst { packets, time: Duration::ZERO, ..Burst::default() };
    let mut setup = Setup::with(TransportConfig { burst, ..TransportConfig::default() });
    setup.server.policies = policies(&quipu_policy::Registry::builtin(), "path=path-rr").unwrap();
    let recording = Recording::default();
    let server = Endpoint::server(setup.server.clone()).record_inputs(&recording);
    let server = server.listen("127.0.0.1:0".parse().unwrap()).bind().unwrap();
    let address = server.local_addresses()[0];
    let client = Endpoint::client().via(Via::Address("127.0.0.1".parse().unwrap()));
    let client = client.via(Via::Address("127.0.0.2".parse().unwrap())).bind().unwrap();
    let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
    let connect = async { client.connect(&setup.client, address, NAME).await.unwrap() };
    let (there, here) = tokio::join!(accept, connect);
    let mut told = there.path_events();
    if there.paths().len() < 2 {
        while !matches!(told.next().await, Some(PathEvent::Up(_))) {}
    }
    let data = Bytes::from(noise(5, 3 << 20));
    let mut send = there.open_unidirectional().await.unwrap();
    let write = async {
        send.write_bytes(data.clone()).await.unwrap();
        send.finish().unwrap();
        send.delivered().await.unwrap();
    };
    let read = async {
        let mut receive = here.accept_unidirectional().await.unwrap();
        assert!(receive.read_to_limit(1 << 23).await.unwrap() == data);
    };
    tokio::join!(write, read);
    here.close(0, b"");
    there.closed().await;
    let calls = server.stats().sent.calls;
    drop((send, here, there));
    server.wait_idle().await;
    outcome(&recording.take().sent, calls)
}

fn outcome(sent: &[Sent], calls: u64) -> Outcome {
    let mut of_path: BTreeMap<PathId, usize> = BTreeMap::new();
    let mut turns: BTreeMap<(Instant, PathId), usize> = BTreeMap::new();
    for datagram in sent {
        let path = datagram.transmit.path.id;
        let nth = of_path.entry(path).or_default();
        *nth += 1;
        let turn = turns.entry((datagram.at, path)).or_default();
        *turn += usize::from(*nth > UNPACED && datagram.bytes.len() >= LEAST_DATA);
    }
    assert!(of_path.len() == 2 && of_path.values().all(|sent| *sent > 2 * UNPACED), "{of_path:?}");
    Outcome { most: turns.values().copied().max().unwrap_or(0), turns: turns.len(), calls }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_are_no_larger_than_the_pacing_burst_of_their_path() {
    limited(async {
        let Outcome { most, turns, calls } = bursts_of(4).await;
        assert!((4..=4 + PROBES).contains(&most), "{most} datagrams at once");
        // Each has a call of its own: nothing waits for the next.
        assert!(calls >= turns as u64, "{calls} calls in {turns} turns");
        // It is the burst that keeps them small.
        let Outcome { most, .. } = bursts_of(20).await;
        assert!((12..=20 + PROBES).contains(&most), "{most} datagrams at once");
    })
    .await;
}
