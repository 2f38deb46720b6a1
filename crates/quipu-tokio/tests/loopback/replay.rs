//! Sockets and virtual time run one code: what the engines of both ends were given live is given to
//! fresh ones, which decide and send the same.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use quipu_base::{Instant, PathId};
use quipu_policy::Registry;
use quipu_quic::DatagramConfig;
use quipu_quic::endpoint::PolicyFactory;
use quipu_quic::recorder::{Event, Recorder, RecorderFactory};
use quipu_tokio::replay::{Input, Recorded, Recording, Sent, Setup, replay};
use quipu_tokio::{
    ClientConfig, Endpoint, PathEvent, ServerConfig, TransportConfig, Via, policies,
};

use crate::fixed_tls::Identity;
use crate::setup::{NAME, limited, noise};

/// What happened in all connections of an endpoint: packets, decisions of policies, states.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl Recorder for Events {
    fn record(&mut self, now: Instant, event: &Event<'_>) {
        self.0.lock().unwrap().push(format!("{now:?} {event:?}"));
    }
}

impl Events {
    fn factory(&self) -> RecorderFactory {
        let events = self.clone();
        Arc::new(move |_| Some(Box::new(events.clone())))
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn server_config(identity: &Identity, policies: &PolicyFactory) -> ServerConfig {
    ServerConfig::new(Arc::new(identity.server()), transport(), Arc::clone(policies))
}

fn client_config(identity: &Identity, policies: &PolicyFactory) -> ClientConfig {
    ClientConfig::new(Arc::new(identity.client()), transport(), Arc::clone(policies))
}

fn transport() -> Arc<TransportConfig> {
    let datagrams = Some(DatagramConfig::default());
    Arc::new(TransportConfig { datagrams, ..TransportConfig::default() })
}

/// What an end did, live.
struct Live {
    recorded: Recorded,
    events: Vec<String>,
}

/// Streams both ways, datagrams, a path that goes and comes back, over two paths.
async fn live(identity: &Identity, policies: &PolicyFactory) -> [Live; 2] {
    let recordings = [Recording::default(), Recording::default()];
    let events = [Events::default(), Events::default()];
    let server = Endpoint::server(server_config(identity, policies));
    let server = server.record_inputs(&recordings[0]).record(events[0].factory());
    let server = server.listen("127.0.0.1:0".parse().unwrap()).bind().unwrap();
    let address = server.local_addresses()[0];
    let client = Endpoint::client().record_inputs(&recordings[1]).record(events[1].factory());
    let client = client.via(Via::Address("127.0.0.1".parse().unwrap()));
    let client = client.via(Via::Address("127.0.0.2".parse().unwrap())).bind().unwrap();
    let config = client_config(identity, policies);
    let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
    let connect = async { client.connect(&config, address, NAME).await.unwrap() };
    let (there, here) = tokio::join!(accept, connect);
    let mut told = here.path_events();
    if here.paths().len() < 2 {
        while !matches!(told.next().await, Some(PathEvent::Up(_))) {}
    }
    let data = Bytes::from(noise(3, 3 << 20));
    let echo = {
        let there = there.clone();
        tokio::spawn(async move {
            let (mut send, mut receive) = there.accept_bidirectional().await.unwrap();
            let all = receive.read_to_limit(1 << 23).await.unwrap();
            send.write_bytes(all.into()).await.unwrap();
            send.finish().unwrap();
            send.delivered().await.unwrap();
            there.send_datagram(Bytes::from_static(b"done")).unwrap();
        })
    };
    let (mut send, mut receive) = here.open_bidirectional().await.unwrap();
    send.set_priority(1, true).unwrap();
    send.write_bytes(data.clone()).await.unwrap();
    send.finish().unwrap();
    assert!(receive.read_to_limit(1 << 23).await.unwrap() == data);
    assert_eq!(here.receive_datagram().await.unwrap(), "done");
    echo.await.unwrap();
    here.remove_path(PathId(1)).unwrap();
    here.add_path(Via::Address("127.0.0.2".parse().unwrap())).await.unwrap();
    here.close(7, b"over");
    client.wait_idle().await;
    there.closed().await;
    drop((send, receive, here, there));
    server.wait_idle().await;
    let [there, here] =
        [0, 1].map(|end| Live { recorded: recordings[end].take(), events: events[end].take() });
    [there, here]
}

/// Fails where both differ first, without printing the rest.
fn assert_same<T: PartialEq + std::fmt::Debug>(what: &str, live: &[T], again: &[T]) {
    for (nth, (live, again)) in live.iter().zip(again).enumerate() {
        assert!(live == again, "{what} {nth} was\n{live:?}\nand is\n{again:?}");
    }
    assert_eq!(live.len(), again.len(), "{what}: number");
}

fn count(recorded: &Recorded, is: impl Fn(&Input) -> bool) -> usize {
    recorded.steps.iter().filter(|step| is(&step.input)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_run_repeats_in_virtual_time() {
    limited(async {
        let identity = Identity::new();
        let policies = policies(&Registry::builtin(), "path=path-rr").unwrap();
        let [there, here] = live(&identity, &policies).await;
        for (end, live) in [("server", there), ("client", here)] {
            let events = Events::default();
            let setup = Setup {
                client: Some(client_config(&identity, &policies)),
                server: (end == "server").then(|| server_config(&identity, &policies)),
                recorders: Some(events.factory()),
                ..Setup::default()
            };
            let sent: Vec<Sent> = replay(&live.recorded, &setup).unwrap();
            assert_same(&format!("{end}: event"), &live.events, &events.take());
            assert_same(&format!("{end}: datagram"), &live.recorded.sent, &sent);
            // It was worth it: both paths, timers and losses of time included.
            assert!(sent.len() > 1_000, "{} datagrams", sent.len());
            let routes = [0, 1].map(|at| {
                let nth = |sent: &&Sent| sent.transmit.path.id == PathId(at);
                sent.iter().filter(nth).count()
            });
            assert!(routes.iter().all(|datagrams| *datagrams > 100), "{routes:?}");
            assert!(count(&live.recorded, |input| matches!(input, Input::Timeout)) > 0);
            assert!(count(&live.recorded, |input| matches!(input, Input::Datagram(..))) > 1_000);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_input_is_noticed() {
    limited(async {
        let identity = Identity::new();
        let policies = policies(&Registry::builtin(), "path=path-rr").unwrap();
        let [_, mut here] = live(&identity, &policies).await;
        let setup = Setup { client: Some(client_config(&identity, &policies)), ..Setup::default() };
        // One datagram of the middle is lost this time.
        let is_datagram =
            |nth: &usize| matches!(here.recorded.steps[*nth].input, Input::Datagram(..));
        let all: Vec<usize> = (0..here.recorded.steps.len()).filter(is_datagram).collect();
        here.recorded.steps.remove(all[all.len() / 2]);
        let again = replay(&here.recorded, &setup);
        assert!(again.is_err() || again.unwrap() != here.recorded.sent);
    })
    .await;
}
