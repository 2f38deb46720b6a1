//! `min-owd`: acknowledgements return on the path that the sender of the data asks for.

use quipu_base::{Duration, Instant};

use super::plain::{all_paths, own_path};
use super::{AckPolicy, AckRoute, Own};
use crate::key::{PathKey, PathSet};
use crate::seam::event::Event;
use crate::seam::view::{PathState, View};

mod returns;

use returns::{Returns, Sighting};

/// `min-owd`: of the paths back, the one of least one-way delay.
///
/// The receiver of data sends an acknowledgement of each path on all paths, once in three seconds
/// and when a path appears. The sender compares when the copies come: the way there is the same, so
/// they differ by the way back. If another way back is faster than the one in use by more than
/// `margin` and more than the variation of the round-trip time, it asks the receiver to use that
/// one, by a frame of a private extension (CHANGE_RETURN_PATH of MobileH2). The receiver complies
/// until that path is gone or a probe timeout fires on it; then acknowledgements return on the path
/// of their data.
///
/// The policy is both ends at once. Only acknowledgements on the return path in use feed the
/// sender's round-trip time, save those that come later than the probe timeout. The one in use is what is seen, not what was asked: it changes when
/// three acknowledgements in a row come on another path. Against a peer without the extension
/// nothing is copied or measured, and the policy is [`Own`], as with a legacy server of the paper.
///
/// Source: MobileH2 (Wang et al., APNet 2019), paper and code; confidence high for the probes, the
/// estimate and the frame. Reconstruction: a return path for each data path (the code has one for
/// all), the threshold, the return after a probe timeout, which acknowledgements count, and how
/// the change is seen. Copies overtaken by newer ones on their own path are ignored. The estimate
/// of a way back is forgotten when three probes in a row did not renew it.
#[derive(Clone, Debug)]
pub struct MinOwd {
    probe: Duration,
    margin: Duration,
    negotiated: bool,
    /// Where acknowledgements that we send go, by slot of the data path.
    ways: Vec<Option<Way>>,
    /// What is known of those that we receive, by slot of the data path.
    returns: Vec<Option<Returns>>,
    /// The peer is to be told.
    news: bool,
}

/// Where acknowledgements of a path's packets go.
#[derive(Clone, Copy, Debug)]
struct Way {
    data: PathKey,
    /// As the peer asked, else the path itself.
    on: PathKey,
    /// When one last went on all paths.
    probed_at: Option<Instant>,
}

impl Way {
    const fn new(data: PathKey) -> Self {
        Way { data, on: data, probed_at: None }
    }
}

impl Default for MinOwd {
    fn default() -> Self {
        MinOwd::new(Self::PROBE_INTERVAL, Self::MARGIN)
    }
}

impl MinOwd {
    /// Time between copied acknowledgements of one path: that of the authors' code.
    pub const PROBE_INTERVAL: Duration = Duration::from_secs(3);
    /// Least gain for which the return path changes; our choice.
    pub const MARGIN: Duration = Duration::from_millis(5);
    /// An estimate lives for so many probes; our choice.
    const LIFETIME: u64 = 3;

    /// Copies an acknowledgement every `probe`; asks for another return path if that gains more
    /// than `margin`.
    pub const fn new(probe: Duration, margin: Duration) -> Self {
        MinOwd {
            probe,
            margin,
            negotiated: false,
            ways: Vec::new(),
            returns: Vec::new(),
            news: false,
        }
    }

    fn way(&self, data: PathKey) -> Way {
        let known = self.ways.get(data.index()).copied().flatten();
        known.filter(|way| way.data == data).unwrap_or(Way::new(data))
    }

    fn set_way(&mut self, way: Way) {
        let slot = way.data.index();
        if self.ways.len() <= slot {
            self.ways.resize(slot + 1, None);
        }
        self.ways[slot] = Some(way);
    }

    /// True if the next acknowledgement of this path goes on all paths.
    fn is_probe_due(&self, way: &Way, view: &View<'_>) -> bool {
        let due = way.probed_at.is_none_or(|at| view.now - at >= self.probe);
        due && view.paths.usable().nth(1).is_some()
    }

    fn known(&self, data: PathKey) -> Option<&Returns> {
        self.returns.get(data.index())?.as_ref().filter(|returns| returns.data == data)
    }

    fn returns_mut(&mut self, data: PathKey) -> &mut Returns {
        let slot = data.index();
        if self.returns.len() <= slot {
            self.returns.resize(slot + 1, None);
        }
        if self.returns[slot].as_ref().is_none_or(|returns| returns.data != data) {
            self.returns[slot] = None;
        }
        self.returns[slot].get_or_insert_with(|| Returns::new(data))
    }

    /// Acknowledgements that went on `path` for others return to their own path.
    fn leave(&mut self, path: PathKey) {
        for way in self.ways.iter_mut().flatten().filter(|way| way.on == path) {
            way.on = way.data;
        }
    }

    fn on_gone(&mut self, path: PathKey) {
        self.leave(path);
        for slot in &mut self.ways {
            slot.take_if(|way| way.data == path);
        }
        for slot in &mut self.returns {
            slot.take_if(|returns| returns.data == path);
        }
        for returns in self.returns.iter_mut().flatten() {
            returns.forget(path);
        }
    }
}

impl AckPolicy for MinOwd {
    fn route(&mut self, data: PathKey, view: &View<'_>) -> AckRoute {
        if !view.conn.return_paths {
            return Own.route(data, view);
        }
        let way = self.way(data);
        if self.is_probe_due(&way, view) {
            return AckRoute { on: all_paths(data, view), ride: false };
        }
        let asked = view.paths.get(way.on).filter(|path| path.state == PathState::Usable);
        let on = asked.map_or_else(|| own_path(data, view), |path| path.key);
        AckRoute { on: PathSet::only(on), ride: false }
    }

    fn takes_sample(&self, data: PathKey, arrived_on: PathKey) -> bool {
        let in_use = self.known(data).map_or(data, |returns| returns.in_use);
        !self.negotiated || arrived_on == in_use
    }

    fn advice(&mut self, _view: &View<'_>) -> Option<Vec<(PathKey, PathKey)>> {
        if !std::mem::take(&mut self.news) {
            return None;
        }
        let known = self.returns.iter().flatten();
        Some(known.map(|returns| (returns.data, returns.asked)).collect())
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.negotiated = view.conn.return_paths;
        match *event {
            Event::PathUp(_) | Event::PathRevived(_) => {
                self.ways.iter_mut().flatten().for_each(|way| way.probed_at = None);
            }
            Event::Pto(path) => self.leave(path),
            Event::PathSuspect(path) => {
                self.leave(path);
                for returns in self.returns.iter_mut().flatten() {
                    self.news |= returns.withdraw(path);
                }
            }
            Event::PathGone(path) => self.on_gone(path),
            Event::AckSent(data) => {
                let way = self.way(data);
                if self.is_probe_due(&way, view) {
                    self.set_way(Way { probed_at: Some(view.now), ..way });
                }
            }
            Event::ReturnAdvice(pairs) => {
                for &(data, on) in pairs {
                    let way = self.way(data);
                    self.set_way(Way { on, ..way });
                }
            }
            Event::AckSeen { data, arrived_on, largest, since_sent, advances }
                if self.negotiated =>
            {
                let (margin, lifetime) = (self.margin, self.probe.saturating_mul(Self::LIFETIME));
                let returns = self.returns_mut(data);
                returns.on_ack(view.now, arrived_on, Sighting { largest, since_sent }, advances);
                let asks = returns.improve(view, margin, lifetime);
                self.news |= asks;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
