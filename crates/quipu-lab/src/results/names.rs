//! What the parts of a run of a plan are called.

use std::borrow::Cow;
use std::io;

use quipu_policy::registry::Layer;
use quipu_record::{CrossNames, FlowNames, ObjectNames, Place, RunNames};

use crate::pages::RunPage;
use crate::plan::{Cell, Plan};

/// A run of a plan, with its names.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Which of its runs.
    pub cell: Cell,
}

impl RunNames for Named<'_> {
    fn place(&self) -> Place<'_> {
        let network = &self.plan.networks[self.cell.network];
        Place {
            page: self.plan.page_name(self.cell.page),
            network: &network.network.name,
            policy: &network.policies[self.cell.policy].label,
            run: self.cell.run,
        }
    }

    fn path(&self, path: u32) -> &str {
        let paths = &self.plan.networks[self.cell.network].network.paths;
        let index = usize::try_from(path).ok();
        index.and_then(|index| paths.get(index)).map_or("", |spec| &spec.name)
    }

    fn has_traffic(&self) -> bool {
        self.plan.scenario.has_traffic()
    }

    fn flows(&self) -> Vec<FlowNames<'_>> {
        let policy = &self.plan.networks[self.cell.network].policies[self.cell.policy];
        let flows = self.plan.scenario.flows.iter().zip(&policy.flows);
        flows
            .map(|(spec, policies)| {
                let congestion = policies.part(Layer::Congestion);
                FlowNames {
                    name: &spec.name,
                    direction: spec.direction.into(),
                    congestion: Cow::Owned(congestion.map_or(String::new(), ToString::to_string)),
                }
            })
            .collect()
    }

    fn cross(&self) -> Vec<CrossNames<'_>> {
        let cross = self.plan.scenario.cross.iter();
        cross
            .map(|spec| CrossNames { name: &spec.name, direction: spec.direction.into() })
            .collect()
    }

    fn objects(&self, client: u32, visit: u32) -> io::Result<Box<dyn ObjectNames + '_>> {
        let page = self.plan.visit_of(self.cell, client, visit).map_err(io::Error::other)?;
        Ok(Box::new(Objects(page)))
    }
}

struct Objects(RunPage);

impl ObjectNames for Objects {
    fn url(&self, object: u32) -> &str {
        self.0.url(object)
    }
}

/// What every row of a run begins with: names of page, network and policy, and the number of the run.
pub fn place(plan: &Plan, cell: Cell) -> [String; 4] {
    let named = Named { plan, cell };
    let Place { page, network, policy, run } = named.place();
    [page.to_owned(), network.to_owned(), policy.to_owned(), run.to_string()]
}

/// What the part of a run in time series is called.
pub fn part_of(cell: Cell) -> String {
    let Cell { page, network, policy, run } = cell;
    format!("{page}-{network}-{policy}-{run}")
}
