//! noq as a peer, with several paths.

use noq as library;

#[path = "../noq_paths.rs"]
mod extra;
#[path = "../quinnlike.rs"]
mod quinnlike;

fn main() {
    quinnlike::main();
}
