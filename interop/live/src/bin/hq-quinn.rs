//! quinn as a peer.

use quinn as library;

#[path = "../quinnlike.rs"]
mod quinnlike;
#[path = "../quinnlike/setup.rs"]
mod setup;

mod extra {
    //! quinn has one path.

    use quipu_interop_live::{Failure, Options};

    pub(crate) fn transport(_: &Options, _: &mut quinn::TransportConfig) {}

    pub(crate) fn same_ids(config: &mut quinn::EndpointConfig) {
        config.cid_generator(|| Box::new(quinn_proto::HashedConnectionIdGenerator::from_key(1)));
    }

    pub(crate) async fn act(_: &Options, _: &quinn::Connection) -> Result<(), Failure> {
        Ok(())
    }

    pub(crate) fn watch(_: &quinn::Connection) {}

    pub(crate) fn has_paths() -> bool {
        false
    }
}

fn main() {
    quinnlike::main();
}
