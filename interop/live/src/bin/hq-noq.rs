//! noq as a peer, with several paths.

use noq as library;

#[path = "../noq_paths.rs"]
mod extra;
#[path = "../quinnlike.rs"]
mod quinnlike;
#[path = "../quinnlike/setup.rs"]
mod setup;

fn main() {
    quinnlike::main();
}
