//! Parts of a sweep, for several machines.

use std::fmt;
use std::str::FromStr;

/// A part of a sweep, written as `2/4`: the runs whose keys leave the same remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 1 to `count`.
    index: u32,
    count: u32,
}

impl Shard {
    /// Whether the run with that key is of this part.
    pub(super) fn has(self, key: u128) -> bool {
        key % u128::from(self.count) == u128::from(self.index - 1)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    /// Reads `2/4`: the second of four.
    fn from_str(text: &str) -> Result<Shard, String> {
        let expected = || format!("`{text}`: expected a part such as 1/4, from 1/4 to 4/4");
        let (index, count) = text.split_once('/').ok_or_else(expected)?;
        let number = |part: &str| part.parse::<u32>().map_err(|_| expected());
        let (index, count) = (number(index)?, number(count)?);
        if (1..=count).contains(&index) { Ok(Shard { index, count }) } else { Err(expected()) }
    }
}
