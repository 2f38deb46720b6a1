//! What a seed gives: the links, what is sent over them, and how they are cut.

use std::fmt;
use std::time::Duration;

use quipu_base::{Random, Rng, Seed};

/// How a link fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The server's end is taken down: the client's has no carrier.
    Carrier,
    /// The client's end is taken down.
    Down,
    /// The client's end is removed; another of the same name comes later.
    Device,
    /// The client's address is removed.
    Address,
    /// Packets of both directions vanish, and nobody tells.
    Silent,
    /// Those to the server do.
    SilentUp,
    /// Those to the client do.
    SilentDown,
}

const KINDS: [Kind; 7] = [
    Kind::Carrier,
    Kind::Down,
    Kind::Device,
    Kind::Address,
    Kind::Silent,
    Kind::SilentUp,
    Kind::SilentDown,
];

/// A cut of one link, during which the other carries data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Both links have been in use for so long before.
    pub(crate) after: Duration,
    /// 0 or 1. The handshake goes by link 0.
    pub(crate) link: usize,
    pub(crate) kind: Kind,
    pub(crate) lasts: Duration,
    /// False for the last cut of some scripts.
    pub(crate) returns: bool,
}

/// A link, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Megabits per second.
    pub(crate) rate: u64,
    /// Milliseconds that a full queue lasts.
    pub(crate) queue: u64,
}

/// What is tried.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) links: [Shape; 2],
    /// Policies of both ends.
    pub(crate) policies: &'static str,
    /// Streams in each direction: to the client, to the server. They last until the script is over.
    pub(crate) streams: [usize; 2],
    /// Bytes of each write.
    pub(crate) piece: usize,
    pub(crate) cuts: Vec<Cut>,
}

/// Policies that use all paths.
const POLICIES: [&str; 6] = [
    "path=minrtt",
    "path=path-rr",
    "path=minrtt congestion=cubic",
    "path=ecf",
    "path=blest",
    "path=minrtt congestion=bbr3",
];

impl Script {
    pub(crate) fn new(seed: u64) -> Script {
        let mut random = Seed::new(seed).stream("cuts", 0);
        let random = &mut random;
        let slower = below(random, 25) + 5;
        // An uplink that is much slower than the other is rightly spared by some policies.
        let rates = [slower, slower + below(random, slower)];
        let swapped = below(random, 2) as usize;
        let links = [0, 1]
            .map(|at: usize| Shape { rate: rates[at ^ swapped], queue: below(random, 35) + 5 });
        let streams = match below(random, 3) {
            0 => [below(random, 3) as usize + 1, 0],
            1 => [0, below(random, 3) as usize + 1],
            _ => [1, 1],
        };
        let count = below(random, 3) + 1;
        let cut = |nth| Cut {
            after: millis(random, 200, 700),
            link: below(random, 2) as usize,
            kind: KINDS[below(random, KINDS.len() as u64) as usize],
            lasts: millis(random, 300, 1_500),
            returns: nth + 1 < count || below(random, 4) > 0,
        };
        let cuts = (0..count).map(cut).collect();
        Script {
            links,
            policies: POLICIES[below(random, POLICIES.len() as u64) as usize],
            streams,
            piece: 1 << (below(random, 8) + 10),
            cuts,
        }
    }
}

/// A number below `bound`.
fn below(random: &mut Random, bound: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64
}

fn millis(random: &mut Random, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + below(random, to - from))
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.links;
        write!(f, "{}/{} and {}/{} Mbit/s/ms, ", a.rate, a.queue, b.rate, b.queue)?;
        write!(f, "{} down {} up, {}", self.streams[0], self.streams[1], self.policies)?;
        for cut in &self.cuts {
            write!(f, "; {cut}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cut { after, link, kind, lasts, returns } = self;
        write!(f, "link {link} {kind:?} after {} ms", after.as_millis())?;
        match returns {
            true => write!(f, " for {} ms", lasts.as_millis()),
            false => write!(f, " for good"),
        }
    }
}

#[test]
fn a_seed_gives_one_script() {
    assert_eq!(Script::new(7).to_string(), Script::new(7).to_string());
    assert_ne!(Script::new(7).to_string(), Script::new(8).to_string());
    // All kinds of cuts are tried, on both links, and in both directions.
    let scripts: Vec<_> = (0..100).map(Script::new).collect();
    let cuts = || scripts.iter().flat_map(|script| &script.cuts);
    for kind in KINDS {
        for link in [0, 1] {
            assert!(cuts().any(|cut| cut.kind == kind && cut.link == link), "{kind:?} of {link}");
        }
    }
    assert!([0, 1].iter().all(|&way| scripts.iter().any(|script| script.streams[way] > 1)));
    assert!(cuts().any(|cut| !cut.returns));
}
