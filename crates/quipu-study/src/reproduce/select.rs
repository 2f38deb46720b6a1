//! From runs to numbers: what a measure gives for each run of a place.

use std::collections::BTreeMap;

use super::dealt::Dealt;
use super::places::{Spot, policy_of, position};
use super::samples;
use super::stat::stat_of;
use quipu_base::{Bytes, Duration};
use quipu_lab::plan::{Cell, Plan};
use quipu_record::stats::kendall;
use quipu_record::{FlowRecord, ObjectRecord, RunRecord, Scope, SeriesRow, jain};
use quipu_scenario::experiment::{Measure, Metric, Named, Stat};
use quipu_scenario::wildcard;
use quipu_scenario::{Direction, FlowSpec};

/// All runs of a scenario.
#[derive(Clone, Copy)]
pub(super) struct Runs<'a> {
    /// The scenario.
    pub(super) plan: &'a Plan,
    /// Those that ended well, in the plan's order.
    pub(super) finished: &'a [(Cell, RunRecord)],
    /// What time series gave in each run.
    pub(super) series: &'a BTreeMap<Cell, OfSeries<'a>>,
    /// Which policy's the results of each run count as, if not those of its own.
    pub(super) dealt: Option<&'a Dealt>,
}

/// What the time series of a run gave: each measure that looks at it, with its number if it has one.
pub(super) type OfSeries<'m> = Vec<(&'m Measure, Option<f64>)>;

/// Numbers of a run, of one of its clients, and of the page in the session of that client.
pub(super) type Load = (u32, u32, u32);

/// What one run, or one page of its session, gave: a number, or one for each object if pooled.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// Numbers of the run, of the client and of the page in its session.
    pub(super) load: Load,
    /// What it gave.
    pub(super) values: Vec<f64>,
}

impl Runs<'_> {
    /// What `measure` gives in each run at `spot`. Runs that have nothing to give are left out.
    ///
    /// # Errors
    /// If no run gives anything, or a name is unknown.
    pub(super) fn samples(&self, spot: Spot, measure: &Measure) -> Result<Vec<Sample>, String> {
        if measure.metric == Metric::Drawn {
            return self.drawn(spot, measure);
        }
        let mut all = Vec::new();
        for (cell, record) in self.finished {
            let policy = self.dealt.map_or(cell.policy, |dealt| dealt.policy(cell));
            if (cell.page, cell.network, policy) != (spot.page, spot.network, spot.policy) {
                continue;
            }
            // Traffic and series are those of the whole run.
            let whole_run = measure.flow.is_some()
                || measure.is_of_series()
                || matches!(measure.metric.entry().scope, Scope::Flows | Scope::Link);
            if whole_run && !record.is_first() {
                continue;
            }
            let values = self.values(cell, record, measure)?;
            if values.is_empty() {
                if measure.metric == Metric::State {
                    let state = measure.state.as_deref().unwrap_or_default();
                    return Err(format!("{} never was in `{state}`", self.plan.name_of(*cell)));
                }
                continue;
            }
            all.push(Sample { load: (cell.run, record.client, record.visit), values });
        }
        if all.is_empty() {
            let cell = Cell { page: spot.page, network: spot.network, policy: spot.policy, run: 0 };
            let name = self.plan.name_of(cell);
            let place = name.rsplit_once(", run").map_or(name.as_str(), |(place, _)| place);
            return Err(format!("no run of {place} has {measure}"));
        }
        // Those of other policies come in the order of these.
        if self.dealt.is_some() {
            all.sort_by_key(|sample| sample.load);
        }
        Ok(all)
    }

    /// What one run gives; nothing if it has nothing of the kind.
    fn values(
        &self,
        cell: &Cell,
        record: &RunRecord,
        measure: &Measure,
    ) -> Result<Vec<f64>, String> {
        let scope = measure.metric.entry().scope;
        let one = match scope {
            Scope::Load(_) | Scope::OverBound(_) | Scope::Number(_) => {
                measure.metric.number(record)
            }
            Scope::Path(of) => {
                let path = self.path(cell, measure)?;
                u32::try_from(path).ok().and_then(|path| of(record, path))
            }
            Scope::Order => self.order(cell, record, measure)?,
            Scope::Object => return self.objects(cell, record, measure),
            Scope::Stream => {
                let mut streams = record.streams.iter();
                let stream = streams.find(|stream| Some(stream.stream) == measure.stream);
                stream.map(|stream| stream.since_page_start.as_nanos() as f64)
            }
            Scope::Flow(of) => of(self.flow(record, measure)?.1),
            Scope::FlowAmong => self.flow_share(record, measure)?,
            Scope::Flows => self.fairness(record, measure.direction),
            Scope::Link => self.utilisation(cell, record, measure)?,
            Scope::Series => {
                let numbers = self.series.get(cell).into_iter().flatten();
                numbers.filter(|(of, _)| *of == measure).find_map(|(_, number)| *number)
            }
            Scope::Model => None,
        };
        Ok(one.into_iter().collect())
    }

    /// Times of the objects that `measure` chooses: all if pooled, else one number of them.
    fn objects(
        &self,
        cell: &Cell,
        record: &RunRecord,
        measure: &Measure,
    ) -> Result<Vec<f64>, String> {
        let page = if measure.kind.is_some() || measure.url.is_some() {
            let page = self.plan.visit_of(*cell, record.client, record.visit);
            Some(page.map_err(|error| error.to_string())?)
        } else {
            None
        };
        let chosen = record.objects.iter().filter(|object| {
            let kind = || {
                let id = quipu_web::page::ObjectId(object.object);
                page.as_ref().and_then(|page| page.page.object(id)).map(|object| object.kind)
            };
            let url = || page.as_ref().map_or("", |page| page.url(object.object));
            measure.index.is_none_or(|index| index == object.object)
                && measure.stream.is_none_or(|stream| object.stream == Some(stream))
                && measure.kind.is_none_or(|wanted| kind() == Some(wanted))
                && measure.url.as_ref().is_none_or(|pattern| wildcard::matches(pattern, url()))
        });
        let mut times: Vec<f64> =
            chosen.map(|object| object.since_page_start.as_nanos() as f64).collect();
        if let Some(rank) = measure.rank {
            times.sort_by(f64::total_cmp);
            let place = usize::try_from(rank).unwrap_or(usize::MAX).saturating_sub(1);
            return Ok(times.get(place).copied().into_iter().collect());
        }
        if measure.pooled {
            return Ok(times);
        }
        Ok(stat_of(measure.stat, &times).into_iter().collect())
    }

    /// How far objects end in the order in which they do under another policy in the same run.
    fn order(
        &self,
        cell: &Cell,
        record: &RunRecord,
        measure: &Measure,
    ) -> Result<Option<f64>, String> {
        let label = measure.against.as_deref().unwrap_or_default();
        let policy = policy_of(self.plan, cell.network, label)?;
        let dealt = |cell: &Cell| self.dealt.map_or(cell.policy, |dealt| dealt.policy(cell));
        let other = self.finished.iter().find(|(at, other)| {
            (at.page, at.network, at.run) == (cell.page, cell.network, cell.run)
                && (other.client, other.visit) == (record.client, record.visit)
                && dealt(at) == policy
        });
        let Some((_, other)) = other else { return Ok(None) };
        let end = |object: &ObjectRecord| (object.object, object.since_page_start);
        let others: BTreeMap<u32, Duration> = other.objects.iter().map(end).collect();
        let pairs = record
            .objects
            .iter()
            .map(end)
            .filter_map(|(object, at)| Some((at.as_nanos(), others.get(&object)?.as_nanos())));
        Ok(kendall(&pairs.collect::<Vec<_>>()))
    }

    /// Position of the path that `measure` names, in the network of `cell`.
    fn path(&self, cell: &Cell, measure: &Measure) -> Result<usize, String> {
        let paths = &self.plan.networks[cell.network].network.paths;
        let names = paths.iter().map(|path| path.name.as_str());
        position("path", measure.path.as_ref(), names)
    }

    /// The flow that `measure` names, as the scenario has it and as it went.
    fn flow<'r>(
        &self,
        record: &'r RunRecord,
        measure: &Measure,
    ) -> Result<(&FlowSpec, &'r FlowRecord), String> {
        let flows = &self.plan.scenario.flows;
        let names = flows.iter().map(|flow| flow.name.as_str());
        let index = position("flow", measure.flow.as_ref(), names)?;
        let flow = flows.get(index).zip(record.traffic.flow(index));
        flow.ok_or_else(|| format!("flow {index} has no record"))
    }

    fn flow_share(&self, record: &RunRecord, measure: &Measure) -> Result<Option<f64>, String> {
        let (spec, flow) = self.flow(record, measure)?;
        let own = flow.bytes.0 as f64;
        let specs = self.plan.scenario.flows.iter().enumerate();
        let same = specs.filter(|(_, other)| other.direction == spec.direction);
        let same = same.filter_map(|(index, _)| record.traffic.flow(index));
        let all: f64 = same.map(|flow| flow.bytes.0 as f64).sum();
        Ok((all > 0.0).then_some(own / all))
    }

    /// Jain's index, as tables have it.
    fn fairness(&self, record: &RunRecord, direction: Direction) -> Option<f64> {
        let specs = self.plan.scenario.flows.iter().enumerate();
        let same = specs.filter(|(_, spec)| spec.direction == direction);
        let got: Vec<u64> = same
            .filter_map(|(index, _)| record.traffic.flow(index))
            .filter(|flow| !flow.lived.is_zero())
            .map(|flow| flow.bytes.0)
            .collect();
        jain(&got).map(|millionths| millionths as f64 / 1e6)
    }

    fn utilisation(
        &self,
        cell: &Cell,
        record: &RunRecord,
        measure: &Measure,
    ) -> Result<Option<f64>, String> {
        let path = self.path(cell, measure)?;
        let mut links = record.traffic.links.iter();
        let link = links
            .find(|link| link.path as usize == path && link.direction == measure.direction.into())
            .filter(|link| link.capacity > Bytes::ZERO);
        Ok(link.map(|link| link.delivered.0 as f64 / link.capacity.0 as f64))
    }

    /// A quantity of the model, over all pages drawn: one number, whatever the runs.
    fn drawn(&self, spot: Spot, measure: &Measure) -> Result<Vec<Sample>, String> {
        let note = self.plan.pages.get(spot.page).and_then(|page| page.note.drawn.as_ref());
        let note = note.ok_or_else(|| "the page is not drawn in each run".to_owned())?;
        let quantity = measure.drawn.and_then(|index| note.quantities.get(index));
        let quantity = quantity.ok_or_else(|| "nothing of that quantity was drawn".to_owned())?;
        let value = match measure.stat {
            Stat::Deviation => quantity.deviation,
            Stat::Max => quantity.most,
            Stat::LogMean => quantity.log_mean,
            Stat::LogDeviation => quantity.log_deviation,
            _ => quantity.mean,
        };
        Ok(vec![Sample { load: (0, 0, 0), values: vec![value] }])
    }
}

/// What the measures of time series give for a run of `cell` that has the samples `rows`.
pub(super) fn of_series<'m>(
    plan: &Plan,
    cell: Cell,
    rows: &[SeriesRow],
    measures: &'m [Measure],
) -> OfSeries<'m> {
    let number = |measure: &Measure| {
        let flow = match &measure.flow {
            None => rows.first().map(|row| &*row.flow)?,
            Some(Named::Name(name)) => name.as_str(),
            Some(Named::Index(index)) => {
                plan.scenario.flows.get(*index as usize).map(|flow| flow.name.as_str())?
            }
        };
        let path = match &measure.path {
            None => None,
            Some(Named::Index(index)) => Some(*index),
            Some(Named::Name(name)) => {
                let network = plan.run_network(cell);
                let at = network.network.paths.iter().position(|path| path.name == *name)?;
                // Identifiers of a connection's paths are positions among its own.
                let flows = &plan.scenario.flows;
                let own = flows.iter().position(|spec| spec.name == flow);
                let own = own.and_then(|index| network.flow_paths.get(index));
                let id = own.map_or(Some(at), |own| own.iter().position(|path| *path == at))?;
                Some(u32::try_from(id).ok()?)
            }
        };
        samples::number(rows, flow, path, measure)
    };
    measures.iter().map(|measure| (measure, number(measure))).collect()
}
