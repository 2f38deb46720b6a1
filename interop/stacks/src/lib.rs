//! Published QUIC libraries as stacks of the `quipu` command, for pages that are loaded over emulated links:
//! HTTP/3 of `h3` over [`Quinn`], by one path, or over [`Noq`], by all paths.
//!
//! - `http3` is the client and the server of HTTP/3, over whatever `h3` runs on;
//! - `quinn` and `noq` have the endpoints of these libraries; `noq::transport` is how `h3` runs on noq, for which there
//!   is no published adapter;
//! - `setup` has the configurations and ends, which are the same for both.
//!
//! The libraries keep their defaults but for what scenarios say. Not here: pages, links and results, which are
//! the command's.

mod http3;
mod noq;
mod quinn;
mod setup;

use std::error::Error;
use std::sync::Arc;

use quipu_cli::foreign::ForeignStack;

pub use crate::noq::Noq;
pub use crate::quinn::Quinn;

/// Why something failed, as the libraries have it.
type Failure = Box<dyn Error + Send + Sync>;

/// All stacks of this package.
pub fn stacks() -> Vec<Arc<dyn ForeignStack>> {
    vec![Arc::new(Quinn), Arc::new(Noq)]
}
