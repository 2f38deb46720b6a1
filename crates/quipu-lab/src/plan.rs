//! What a scenario amounts to: pages read, policies combined, and the list of runs.

mod maker;
mod run_network;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quipu_base::{Instant, Seed, shuffle};
use quipu_web::page::host_of_origin;
use quipu_web::scheme::BrowserScheme;
use thiserror::Error;

use crate::pages::{Extent, PageLoadError, PlannedPage, Reading, RunPage};
use crate::policies::{self, AlonePath, PolicyRow, Registry};
use crate::program::Program;
pub use maker::{MakeError, Maker};
use quipu_record::Provenance;
use quipu_scenario::units::Unit;
use quipu_scenario::{
    Finding, HttpVersion, Network, Priorities, Scenario, ScenarioError, Series, SeriesEnds, Tls,
    check_origins, distinct, split_hash, with_hash,
};
pub use run_network::RunNetwork;
pub use world::World;

/// A scenario, ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// Its browser's priorities.
    pub browser: BrowserScheme,
    /// Its pages.
    pub pages: Vec<PlannedPage>,
    /// Its networks, each with the policies that make sense on it.
    pub networks: Vec<PlannedNetwork>,
    /// In which world its runs are made.
    pub world: World,
    /// What makes its runs, one after the other; `None`: the simulator.
    pub maker: Option<Arc<dyn Maker>>,
    /// The program that runs it.
    pub program: Arc<Program>,
    /// Whoever sets it, such as Ctrl-C, ends all runs that are under way, within a moment and without a result.
    pub stop: Arc<AtomicBool>,
}

/// A network and the policies that are compared on it.
#[derive(Clone, Debug)]
pub struct PlannedNetwork {
    /// The network.
    pub network: Network,
    /// The policies; the others are compared with the first.
    pub policies: Vec<PolicyRow>,
    /// Runs of each page with each policy.
    pub runs: u32,
    /// What the runs of each policy go over, in the order of the policies.
    pub over: Vec<Arc<RunNetwork>>,
}

/// One run: where in the plan, and which seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Index of the page; 0 if there are none.
    pub page: usize,
    /// Index of the network.
    pub network: usize,
    /// Index of the policy among those of the network.
    pub policy: usize,
    /// Number of the run, which decides its seed.
    pub run: u32,
}

/// A scenario that cannot be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A field is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A page cannot be read.
    #[error("{source}")]
    Page {
        /// The field that names it, such as `pages[1]`.
        field: String,
        /// Why.
        source: Box<PageLoadError>,
    },
}

impl PlanError {
    /// What is wrong, with field and value and without a place in the scenario's file.
    pub fn findings(&self) -> Vec<Finding> {
        match self {
            PlanError::Scenario(error) => error.findings(),
            PlanError::Page { field, source } => source.findings(field),
        }
    }
}

impl Plan {
    /// The same plan, which took otherwise how recordings are to be read, for the pages that this makes different from those of
    /// `base`; `None` if there is none. Whoever stops `base` stops it too.
    #[must_use]
    pub fn where_unlike(mut self, base: &Plan) -> Option<Plan> {
        let same = |page: &PlannedPage| base.pages.iter().any(|other| other.is_same(page));
        self.pages.retain(|page| !same(page));
        self.stop = Arc::clone(&base.stop);
        (!self.pages.is_empty()).then_some(self)
    }

    /// Checks everything in `scenario` and reads its pages. Policies are those that come with the
    /// program.
    ///
    /// # Errors
    /// If a field is wrong, a page is unreadable, or a browser or policy unknown.
    pub fn new(scenario: Scenario) -> Result<Plan, PlanError> {
        Plan::with_registry(scenario, &Registry::builtin())
    }

    /// The same with the policies of `registry`.
    ///
    /// # Errors
    /// See [`Plan::new`].
    pub fn with_registry(scenario: Scenario, registry: &Registry) -> Result<Plan, PlanError> {
        Plan::build(scenario, registry).map_err(|errors| *errors.first)
    }

    /// The same, telling all that is wrong: of each part of the scenario at least the first.
    ///
    /// # Errors
    /// See [`Plan::new`].
    pub fn build(scenario: Scenario, registry: &Registry) -> Result<Plan, PlanErrors> {
        Plan::build_with(scenario, registry, &mut Shelf::default())
    }

    /// The same with the pages of `shelf`, to which those that are read are added.
    pub fn build_with(
        mut scenario: Scenario,
        registry: &Registry,
        shelf: &mut Shelf,
    ) -> Result<Plan, PlanErrors> {
        let mut problems: Vec<PlanError> =
            scenario.problems().into_iter().map(PlanError::from).collect();
        let browser = keep(&mut problems, browser(&scenario));
        let named = policies::problems(&scenario, registry);
        let names_are_known = named.is_empty();
        problems.extend(named.into_iter().map(PlanError::from));
        // A number of runs that is refused must not be drawn.
        let extent = match problems.is_empty() {
            true => Extent::of(&scenario),
            false => Extent { runs: 1, session: 1, clients: 1 },
        };
        let pages: Vec<PlannedPage> = pages(&scenario, extent, shelf)
            .into_iter()
            .filter_map(|page| keep(&mut problems, page))
            .collect();
        for page in &pages {
            keep(&mut problems, check_connections(&scenario, page));
            keep(&mut problems, check_floor(&scenario, page));
        }
        if pages.len() == scenario.pages.len() {
            keep(&mut problems, check_servers(&scenario, &pages));
            let names = distinct("pages", pages.iter().map(|page| page.note.name.as_str()));
            keep(&mut problems, names.map_err(PlanError::from));
        }
        let mut networks = Vec::with_capacity(scenario.networks.len());
        for network in &scenario.networks {
            let whole = RunNetwork::whole(&scenario, network).map_err(PlanError::from);
            let whole = keep(&mut problems, whole);
            let alone = whole.as_ref().map(alone).unwrap_or_default();
            // What is wrong with a name has been told.
            let rows = match names_are_known {
                true => keep(&mut problems, rows(&scenario, &alone, registry)),
                false => None,
            };
            if let (Some(whole), Some(policies)) = (whole, rows) {
                let runs = scenario.runs_on(network);
                let network = network.clone();
                let whole = Arc::new(whole);
                let over = policies.iter().map(|row| {
                    let of = |at: &AlonePath| alone.iter().find(|(path, _)| path == at);
                    let alone = row.alone.as_ref().and_then(of);
                    alone.map_or_else(|| Arc::clone(&whole), |(_, alone)| Arc::clone(alone))
                });
                let over = over.collect();
                networks.push(PlannedNetwork { network, policies, runs, over });
            }
        }
        match (PlanErrors::new(problems), browser) {
            (None, Some(browser)) => {
                for (name, page) in scenario.pages.iter_mut().zip(&pages) {
                    *name = with_hash(split_hash(name).0, page.file);
                }
                let (program, stop) = (Arc::default(), Arc::default());
                let is_real = |planned: &PlannedNetwork| planned.network.server.is_some();
                let world =
                    if networks.iter().any(is_real) { World::Live } else { World::Simulated };
                let maker = None;
                Ok(Plan { scenario, browser, pages, networks, world, maker, program, stop })
            }
            (Some(errors), _) => Err(errors),
            // There is a browser if nothing was wrong with it.
            (None, None) => Err(PlanErrors {
                first: Box::new(
                    ScenarioError::invalid("browser", &scenario.browser, "a browser").into(),
                ),
                others: Vec::new(),
            }),
        }
    }

    /// What is to be known of recordings in files, a line each.
    pub fn notices(&self) -> impl Iterator<Item = String> + '_ {
        let of_page = |page: &'_ PlannedPage| {
            let named = |notice: &String| format!("page {}: {notice}", page.note.name);
            page.notices.iter().map(named).collect::<Vec<String>>()
        };
        self.pages.iter().flat_map(of_page)
    }

    /// The same plan with the time series `series` of the sender's end.
    pub(crate) fn with_series(&self, series: Series) -> Plan {
        let mut plan = self.clone();
        plan.scenario.series = series;
        plan.scenario.series_ends = SeriesEnds::Sender;
        plan
    }

    /// All runs: by page, then network, then policy, then number.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        (0..self.page_count()).flat_map(move |page| {
            self.networks.iter().enumerate().flat_map(move |(network, planned)| {
                (0..planned.policies.len()).flat_map(move |policy| {
                    (0..planned.runs).map(move |run| Cell { page, network, policy, run })
                })
            })
        })
    }

    /// All runs in an order for one after the other, in which whatever changes with time befalls all policies
    /// alike: by number, then page, then network, and there all policies in an order drawn from the seed.
    pub fn interleaved(&self) -> Vec<Cell> {
        let seed = Seed::new(self.scenario.seed);
        let most = self.networks.iter().map(|network| network.runs).max().unwrap_or_default();
        let mut cells = Vec::new();
        for run in 0..most {
            let mut random = seed.child("run", u64::from(run)).stream("order", 0);
            for page in 0..self.page_count() {
                for (network, planned) in self.networks.iter().enumerate() {
                    if run >= planned.runs {
                        continue;
                    }
                    let mut policies: Vec<usize> = (0..planned.policies.len()).collect();
                    shuffle(&mut policies, &mut random);
                    let cell = |policy| Cell { page, network, policy, run };
                    cells.extend(policies.into_iter().map(cell));
                }
            }
        }
        cells
    }

    /// What files say of the program that runs it.
    pub fn provenance(&self) -> Provenance {
        self.program.provenance(self.rows().flat_map(PolicyRow::specs))
    }

    /// The same plan for runs over emulated links, which `maker` makes, have real cryptography and are never the same
    /// twice: all networks have the scenario's number of runs.
    #[must_use]
    pub fn emulated(mut self, maker: Arc<dyn Maker>) -> Plan {
        self.world = World::Emulated;
        self.maker = Some(maker);
        self.scenario.transport.tls = Tls::Rustls;
        for planned in &mut self.networks {
            planned.runs = self.scenario.runs;
        }
        self
    }

    /// The rows of all networks.
    pub fn rows(&self) -> impl Iterator<Item = &PolicyRow> {
        self.networks.iter().flat_map(|network| &network.policies)
    }

    /// Pages, or one if there are flows only.
    pub fn page_count(&self) -> usize {
        self.pages.len().max(1)
    }

    /// The name of the page at that index; empty if there are flows only.
    pub fn page_name(&self, page: usize) -> &str {
        self.pages.get(page).map_or("", |page| &page.note.name)
    }

    /// What the run of `cell` loads, first if it is a session of several pages.
    ///
    /// # Errors
    /// If there are flows only. Else none for a cell of the plan, whose pages were all read or drawn
    /// before.
    pub fn page(&self, cell: Cell) -> Result<RunPage, PageLoadError> {
        self.visit(cell, 0)
    }

    /// Page `visit` of the session of `cell`, from 0; of the first client if there are several.
    ///
    /// # Errors
    /// As [`Plan::page`].
    pub fn visit(&self, cell: Cell, visit: u32) -> Result<RunPage, PageLoadError> {
        self.visit_of(cell, 0, visit)
    }

    /// Page `visit` of the session of client `client` in the run of `cell`, both from 0.
    ///
    /// # Errors
    /// As [`Plan::page`].
    pub fn visit_of(&self, cell: Cell, client: u32, visit: u32) -> Result<RunPage, PageLoadError> {
        let none = || ScenarioError::invalid("pages", "empty", "a page");
        self.pages.get(cell.page).ok_or_else(none)?.visit_of(cell.run, client, visit)
    }

    /// When client `client` of run `run` opens its first connection, the same for every page, network
    /// and policy.
    pub fn client_start(&self, run: u32, client: u32) -> Instant {
        Instant::ZERO + self.scenario.clients.start(self.scenario.run_seed(run), client)
    }

    /// What the run of `cell` goes over.
    pub fn run_network(&self, cell: Cell) -> &RunNetwork {
        &self.networks[cell.network].over[cell.policy]
    }

    /// What `cell` is called in messages, such as `wikipedia over wifi+lte with rr + minrtt, run 3`.
    pub fn name_of(&self, cell: Cell) -> String {
        let network = &self.networks[cell.network];
        let (name, policy) = (&network.network.name, &network.policies[cell.policy].label);
        let what = match self.page_name(cell.page) {
            "" => "flows",
            page => page,
        };
        format!("{what} over {name} with {policy}, run {}", cell.run)
    }
}

/// All that is wrong with a scenario; at least one error.
#[derive(Debug)]
pub struct PlanErrors {
    /// The first.
    pub first: Box<PlanError>,
    /// All others.
    pub others: Vec<PlanError>,
}

impl PlanErrors {
    /// Those of `list`; `None` if there are none.
    fn new(list: Vec<PlanError>) -> Option<PlanErrors> {
        let mut list = list.into_iter();
        let first = list.next()?;
        Some(PlanErrors { first: Box::new(first), others: list.collect() })
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &PlanError> {
        std::iter::once(&*self.first).chain(&self.others)
    }
}

/// The value, if there is one; the error goes to the others.
fn keep<T>(problems: &mut Vec<PlanError>, result: Result<T, PlanError>) -> Option<T> {
    result.map_err(|error| problems.push(error)).ok()
}

fn browser(scenario: &Scenario) -> Result<BrowserScheme, PlanError> {
    let browser = crate::pages::browser(&scenario.browser).map_err(|error| error.at("browser"))?;
    let has_urgency =
        scenario.priorities == Priorities::Urgency || scenario.http.has(HttpVersion::H3);
    if has_urgency && !browser.has_urgencies() {
        let known = crate::pages::browsers_with_urgencies().join(", ");
        let expected = format!("a browser with urgencies: {known}");
        return Err(ScenarioError::invalid("browser", browser.name(), expected).into());
    }
    Ok(browser)
}

/// Pages that were read, for plans that have the same.
#[derive(Debug, Default)]
pub struct Shelf(BTreeMap<ShelfKey, PlannedPage>);

/// Name and seed of a page, how many loads there are, and how it is read.
type ShelfKey = (String, u64, Extent, (String, u64));

impl Shelf {
    fn page(
        &mut self,
        name: &str,
        seed: u64,
        extent: Extent,
        reading: Reading,
    ) -> Result<PlannedPage, PageLoadError> {
        let key = (name.to_owned(), seed, extent, reading.key());
        if let Some(known) = self.0.get(&key) {
            return Ok(known.clone());
        }
        let page = PlannedPage::new(name, Seed::new(seed), extent, reading)?;
        self.0.insert(key, page.clone());
        Ok(page)
    }
}

fn pages(
    scenario: &Scenario,
    extent: Extent,
    shelf: &mut Shelf,
) -> Vec<Result<PlannedPage, PlanError>> {
    let failed = |field: String| |source| PlanError::Page { field, source: Box::new(source) };
    let seed = Seed::new(scenario.seed);
    if scenario.http.is_raw() && !scenario.raw.objects.is_empty() {
        let objects = PlannedPage::of_objects(&scenario.raw, seed);
        return vec![objects.map_err(failed("raw.objects".to_owned()))];
    }
    let pages = scenario.pages.iter().enumerate();
    let read = pages.map(|(index, name)| {
        let page = shelf.page(name, scenario.seed, extent, Reading::of(scenario));
        page.map_err(failed(format!("pages[{index}]")))
    });
    read.collect()
}

/// Checks that a run of `page` needs no more connections than it may.
fn check_connections(scenario: &Scenario, page: &PlannedPage) -> Result<(), PlanError> {
    let failed = |error| PlanError::Page { field: "pages".to_owned(), source: Box::new(error) };
    let origins = page.origins(scenario).map_err(failed)?;
    Ok(check_origins(scenario, &page.note.name, origins)?)
}

/// Checks that a recording can be loaded within the time that a load may take.
fn check_floor(scenario: &Scenario, page: &PlannedPage) -> Result<(), PlanError> {
    // One that is drawn has no delays.
    if page.file.is_none() {
        return Ok(());
    }
    let failed = |error| PlanError::Page { field: "pages".to_owned(), source: Box::new(error) };
    let floor = page.visit(0, 0).map_err(failed)?.page.floor();
    if floor < scenario.time_limit {
        return Ok(());
    }
    let found =
        format!("{} takes {} over any network, by its recording", page.note.name, floor.print());
    let expected = format!("less than the time_limit of {}", scenario.time_limit.print());
    Err(ScenarioError::invalid("pages", found, expected).into())
}

/// Checks that each of the scenario's `servers` is about a host of a page.
fn check_servers(scenario: &Scenario, pages: &[PlannedPage]) -> Result<(), PlanError> {
    if scenario.servers.is_empty() {
        return Ok(());
    }
    let failed = |error| PlanError::Page { field: "pages".to_owned(), source: Box::new(error) };
    let mut hosts = BTreeSet::new();
    for page in pages {
        let origins = page.visit(0, 0).map_err(failed)?.page.origins();
        hosts.extend(origins.names().iter().map(|name| host_of_origin(name).to_owned()));
    }
    let mut servers = scenario.servers.iter().enumerate();
    match servers.find(|(_, spec)| !hosts.iter().any(|host| spec.holds(host))) {
        None => Ok(()),
        Some((index, spec)) => {
            let hosts = hosts.iter().map(String::as_str);
            let unknown = ScenarioError::unknown("host of the pages", &spec.hosts, hosts);
            Err(unknown.at(format!("servers[{index}].hosts")).into())
        }
    }
}

/// Each path that makes a network of its own, if `whole` has several.
fn alone(whole: &RunNetwork) -> Vec<(AlonePath, Arc<RunNetwork>)> {
    let paths = &whole.network.paths;
    if paths.len() < 2 {
        return Vec::new();
    }
    let of = |position| {
        let alone = whole.alone(position)?;
        Some((AlonePath::of(&whole.network, position)?, Arc::new(alone)))
    };
    (0..paths.len()).filter_map(of).collect()
}

fn rows(
    scenario: &Scenario,
    alone: &[(AlonePath, Arc<RunNetwork>)],
    registry: &Registry,
) -> Result<Vec<PolicyRow>, PlanError> {
    let alone: Vec<AlonePath> = alone.iter().map(|(path, _)| path.clone()).collect();
    Ok(policies::rows(scenario, &alone, registry).map_err(|error| error.at("policies"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_runs_are_all_runs_number_by_number_in_an_order_of_the_seed() {
        let order = |seed: u64| {
            let text = format!(
                "seed = {seed}\nruns = 5\npages = [\"rust-vec\", \"google\"]\n\
                 networks = [{{ name = \"live\", server = \"https://a.example\", \
                 paths = [{{ name = \"a\", uplink = \"a\" }}, {{ name = \"b\", uplink = \"b\" }}] }}]"
            );
            let plan = Plan::new(Scenario::from_toml(&text, "a.toml").unwrap()).unwrap();
            let order = plan.interleaved();
            let mut sorted = order.clone();
            sorted.sort();
            assert!(sorted.into_iter().eq(plan.cells()), "each run once");
            order
        };
        let first = order(1);
        // Five policies, and two paths alone.
        assert_eq!(first.len(), 5 * 2 * 7);
        for (index, block) in first.chunks(7).enumerate() {
            let at = |cell: &Cell| (cell.run as usize, cell.page);
            assert!(block.iter().all(|cell| at(cell) == (index / 2, index % 2)), "{block:?}");
        }
        let policies =
            |block: &[Cell]| block.iter().map(|cell| cell.policy).collect::<Vec<usize>>();
        let orders: BTreeSet<Vec<usize>> = first.chunks(7).map(policies).collect();
        assert!(orders.len() > 5, "{orders:?}");
        assert_eq!(order(1), first);
        assert_ne!(order(2), first);
    }
}
