//! What TLS is asked for, over both of its implementations: versions, key phases, what the
//! application is told.
#![expect(clippy::panic, reason = "tests")]

mod attempts;
mod early;
mod facts;
mod phases;
mod same;
mod versions;
mod visit;

use quipu_base::Duration;
use quipu_testkit::forge::Setup;
use quipu_testkit::{Identity, Tls};

/// One way: the round trip is 20 ms.
const DELAY: Duration = Duration::from_millis(10);

/// Null TLS, and rustls with a new identity.
fn kinds_of_tls() -> [Tls; 2] {
    [Tls::Null { chain: 1_000 }, Tls::Rustls(Identity::generate().expect("a certificate"))]
}

/// Two ends with each kind of TLS.
fn each(setup: &Setup, test: impl Fn(&Setup)) {
    for tls in kinds_of_tls() {
        println!("{}", if matches!(tls, Tls::Null { .. }) { "null TLS" } else { "rustls" });
        test(&Setup { tls, ..setup.clone() });
    }
}
