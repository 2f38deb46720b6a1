//! What a program saw, as lines that a script reads: `fact NAME VALUE`.

use std::fmt::Display;

/// Tells a fact. A later one of the same name adds to it.
pub fn tell(name: &str, value: impl Display) {
    println!("fact {name} {value}");
}
