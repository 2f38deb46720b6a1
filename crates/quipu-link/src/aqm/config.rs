//! Which management a queue has, with defaults and checks.

use quipu_base::{Bytes, Duration};

use crate::config::invalid;
use crate::{InvalidConfig, QueueLimit};

/// A managed queue, in place of drop-tail: it keeps the time that datagrams wait near a target.
///
/// ECN-capable datagrams are marked with Congestion Experienced where others are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aqm {
    /// Controlled Delay: <https://www.rfc-editor.org/rfc/rfc8289>
    CoDel(CoDel),
    /// A queue for each flow, taken in turns, and CoDel on each:
    /// <https://www.rfc-editor.org/rfc/rfc8290>
    FqCoDel(FqCoDel),
    /// Proportional Integral controller Enhanced: <https://www.rfc-editor.org/rfc/rfc8033>
    Pie(Pie),
}

/// When a managed queue is full, whatever its management wants. A queue without a datagram takes one
/// of any size, except that of [`Aqm::FqCoDel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AqmLimit {
    /// Datagrams that wait at most, of any size; 1 to [`AqmLimit::MOST_DATAGRAMS`].
    pub datagrams: u32,
    /// Bytes that wait at most, headers included; above zero.
    pub bytes: Bytes,
}

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// The wait that may last; above zero and not above `interval`. Default 5 ms:
    /// <https://www.rfc-editor.org/rfc/rfc8289#section-4.3>
    pub target: Duration,
    /// For how long the wait may be above the target; about the longest usual round trip. Default
    /// 100 ms: <https://www.rfc-editor.org/rfc/rfc8289#section-4.2>
    pub interval: Duration,
    /// When it is full. Default 1,000 datagrams, as in Linux' tc-codel(8), and 32 MiB.
    pub limit: AqmLimit,
}

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDel {
    /// As [`CoDel::target`]. Default 5 ms: <https://www.rfc-editor.org/rfc/rfc8290#section-5.2.2>
    pub target: Duration,
    /// As [`CoDel::interval`]. Default 100 ms:
    /// <https://www.rfc-editor.org/rfc/rfc8290#section-5.2.1>
    pub interval: Duration,
    /// Bytes that a queue may send in a round, headers included; 256 B to 1 MiB. Default 1,514 B:
    /// <https://www.rfc-editor.org/rfc/rfc8290#section-5.2.4>
    pub quantum: Bytes,
    /// Queues to which flows are hashed; 1 to 65,536. Default 1,024:
    /// <https://www.rfc-editor.org/rfc/rfc8290#section-5.2.5>
    pub flows: u32,
    /// When all queues together are full. Default 10,240 datagrams,
    /// <https://www.rfc-editor.org/rfc/rfc8290#section-5.2.3>, and 32 MiB, as Linux' tc-fq_codel(8).
    pub limit: AqmLimit,
}

/// Parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pie {
    /// The wait wanted; above zero, at most 1 s. Default 15 ms, QDELAY_REF:
    /// <https://www.rfc-editor.org/rfc/rfc8033#section-4.2>
    pub target: Duration,
    /// Time between two looks at the wait; 1 ms to 1 s. Default 15 ms, T_UPDATE.
    pub update: Duration,
    /// How long a burst passes without drops; at most 10 s. Default 150 ms, MAX_BURST:
    /// <https://www.rfc-editor.org/rfc/rfc8033#section-4.4>
    pub burst: Duration,
    /// When it is full. Default 1,000 datagrams, as in Linux' tc-pie(8), and 32 MiB.
    pub limit: AqmLimit,
}

impl Aqm {
    pub(crate) fn validate(&self) -> Result<(), InvalidConfig> {
        match self {
            Aqm::CoDel(CoDel { target, interval, limit }) => {
                check_times(*target, *interval)?;
                limit.validate()
            }
            Aqm::FqCoDel(FqCoDel { target, interval, quantum, flows, limit }) => {
                check_times(*target, *interval)?;
                if !(256..=1 << 20).contains(&quantum.0) {
                    return Err(invalid("aqm.quantum", quantum.0, "256 B to 1 MiB"));
                }
                if !(1..=65_536).contains(flows) {
                    return Err(invalid("aqm.flows", flows, "1 to 65,536 queues"));
                }
                limit.validate()
            }
            Aqm::Pie(Pie { target, update, burst, limit }) => {
                if target.is_zero() || *target > Duration::from_secs(1) {
                    return Err(invalid("aqm.target", target, "above 0, at most 1 s"));
                }
                if *update < Duration::from_millis(1) || *update > Duration::from_secs(1) {
                    return Err(invalid("aqm.update", update, "1 ms to 1 s"));
                }
                if *burst > Duration::from_secs(10) {
                    return Err(invalid("aqm.burst", burst, "at most 10 s"));
                }
                limit.validate()
            }
        }
    }

    /// When it is full.
    pub fn limit(&self) -> AqmLimit {
        match self {
            Aqm::CoDel(CoDel { limit, .. })
            | Aqm::FqCoDel(FqCoDel { limit, .. })
            | Aqm::Pie(Pie { limit, .. }) => *limit,
        }
    }

    /// Whether chance decides anything: which datagrams PIE drops, and which flows FQ-CoDel puts
    /// into one queue.
    pub fn is_random(&self) -> bool {
        !matches!(self, Aqm::CoDel(_))
    }
}

fn check_times(target: Duration, interval: Duration) -> Result<(), InvalidConfig> {
    if target.is_zero() || target > interval {
        return Err(invalid("aqm.target", target, "above 0, at most the interval"));
    }
    if interval > Duration::from_secs(3_600) {
        return Err(invalid("aqm.interval", interval, "at most an hour"));
    }
    Ok(())
}

impl AqmLimit {
    /// The most datagrams that a limit may allow: 1,000,000. Our choice.
    pub const MOST_DATAGRAMS: u32 = 1_000_000;

    /// 32 MiB, as Linux' tc-fq_codel(8).
    pub const BYTES: Bytes = Bytes(32 << 20);

    /// So many datagrams, and [`AqmLimit::BYTES`].
    pub const fn of_datagrams(datagrams: u32) -> Self {
        AqmLimit { datagrams, bytes: Self::BYTES }
    }

    /// Bytes that wait at most if each datagram is one of [`QueueLimit::PACKET`].
    pub fn most_bytes(&self) -> Bytes {
        QueueLimit::PACKET.saturating_mul(u64::from(self.datagrams)).min(self.bytes)
    }

    /// Whether so many datagrams with so many bytes may wait.
    pub(super) fn holds(&self, datagrams: usize, bytes: Bytes) -> bool {
        // At least 32 bits wide on every platform that can hold a world.
        datagrams <= self.datagrams as usize && bytes <= self.bytes
    }

    fn validate(&self) -> Result<(), InvalidConfig> {
        if !(1..=Self::MOST_DATAGRAMS).contains(&self.datagrams) {
            return Err(invalid("aqm.limit", self.datagrams, "1 to 1,000,000 datagrams"));
        }
        if self.bytes.is_zero() {
            return Err(invalid("aqm.memory", 0, "more than no bytes"));
        }
        Ok(())
    }
}

impl Default for CoDel {
    fn default() -> Self {
        CoDel {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            limit: AqmLimit::of_datagrams(1_000),
        }
    }
}

impl Default for FqCoDel {
    fn default() -> Self {
        FqCoDel {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            quantum: Bytes(1_514),
            flows: 1_024,
            limit: AqmLimit::of_datagrams(10_240),
        }
    }
}

impl Default for Pie {
    fn default() -> Self {
        Pie {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            burst: Duration::from_millis(150),
            limit: AqmLimit::of_datagrams(1_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field_refused(aqm: Aqm) -> &'static str {
        aqm.validate().unwrap_err().field
    }

    #[test]
    fn the_defaults_are_valid_and_random_as_they_say() {
        let all = [
            (Aqm::CoDel(CoDel::default()), false),
            (Aqm::FqCoDel(FqCoDel::default()), true),
            (Aqm::Pie(Pie::default()), true),
        ];
        for (aqm, random) in all {
            assert_eq!(aqm.validate(), Ok(()));
            assert_eq!(aqm.is_random(), random);
        }
    }

    #[test]
    fn parameters_that_make_no_queue_are_refused() {
        let (codel, fq, pie) = (CoDel::default(), FqCoDel::default(), Pie::default());
        let millis = Duration::from_millis;
        for target in [Duration::ZERO, millis(101)] {
            assert_eq!(field_refused(Aqm::CoDel(CoDel { target, ..codel })), "aqm.target");
            assert_eq!(field_refused(Aqm::FqCoDel(FqCoDel { target, ..fq })), "aqm.target");
        }
        for target in [Duration::ZERO, millis(1_001)] {
            assert_eq!(field_refused(Aqm::Pie(Pie { target, ..pie })), "aqm.target");
        }
        let interval = Duration::from_secs(3_601);
        assert_eq!(field_refused(Aqm::CoDel(CoDel { interval, ..codel })), "aqm.interval");
        for quantum in [Bytes(255), Bytes((1 << 20) + 1)] {
            assert_eq!(field_refused(Aqm::FqCoDel(FqCoDel { quantum, ..fq })), "aqm.quantum");
        }
        for flows in [0, 65_537] {
            assert_eq!(field_refused(Aqm::FqCoDel(FqCoDel { flows, ..fq })), "aqm.flows");
        }
        for update in [Duration::from_micros(999), millis(1_001)] {
            assert_eq!(field_refused(Aqm::Pie(Pie { update, ..pie })), "aqm.update");
        }
        let burst = Duration::from_secs(11);
        assert_eq!(field_refused(Aqm::Pie(Pie { burst, ..pie })), "aqm.burst");
        let bad = [
            (AqmLimit::of_datagrams(0), "aqm.limit"),
            (AqmLimit::of_datagrams(1_000_001), "aqm.limit"),
            (AqmLimit { datagrams: 1, bytes: Bytes::ZERO }, "aqm.memory"),
        ];
        for (limit, field) in bad {
            assert_eq!(field_refused(Aqm::CoDel(CoDel { limit, ..codel })), field);
            assert_eq!(field_refused(Aqm::FqCoDel(FqCoDel { limit, ..fq })), field);
            assert_eq!(field_refused(Aqm::Pie(Pie { limit, ..pie })), field);
        }
    }
}
