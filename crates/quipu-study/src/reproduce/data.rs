//! The papers' numbers, beside ours.

use super::compare;
use super::places::{Spot, Unit, network_of, page_of, policy_of};
use super::select::Runs;
use quipu_base::Seed;
use quipu_lab::plan::Plan;
use quipu_record::stats::Comparison;
use quipu_record::threshold::Amount;
use quipu_record::verdict::DataRow;
use quipu_scenario::experiment::{Data, DataValue, Measure, Stat};

/// A number of a paper, and where ours is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PaperNumber {
    spot: Spot,
    metric: Measure,
    stat: Stat,
    source: String,
    paper: Amount,
}

/// Reads the numbers that `data` has, and finds their places in `plan`. `read` gives the text of a file
/// beside the scenario's.
///
/// # Errors
/// If a table cannot be read, has no such column or row, or a place is unknown.
pub(super) fn numbers(
    data: &Data,
    plan: &Plan,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Vec<PaperNumber>, String> {
    let values = match (&data.file, data.values.is_empty()) {
        (Some(_), false) => return Err("data has either values or a file".to_owned()),
        (None, true) => return Err("data has neither values nor a file".to_owned()),
        (None, false) => data.values.clone(),
        (Some(file), true) => {
            let text = read(file).map_err(|reason| format!("data {file}: {reason}"))?;
            rows(data, &text).map_err(|reason| format!("data {file}: {reason}"))?
        }
    };
    let mut all = Vec::new();
    for value in values {
        let only = |given: &str, whole: &str, names: Vec<&str>| -> Result<String, String> {
            match [given, whole].into_iter().find(|name| !name.is_empty()) {
                Some(name) => Ok(name.to_owned()),
                None => match names.as_slice() {
                    [] => Ok(String::new()),
                    [only] => Ok((*only).to_owned()),
                    several => Err(format!("data needs one of {}", several.join(", "))),
                },
            }
        };
        let pages = plan.pages.iter().map(|page| page.note.name.as_str()).collect();
        let page = page_of(plan, &only(&value.page, &data.page, pages)?)?;
        let networks = plan.networks.iter().map(|it| it.network.name.as_str()).collect();
        let network = network_of(plan, &only(&value.network, &data.network, networks)?)?;
        let policy = policy_of(plan, network, &value.policy)?;
        for (stat, text) in &value.stats {
            let stat = stat_named(stat)?;
            let paper = Amount::parse(text)
                .filter(|amount| amount.dimension == data.metric.dimension())
                .ok_or_else(|| format!("data: `{text}`: expected an amount of {}", data.metric))?;
            all.push(PaperNumber {
                spot: Spot { page, network, policy },
                metric: data.metric.clone(),
                stat,
                source: data.source.clone(),
                paper,
            });
        }
    }
    Ok(all)
}

fn stat_named(text: &str) -> Result<Stat, String> {
    let value = toml::Value::String(text.to_owned());
    let stat: Result<Stat, toml::de::Error> = value.try_into();
    let stat = stat.map_err(|error| format!("data: {}", error.message()))?;
    match stat {
        Stat::Mean | Stat::Min | Stat::Max | Stat::Percentile(_) => Ok(stat),
        _ => Err(format!("data: `{text}`: expected mean, median, min, max or p0 to p100")),
    }
}

/// The rows of a table that `data` wants.
fn rows(data: &Data, text: &str) -> Result<Vec<DataValue>, String> {
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let header = table.headers().map_err(|error| error.to_string())?.clone();
    let column = |name: &str| {
        let found = header.iter().position(|column| column == name);
        found.ok_or_else(|| {
            let near = quipu_record::suggestion(name, header.iter());
            format!("there is no column `{name}`{near}")
        })
    };
    let policy = column(&data.policy_column)?;
    let filter = data.filter.iter().map(|(name, wanted)| Ok((column(name)?, wanted.as_str())));
    let filter = filter.collect::<Result<Vec<_>, String>>()?;
    let stats = data.columns.iter().map(|(stat, name)| Ok((stat.clone(), column(name)?)));
    let stats = stats.collect::<Result<Vec<_>, String>>()?;
    let mut all = Vec::new();
    for row in table.records() {
        let row = row.map_err(|error| error.to_string())?;
        if filter.iter().any(|(index, wanted)| row.get(*index) != Some(*wanted)) {
            continue;
        }
        let Some(label) = row.get(policy).and_then(|text| data.policies.get(text)) else {
            continue;
        };
        let cell = |(stat, index): &(String, usize)| {
            let text = row.get(*index).filter(|text| !text.is_empty())?;
            Some((stat.clone(), format!("{text}{}", data.unit)))
        };
        all.push(DataValue {
            policy: label.clone(),
            page: String::new(),
            network: String::new(),
            stats: stats.iter().filter_map(cell).collect(),
        });
    }
    if all.is_empty() { Err("no row is of the form wanted".to_owned()) } else { Ok(all) }
}

/// The numbers beside ours.
pub(super) fn beside(numbers: &[PaperNumber], unit: &Unit, runs: &Runs<'_>) -> Vec<DataRow> {
    let plan = &unit.plan;
    let row = |number: &PaperNumber| {
        let network = &plan.networks[number.spot.network];
        let random = plan.scenario.is_random(&network.network);
        let chance = Comparison::new(Seed::new(plan.scenario.seed), random);
        let metric = match number.metric.pooled {
            true => Measure { stat: number.stat, ..number.metric.clone() },
            false => number.metric.clone(),
        };
        let samples = runs.samples(number.spot, &metric);
        let ours = samples
            .and_then(|samples| compare::value(&samples, &metric, number.stat, &chance))
            .ok();
        let dimension = metric.dimension();
        let show = |value: f64| Amount { value, dimension }.to_string();
        let interval = ours.and_then(|ours| ours.interval);
        DataRow {
            page: plan.page_name(number.spot.page).to_owned(),
            network: network.network.name.clone(),
            policy: network.policies[number.spot.policy].label.clone(),
            metric: number.metric.to_string(),
            stat: number.stat.to_string(),
            source: number.source.clone(),
            paper: number.paper.to_string(),
            here: ours.map_or(String::new(), |ours| show(ours.value)),
            interval: interval
                .map_or(String::new(), |(low, high)| format!("{} to {}", show(low), show(high))),
            paper_value: number.paper.value,
            here_value: ours.map(|ours| ours.value),
        }
    };
    numbers.iter().map(row).collect()
}
