//! One channel, on which one frame is sent at a time.

use std::cell::RefCell;
use std::rc::Rc;

use quipu_base::{Bytes, Duration, Instant, Random, Seed};
use rand_core::Rng;

use super::path_loss::{Channel, PathLoss, normal};
use super::phy::{MOST_ATTEMPTS, Timing};
use super::reach::{AccessPoint, Reach, Station, Way};
use crate::{DropReason, InvalidConfig};

/// One channel of one place: all that is sent on it shares its airtime, whoever sends it.
///
/// Frames go one after the other in the order in which they were handed over. Clones are the same
/// medium. It is of one world, and not of several threads.
#[derive(Clone, Debug)]
pub struct Medium {
    channel: Channel,
    path_loss: PathLoss,
    timing: Timing,
    air: Rc<RefCell<Air>>,
}

/// What a medium has carried so far. A frame counts as soon as it is handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirStats {
    /// Frames handed over.
    pub frames: u64,
    /// Attempts to send one.
    pub attempts: u64,
    /// Frames that failed each time.
    pub failed: u64,
    /// Frames of stations out of reach.
    pub unreachable: u64,
    /// Airtime, all of the standard's spaces included.
    pub busy: Duration,
}

#[derive(Debug, Default)]
struct Air {
    /// When the last frame's turn ends.
    free_at: Instant,
    stats: AirStats,
}

/// One direction between an access point and a station on a medium.
#[derive(Debug)]
pub struct Transmitter {
    timing: Timing,
    way: Way,
    air: Rc<RefCell<Air>>,
    reach: Rc<RefCell<Reach>>,
    frames: Random,
}

/// A frame's turn on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// When the medium is free for the next frame.
    pub(crate) ends_at: Instant,
    /// Why the frame does not arrive, if it does not.
    pub(crate) lost: Option<DropReason>,
}

impl Medium {
    /// A medium without stations.
    ///
    /// # Errors
    /// If a number of `path_loss` is out of its range.
    pub fn new(
        channel: Channel,
        path_loss: PathLoss,
        timing: Timing,
    ) -> Result<Medium, InvalidConfig> {
        path_loss.validate()?;
        Ok(Medium { channel, path_loss, timing, air: Rc::default() })
    }

    /// Brings an access point and a station together: the way down, and the way up. Shadows, errors
    /// and backoffs are drawn from streams of `seed`, which must be of this pair alone.
    ///
    /// # Errors
    /// If a number is out of its range.
    pub fn join(
        &self,
        access_point: &AccessPoint,
        station: &Station,
        seed: Seed,
    ) -> Result<[Transmitter; 2], InvalidConfig> {
        let reach = Reach::new(self.channel, self.path_loss, access_point, station, seed)?;
        let reach = Rc::new(RefCell::new(reach));
        Ok([Way::Down, Way::Up].map(|way| Transmitter {
            timing: self.timing,
            way,
            air: Rc::clone(&self.air),
            reach: Rc::clone(&reach),
            frames: seed.stream("radio.frame", way as u64),
        }))
    }

    /// Its channel.
    pub fn channel(&self) -> Channel {
        self.channel
    }

    /// What it has carried so far.
    pub fn stats(&self) -> AirStats {
        self.air.borrow().stats
    }
}

impl Transmitter {
    /// When the medium is free for what is handed over next, by whomever.
    pub fn free_at(&self) -> Instant {
        self.air.borrow().free_at
    }

    /// Sends a frame with `bytes` of IP that is handed over at `now`, when the medium is free.
    pub(crate) fn send(&mut self, now: Instant, bytes: Bytes) -> Turn {
        // One draw per frame, however often it is tried.
        let mut numbers = Numbers(self.frames.next_u64());
        let mut air = self.air.borrow_mut();
        let begins_at = air.free_at.max(now);
        air.stats.frames += 1;
        let mut reach = self.reach.borrow_mut();
        // All of it happens with the signal of the beginning, fading aside: a frame with all its
        // attempts takes some milliseconds, in which a station moves by some centimetres.
        let Some(rate) = reach.rate(self.way, begins_at) else {
            air.stats.unreachable += 1;
            return Turn { ends_at: begins_at, lost: Some(DropReason::Outage) };
        };
        let (snr, fading) = (reach.snr(self.way, begins_at), reach.fading());
        let mut ends_at = begins_at;
        let mut lost = Some(DropReason::Loss);
        for attempt in 0..MOST_ATTEMPTS {
            let [backoff, luck] = [numbers.next(), numbers.next()];
            let fade = if fading > 0.0 { fading * normal(|| numbers.next()) } else { 0.0 };
            let share = (luck >> 11) as f64 / (1u64 << 53) as f64;
            let failed = share < rate.error_share(snr + fade, bytes);
            ends_at += rate.attempt_time(self.timing, bytes, attempt, failed, backoff);
            air.stats.attempts += 1;
            if !failed {
                lost = None;
                break;
            }
        }
        air.stats.failed += u64::from(lost.is_some());
        air.stats.busy += ends_at - begins_at;
        air.free_at = ends_at;
        Turn { ends_at, lost }
    }
}

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014), for the
/// few numbers of one frame.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests;
