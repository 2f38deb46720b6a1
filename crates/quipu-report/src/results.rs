//! Results as they were read: scenes, in each the policies, in each the loads.

use std::collections::BTreeMap;

use quipu_record::{FasterAlone, Metric, Turned};

use crate::aggregate::samples::Samples;

/// All that tables said.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// What tells scenes apart beside page and network: fields of a sweep, an id, a folder.
    pub fields: Vec<String>,
    /// Scenes in order of appearance.
    pub scenes: Vec<Scene>,
    /// Names of policies in order of appearance; also those of traffic alone.
    pub policies: Vec<String>,
    /// Names of paths in order of appearance.
    pub paths: Vec<String>,
    positions: BTreeMap<Place, usize>,
}

/// Where loads took place: their conditions, whatever the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The page; empty of flows alone.
    pub page: String,
    /// The network.
    pub network: String,
    /// The values of [`Results::fields`]; empty where a folder has none.
    pub fields: Vec<String>,
}

/// All policies in one place.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// Where.
    pub place: Place,
    /// The policies, in order of appearance; ratios are to the first.
    pub cells: Vec<Cell>,
    /// Paths alone that are faster than every policy over all paths, as the folder's summary has them.
    pub faster_alone: Vec<FasterAlone>,
    /// What other readings of the recording turn, as the folder's summary has it.
    pub turned: Vec<Turned>,
}

/// One policy in one place.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The policy.
    pub policy: String,
    /// Its loads, in order of the file.
    pub loads: Vec<Load>,
    /// Times from the start of the page to the completion of objects, in nanoseconds.
    pub objects: Samples,
    /// Geometric means of the same over all loads, by position of the object; of the first cells alone.
    pub object_means: BTreeMap<u64, ObjectMean>,
    /// Bytes that the server sent, by name of the path.
    pub sent: Vec<(String, u64)>,
    /// Ratios to the first policy of the scene that has loads, as the folder's summary has them, else
    /// from the loads; none of that policy itself.
    pub ratios: BTreeMap<Metric, Ratio>,
    /// The policy with every layer and parameter; empty if unknown.
    pub choice: String,
    /// Flows, in order of the file.
    pub flows: Vec<Flow>,
    /// Links that flows share, in order of the file.
    pub links: Vec<Link>,
    /// Times of raw streams from the start of the page to their last byte, by number of the stream, in
    /// nanoseconds.
    pub streams: BTreeMap<u64, Vec<u64>>,
}

/// A page loaded once by one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Number of the run.
    pub run: u64,
    /// Number of the client.
    pub client: u64,
    /// Number of the page in the client's session.
    pub visit: u64,
    values: [Option<u64>; Metric::ALL.len()],
    bounds: [Option<u64>; Metric::ALL.len()],
}

/// The time of an object over all loads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectMean {
    /// Its address; empty if the table has none.
    pub url: String,
    /// Loads in which it was complete at a time above zero.
    pub loads: u64,
    /// Sum of the natural logarithms of its times in nanoseconds.
    pub logarithms: f64,
}

/// A flow over all runs.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// `down` or `up`.
    pub direction: String,
    /// Its congestion controller.
    pub congestion: String,
    /// Bits per second, one for each run.
    pub goodput: Vec<u64>,
    /// Mean round-trip time in nanoseconds, one for each run that measured it.
    pub rtt: Vec<u64>,
    /// Bytes over all runs.
    pub bytes: u64,
}

/// A link over all runs.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// The path whose own link it is.
    pub name: String,
    /// `down` or `up`.
    pub direction: String,
    /// Bytes that left it.
    pub delivered: u64,
    /// Bytes that its rate allowed.
    pub capacity: u64,
    /// Datagrams that did not arrive.
    pub dropped: u64,
}

/// A ratio with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Geometric mean over the runs.
    pub mean: f64,
    /// Lower and upper end; `None` without chance.
    pub interval: Option<(f64, f64)>,
}

impl Load {
    /// A load with nothing known.
    pub fn new(run: u64, client: u64, visit: u64) -> Load {
        Load { run, client, visit, ..Load::default() }
    }

    /// What was measured; `None` if the table does not say.
    pub fn get(&self, metric: Metric) -> Option<u64> {
        self.values[metric as usize]
    }

    /// Keeps what was measured.
    pub fn set(&mut self, metric: Metric, value: Option<u64>) {
        self.values[metric as usize] = value;
    }

    /// What `metric` cannot be below; `None` if the table does not say.
    pub fn bound(&self, metric: Metric) -> Option<u64> {
        self.bounds[metric as usize].filter(|bound| *bound > 0)
    }

    /// Keeps what `metric` cannot be below.
    pub fn set_bound(&mut self, metric: Metric, bound: Option<u64>) {
        self.bounds[metric as usize] = bound;
    }

    /// What pairs it with the load of another policy.
    pub fn key(&self) -> (u64, u64, u64) {
        (self.run, self.client, self.visit)
    }
}

impl ObjectMean {
    /// Adds the time of a load, in nanoseconds.
    pub fn add(&mut self, time: u64) {
        if time > 0 {
            self.loads += 1;
            self.logarithms += libm::log(time as f64);
        }
    }

    /// The geometric mean of its times by that of `base`: over pairs of loads if both have all of them.
    /// `None` if one has loads that the other lacks.
    pub fn ratio(&self, base: &ObjectMean) -> Option<f64> {
        let loads = Some(self.loads).filter(|loads| *loads > 0 && *loads == base.loads)?;
        Some(libm::exp((self.logarithms - base.logarithms) / loads as f64))
    }
}

impl Cell {
    /// `metric` of all loads that have it.
    pub fn values(&self, metric: Metric) -> Vec<u64> {
        self.loads.iter().filter_map(|load| load.get(metric)).collect()
    }

    /// The loads' ratios of `metric` to its bound, of those that have both.
    pub fn over_bound(&self, metric: Metric) -> Vec<f64> {
        let of = |load: &Load| Some(load.get(metric)? as f64 / load.bound(metric)? as f64);
        self.loads.iter().filter_map(of).collect()
    }
}

impl Scene {
    /// The policy called `name`.
    pub fn cell(&self, name: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.policy == name)
    }

    /// Whether any policy has a load with a page time.
    pub fn has_pages(&self) -> bool {
        let has = |load: &Load| load.get(Metric::PageTime).is_some();
        // Files of older versions have zeros for the times of a page that is not there.
        !self.place.page.is_empty() && self.cells.iter().any(|cell| cell.loads.iter().any(has))
    }
}

impl Results {
    /// The scene at `place`, made if it is new; its position.
    pub fn scene(&mut self, place: &Place) -> usize {
        if let Some(&position) = self.positions.get(place) {
            return position;
        }
        self.positions.insert(place.clone(), self.scenes.len());
        self.scenes.push(Scene { place: place.clone(), ..Scene::default() });
        self.scenes.len() - 1
    }

    /// The cell of `policy` in the scene at position `scene`, made if it is new; its position.
    pub fn cell(&mut self, scene: usize, policy: &str) -> usize {
        let cells = &mut self.scenes[scene].cells;
        if let Some(position) = cells.iter().position(|cell| cell.policy == policy) {
            return position;
        }
        cells.push(Cell { policy: policy.to_owned(), ..Cell::default() });
        let position = cells.len() - 1;
        if !self.policies.iter().any(|known| known == policy) {
            self.policies.push(policy.to_owned());
        }
        position
    }

    /// The position of the scene at `place`, if there is one.
    pub fn position(&self, place: &Place) -> Option<usize> {
        self.positions.get(place).copied()
    }

    /// Notes the names of paths, once all rows are read.
    pub fn name_paths(&mut self) {
        let mut known = std::collections::BTreeSet::new();
        let cells = self.scenes.iter().flat_map(|scene| &scene.cells);
        let names = cells.flat_map(|cell| cell.sent.iter().map(|(name, _)| name));
        self.paths = names.filter(|name| known.insert(name.as_str())).cloned().collect();
    }

    /// Scenes with loads of pages.
    pub fn pages(&self) -> impl Iterator<Item = &Scene> {
        self.scenes.iter().filter(|scene| scene.has_pages())
    }
}
