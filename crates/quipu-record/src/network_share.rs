//! How much of a page time a network can change, in words.

/// The network's share of a page time, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetworkShare(u64);

/// A page of which the network has less is marked: ratios of its page time say little. Our choice.
const LITTLE: u64 = 333;

impl NetworkShare {
    /// The share that `above`, the part above the floor, is of the page time `page`.
    pub fn of(above: u64, page: u64) -> NetworkShare {
        let share = u128::from(above) * 1_000 / u128::from(page.max(1));
        NetworkShare(share.min(1_000) as u64)
    }

    /// Whether ratios of the page time say little of networks and schedulers.
    pub fn is_little(self) -> bool {
        self.0 < LITTLE
    }

    /// One sentence about it, without its full stop; `floor` is the time on an infinitely fast network, as it is written.
    pub fn sentence(self, floor: &str) -> String {
        format!("floor: {floor} on an infinitely fast network; {}", self.consequence())
    }

    /// The part of the sentence that follows the floor.
    pub fn consequence(self) -> String {
        let per_cent = (self.0 + 5) / 10;
        let of_fastest = format!("the network accounts for {per_cent} % of the fastest page time");
        match self.is_little() {
            true => format!(
                "{of_fastest}, less than a third, so compare the times above the floor rather than whole page times"
            ),
            false => of_fastest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_which_the_network_has_little_is_marked_in_words() {
        let little = NetworkShare::of(111_000_000, 1_434_000_000);
        assert!(little.is_little());
        assert_eq!(
            little.sentence("1323.0 ms"),
            "floor: 1323.0 ms on an infinitely fast network; the network accounts for 8 % of the fastest page time, \
             less than a third, so compare the times above the floor rather than whole page times"
        );
        let much = NetworkShare::of(400, 600);
        assert!(!much.is_little());
        assert!(much.sentence("200 ns").ends_with("accounts for 67 % of the fastest page time"));
        assert_eq!(NetworkShare::of(5, 0), NetworkShare::of(7, 3), "all of it at most");
    }
}
