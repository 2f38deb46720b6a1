//! Programs of this machine over emulated links. Root may do all of it, an ordinary user where the system lets it make
//! user namespaces; else the tests say so and do nothing.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests, in real time"
)]

mod delay;
mod drives;
mod hosts;
mod links;
mod measure;
mod setup;
mod tcp;
