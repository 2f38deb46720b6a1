//! Scripts of random operations, faults of the network, and many connections at once.

mod found;
mod liveness;
mod many;
mod trials;
