//! Two default routes of different metric: each path leaves by its own interface, which the interfaces
//! count, and the client needs no right for that.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use quipu_policy::{PathState, Registry};
use quipu_tokio::identity::{Pin, pinned, self_signed};
use quipu_tokio::{
    ClientConfig, ConnectError, Endpoint, ServerConfig, TransportConfig, Via, policies,
};

use crate::cuts::script::Shape;
use crate::cuts::world::{SERVER, World};
use crate::network::may_make;
use crate::process::{Ended, in_namespace};

const PIN: &str = "QUIPU_TEST_ROUTES_PIN";
const ALPN: &[u8] = b"routes";
const SIZE: usize = 6 << 20;
const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn each_path_leaves_by_its_own_interface_without_rights() {
    if let Err(reason) = may_make() {
        eprintln!("skipped: this user may not make network namespaces: {reason}");
        return;
    }
    let environment = [(PIN, String::new())];
    let Ended { success, said } = in_namespace("routes::host", &environment, LIMIT);
    assert!(success, "{said}");
}

/// Bytes that left by each of the client's interfaces.
fn sent_by_interfaces() -> [u64; 2] {
    let counters = std::fs::read_to_string("/proc/net/dev").unwrap();
    [0, 1].map(|link| {
        let name = format!("v{link}:");
        let own = |line: &str| line.trim().strip_prefix(&name).map(str::to_owned);
        let line = counters.lines().find_map(own).unwrap();
        // Eight columns of what came are before those of what left.
        line.split_whitespace().nth(8).unwrap().parse().unwrap()
    })
}

#[test]
#[ignore = "run by the test above, in a namespace"]
fn host() {
    if std::env::var(PIN).is_err() {
        return;
    }
    // So different that one is not taken for the other.
    let world = World::new([Shape { rate: 45, queue: 20 }, Shape { rate: 15, queue: 20 }]);
    let (tls, pin) = self_signed("server", &[ALPN]).unwrap();
    let policies = policies(&Registry::builtin(), "").unwrap();
    let config = ServerConfig::new(Arc::new(tls), Arc::default(), policies);
    let there = world.server_runtime();
    there.spawn(async move {
        let endpoint = Endpoint::server(config).listen(SERVER.parse().unwrap()).bind().unwrap();
        let connection = endpoint.accept().await.unwrap().accept().await.unwrap();
        let mut stream = connection.accept_unidirectional().await.unwrap();
        stream.read_to_limit(SIZE).await.unwrap();
        connection.closed().await;
    });
    let before = sent_by_interfaces();
    // Root of this namespace without a single capability, and no way to get one.
    let output = Command::new("setpriv")
        .args(["--bounding-set", "-all", "--inh-caps", "-all", "--no-new-privs"])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "routes::client", "--nocapture"])
        .env(PIN, pin.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let after = sent_by_interfaces();
    for link in [0, 1] {
        let start = format!("v{link} sent ");
        let told = said.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
        let payload: u64 = told.parse().unwrap();
        let counted = after[link] - before[link];
        // More by the headers of UDP, IP and the link; less by what the queue before the link dropped.
        assert!(payload > 1 << 19, "v{link}: {payload} bytes of payload");
        let range = payload / 4 * 3..payload / 4 * 5;
        assert!(range.contains(&counted), "v{link}: {counted} bytes, expected {range:?}");
    }
}

#[test]
#[ignore = "run by the test above, without rights"]
fn client() {
    let Ok(Ok(pin)) = std::env::var(PIN).map(|pin| pin.parse::<Pin>()) else { return };
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let rights = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    assert_eq!(rights.trim(), "0000000000000000");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        crate::cuts::run::until_up(0).await.unwrap();
        crate::cuts::run::until_up(1).await.unwrap();
        let tls = Arc::new(pinned(pin, &[ALPN]).unwrap());
        let policies = policies(&Registry::builtin(), "path=minrtt").unwrap();
        let config = ClientConfig::new(tls, Arc::new(TransportConfig::default()), policies);
        let endpoint = Endpoint::client().via(Via::Auto).bind().unwrap();
        let connection =
            endpoint.connect(&config, SERVER.parse().unwrap(), "server").await.unwrap();
        let usable = || {
            let paths = connection.paths();
            paths.iter().filter(|path| path.state == PathState::Usable).count()
        };
        while usable() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut stream = connection.open_unidirectional().await.unwrap();
        stream.write_bytes(vec![7; SIZE].into()).await.unwrap();
        stream.finish().unwrap();
        stream.delivered().await.unwrap();
        // The harness has left its line open.
        println!();
        for path in connection.paths() {
            println!("{} sent {}", path.interface.unwrap(), path.sample.counters.bytes_sent);
        }
        connection.close(0, b"");
        endpoint.wait_idle_for(quipu_base::Duration::from_secs(3)).await;
    });
}

#[test]
fn a_server_to_which_the_host_has_no_route_is_an_error_at_once() {
    if let Err(reason) = may_make() {
        eprintln!("skipped: this user may not make network namespaces: {reason}");
        return;
    }
    let Ended { success, said } = in_namespace("routes::without_routes", &[], LIMIT);
    assert!(success, "{said}");
}

#[test]
#[ignore = "run by the test above, in a namespace without interfaces that are up"]
fn without_routes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let tls = pinned(Pin([0; 32]), &[ALPN]).unwrap();
        let policies = policies(&Registry::builtin(), "").unwrap();
        let config = ClientConfig::new(Arc::new(tls), Arc::default(), policies);
        let client = Endpoint::client().bind().unwrap();
        let server = "192.0.2.1:4433".parse().unwrap();
        let error = client.connect(&config, server, "server").await.unwrap_err();
        assert!(matches!(error, ConnectError::NoRoute { .. }), "{error:?}");
        assert!(error.to_string().contains("no route to 192.0.2.1:4433"), "{error}");
    });
}
