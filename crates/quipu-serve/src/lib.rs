//! What a Quipu server answers with, independent of the version of HTTP: `tower` services that the listeners of all
//! versions call.
//!
//! Start with five types:
//! - [`files::Files`]: the files of a folder;
//! - [`Replay`]: a recorded page with all its hosts;
//! - [`Recorded`]: a service with an access log and [`Metrics`];
//! - [`http3::Server`]: HTTP/3, over all paths that clients open;
//! - [`tcp::Server`]: HTTP/1.1 and HTTP/2 over TCP and TLS, which announces HTTP/3 on the same port.
//!
//! [`experiments`] are further endpoints, with policies that clients choose; [`warm_up`] is what clients of a recorded page
//! may ask for before it.
//!
//! [`Certificates`] is the certificate that the listeners of TCP and QUIC share, reloaded when its files change.
//!
//! ```
//! use std::sync::Arc;
//!
//! use quipu_serve::access::{AccessLog, Format};
//! use quipu_serve::files::Files;
//! use quipu_serve::tcp::{Listener, Server};
//! use quipu_serve::{Certificates, LOOK_AFTER, Metrics, Recorded};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let (site, identity) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! # let (site, identity) = (site.path(), identity.path());
//! let metrics = Metrics::new();
//! let (log, writer) = AccessLog::start(Format::Combined, std::io::stdout())?;
//! let service = Recorded::new(Files::new(site)?).log(log).metrics(metrics.clone());
//!
//! let certificates = Arc::new(Certificates::kept_in(identity, "localhost")?);
//! println!("fingerprint of the certificate: {}", certificates.pin());
//! let watch = tokio::spawn(Arc::clone(&certificates).watch(LOOK_AFTER));
//!
//! // An HTTP/3 listener on the same port calls the same service, with `certificates.quic(&[b"h3"])`.
//! let listener = Listener::bind("127.0.0.1:0".parse()?)?;
//! println!("https://localhost:{}/", listener.local_address().port());
//! let server = Server::new(listener, certificates.tcp()?, service).metrics(metrics);
//!
//! let (stop, stops) = tokio::sync::oneshot::channel::<()>();
//! let server = tokio::spawn(server.run(async { drop(stops.await) }));
//! stop.send(()).ok();
//! assert_eq!(server.await?.cut, 0);
//! watch.abort();
//! writer.finish()?;
//! # Ok(())
//! # }
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(example()).unwrap();
//! ```
//!
//! From the ground up: `clock` reads the time, [`body`] defines the body of responses, and `client` the address of a
//! client. A service is a [`tower_service::Service`] whose requests may have any body and whose responses have a
//! [`Body`]; it never fails.
//!
//! Not here: a command line.

pub mod access;
pub mod body;
mod certificates;
mod client;
mod clock;
pub mod experiments;
pub mod files;
pub mod http3;
pub mod metrics;
mod replay;
mod site;
pub mod tcp;
pub mod warm_up;

pub use access::Recorded;
pub use body::Body;
pub use certificates::{Certificates, LOOK_AFTER, Reloaded};
pub use client::Client;
pub use metrics::Metrics;
pub use replay::{Difference, Replay};
pub use site::Site;
