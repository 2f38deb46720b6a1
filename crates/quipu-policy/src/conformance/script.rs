//! Random scripts: what an application, a peer and a network may do to a connection.

use quipu_base::Seed;
use rand_core::Rng;

/// One step of a script. Numbers name things loosely, so that any script fits any state: `stream`
/// and `path` count through what lives, modulo its number; a step that fits nothing does nothing.
///
/// Every field has a small range, so that a failing script shrinks to a readable one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A stream opens with so many bytes of stream credit.
    Open {
        /// 0 to 7.
        urgency: u8,
        /// RFC 9218's flag.
        incremental: bool,
        /// Bytes.
        credit: u32,
    },
    /// The application writes.
    Write {
        /// Which stream.
        stream: u8,
        /// Bytes.
        bytes: u32,
    },
    /// The application tells that so much more than written will come.
    Size {
        /// Which stream.
        stream: u8,
        /// Bytes beyond those written.
        more: u16,
    },
    /// The application ends a stream.
    Finish {
        /// Which stream.
        stream: u8,
    },
    /// The application abandons a stream.
    Reset {
        /// Which stream.
        stream: u8,
    },
    /// Another urgency.
    Urgency {
        /// Which stream.
        stream: u8,
        /// 0 to 7.
        urgency: u8,
        /// RFC 9218's flag.
        incremental: bool,
    },
    /// A deadline for what is written.
    Deadline {
        /// Which stream.
        stream: u8,
        /// Milliseconds.
        ms: u16,
    },
    /// A node joins the dependency tree; `parent` counts through its nodes, the root included.
    Insert {
        /// Which node above.
        parent: u8,
        /// 1 to 256.
        weight: u16,
        /// Whether it takes over its siblings.
        exclusive: bool,
    },
    /// A node of the tree moves.
    Move {
        /// Which node.
        node: u8,
        /// Which node above.
        parent: u8,
        /// 1 to 256.
        weight: u16,
        /// Whether it takes over its new siblings.
        exclusive: bool,
    },
    /// A node of the tree leaves.
    Remove {
        /// Which node.
        node: u8,
    },
    /// A node speaks for a stream.
    Attach {
        /// Which node.
        node: u8,
        /// Which stream.
        stream: u8,
    },
    /// The peer grants stream credit.
    Grant {
        /// Which stream.
        stream: u8,
        /// Bytes more.
        bytes: u32,
    },
    /// The peer grants connection credit.
    GrantConnection {
        /// Bytes more.
        bytes: u32,
    },
    /// A path comes up.
    PathUp {
        /// Its round-trip time in milliseconds.
        rtt_ms: u32,
    },
    /// A path is abandoned, unless it is the last.
    PathGone {
        /// Which path.
        path: u8,
    },
    /// The preference of a path changes.
    PathStatus {
        /// Which path.
        path: u8,
        /// Backup or available.
        backup: bool,
    },
    /// Nothing comes through any more on a path, or it does again.
    Silence {
        /// Which path.
        path: u8,
        /// Whether it is silent.
        silent: bool,
    },
    /// The round-trip time of a path changes.
    Rtt {
        /// Which path.
        path: u8,
        /// Milliseconds.
        ms: u32,
    },
    /// A path forgets all that it measured.
    ForgetRtt {
        /// Which path.
        path: u8,
    },
    /// The congestion window of a path is set.
    Window {
        /// Which path.
        path: u8,
        /// Packets; may be none.
        packets: u8,
    },
    /// The next packets on a path are lost.
    Lose {
        /// Which path.
        path: u8,
        /// How many.
        packets: u8,
    },
    /// The anti-amplification limit holds a path, or lets go.
    Amplification {
        /// Which path.
        path: u8,
        /// Whether it holds.
        limited: bool,
    },
    /// The socket of a path takes nothing, or takes datagrams again.
    Block {
        /// Which path.
        path: u8,
        /// Whether it takes nothing.
        blocked: bool,
    },
    /// A path's pacer works, or not.
    Pace {
        /// Which path.
        path: u8,
        /// Whether it paces.
        paced: bool,
    },
    /// Time passes; the connection sends all it can.
    Pass {
        /// Milliseconds.
        ms: u16,
    },
    /// The connection sends some packets, then the next step comes.
    Trickle {
        /// How many.
        packets: u8,
    },
    /// A fresh policy takes over.
    Swap,
}

/// What happens to a connection that starts with some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Paths at the start, 1 to 8.
    pub paths: u8,
    /// Connection credit at the start, bytes.
    pub credit: u32,
    /// Bytes written at the start on each of two streams, so that windows fill; none: no streams.
    pub backlog: u32,
    /// What happens.
    pub steps: Vec<Step>,
}

impl Script {
    /// A script of `steps` steps on `paths` paths, drawn from `seed`.
    pub fn random(seed: Seed, paths: u8, steps: usize) -> Self {
        let mut random = seed.stream("conformance.script", 0);
        let mut below = move |bound: u32| random.next_u32() % bound;
        let credit = Self::CREDITS[below(3) as usize];
        let backlog = Self::BACKLOGS[below(3) as usize];
        let steps = (0..steps).map(|_| Step::draw(&mut below)).collect();
        Script { paths, credit, backlog, steps }
    }

    /// Connection credits that scripts start with.
    pub const CREDITS: [u32; 3] = [2_000, 60_000, 10_000_000];
    /// Backlogs that scripts start with.
    pub const BACKLOGS: [u32; 3] = [0, 60_000, 300_000];
}

impl Step {
    /// Round-trip times that scripts use, in milliseconds: none to an hour.
    pub const RTTS: [u32; 8] = [0, 1, 10, 20, 50, 100, 600, 3_600_000];

    /// A step drawn from `below`, which gives a number below its argument. What makes a connection
    /// move is drawn more often than what disturbs it.
    pub fn draw(below: &mut impl FnMut(u32) -> u32) -> Self {
        let byte = |below: &mut dyn FnMut(u32) -> u32| below(256) as u8;
        let mut below: &mut dyn FnMut(u32) -> u32 = below;
        let below = &mut below;
        let flag = |below: &mut dyn FnMut(u32) -> u32| below(2) == 0;
        let weight = |below: &mut dyn FnMut(u32) -> u32| 1 + below(256) as u16;
        match below(49) {
            0..5 => Step::Open {
                urgency: below(8) as u8,
                incremental: flag(below),
                credit: [0, 1_000, 60_000, 500_000][below(4) as usize],
            },
            5..13 => Step::Write {
                stream: byte(below),
                bytes: [1, 500, 1_200, 5_000, 60_000, 120_000][below(6) as usize],
            },
            13 => Step::Size { stream: byte(below), more: below(20_000) as u16 },
            14..17 => Step::Finish { stream: byte(below) },
            17 => Step::Reset { stream: byte(below) },
            18 => Step::Urgency {
                stream: byte(below),
                urgency: below(8) as u8,
                incremental: flag(below),
            },
            19 => Step::Deadline { stream: byte(below), ms: below(1_000) as u16 },
            20 => {
                Step::Insert { parent: byte(below), weight: weight(below), exclusive: flag(below) }
            }
            21 => Step::Move {
                node: byte(below),
                parent: byte(below),
                weight: weight(below),
                exclusive: flag(below),
            },
            22 => Step::Remove { node: byte(below) },
            23..25 => Step::Attach { node: byte(below), stream: byte(below) },
            25 => Step::Grant { stream: byte(below), bytes: below(100_000) },
            26..28 => Step::GrantConnection { bytes: below(200_000) },
            28 => Step::PathUp { rtt_ms: Self::RTTS[below(8) as usize] },
            29 => Step::PathGone { path: byte(below) },
            30 => Step::PathStatus { path: byte(below), backup: flag(below) },
            31 => Step::Silence { path: byte(below), silent: flag(below) },
            32 => Step::Rtt { path: byte(below), ms: Self::RTTS[below(8) as usize] },
            33 => Step::ForgetRtt { path: byte(below) },
            34 => Step::Window { path: byte(below), packets: [0, 1, 2, 50][below(4) as usize] },
            35..37 => Step::Lose { path: byte(below), packets: 1 + below(12) as u8 },
            37 => Step::Amplification { path: byte(below), limited: flag(below) },
            38 => Step::Pace { path: byte(below), paced: flag(below) },
            39..44 => Step::Pass { ms: [0, 1, 1, 7, 7, 30, 200, 5_000][below(8) as usize] },
            44..47 => Step::Trickle { packets: 1 + below(40) as u8 },
            47 => Step::Block { path: byte(below), blocked: flag(below) },
            _ => Step::Swap,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_script() {
        let script = Script::random(Seed::new(7), 2, 100);
        assert_eq!(script, Script::random(Seed::new(7), 2, 100));
        assert_ne!(script, Script::random(Seed::new(8), 2, 100));
    }
}
