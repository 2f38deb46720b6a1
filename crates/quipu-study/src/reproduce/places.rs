//! Where a rule looks: every page, network and policy that it may be about, and what is compared there.

use quipu_lab::plan::{Cell, Plan};
use quipu_record::suggestion;
use quipu_scenario::experiment::{Measure, Named, Others, Rule, Side};

/// What is run for an id: the scenario, a variant of it, or a combination of what the paper leaves open.
#[derive(Debug)]
pub(super) struct Unit {
    /// Name of the variant; `None` for the scenario itself, and in combinations, which are judged as it is.
    pub(super) variant: Option<String>,
    /// What may be run of it.
    pub(super) plan: Plan,
    /// What is run, in the order of the plan.
    pub(super) cells: Vec<Cell>,
}

impl Unit {
    /// Everything of `plan`.
    pub(super) fn whole(variant: Option<String>, plan: Plan) -> Unit {
        let cells = plan.cells().collect();
        Unit { variant, plan, cells }
    }
}

/// A page over a network with a policy, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) page: usize,
    pub(super) network: usize,
    pub(super) policy: usize,
}

/// Runs that a rule looks at, and what it looks at in them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    /// Position among the units.
    pub(super) unit: usize,
    pub(super) spot: Spot,
    pub(super) metric: Measure,
}

/// One comparison of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) of: Point,
    pub(super) to: Option<Point>,
    pub(super) beside: Option<[Point; 2]>,
}

/// Names of where a point is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) variant: String,
    pub(super) page: String,
    pub(super) network: String,
    pub(super) policy: String,
}

/// What the scenario itself is called among variants.
pub(super) const MAIN: &str = "main";

/// All comparisons of `rule`.
///
/// # Errors
/// If a name is unknown, or there is nothing to compare.
pub(super) fn places(rule: &Rule, units: &[Unit]) -> Result<Vec<Place>, String> {
    let mut all = Vec::new();
    if rule.steps.is_empty() {
        for side in &rule.of {
            for of in points(rule, side, units)? {
                add(rule, of, units, &mut all)?;
            }
        }
    } else {
        for pair in rule.steps.windows(2) {
            for of in points(rule, &pair[1], units)? {
                let to = moved(&of, &pair[0], units, &rule.metric)?;
                all.push(Place { beside: beside(rule, &of, Some(&to), units)?, of, to: Some(to) });
            }
        }
    }
    if all.is_empty() { Err("there is nothing to compare".to_owned()) } else { Ok(all) }
}

/// Adds the comparisons of `of`.
fn add(rule: &Rule, of: Point, units: &[Unit], all: &mut Vec<Place>) -> Result<(), String> {
    let others = match &rule.to {
        Others::None => {
            all.push(Place { of, to: None, beside: None });
            return Ok(());
        }
        Others::Sides(sides) => {
            let to = sides.iter().map(|side| moved(&of, side, units, &rule.metric));
            to.collect::<Result<Vec<_>, _>>()?
        }
        Others::Policies => {
            let rows = &units[of.unit].plan.networks[of.spot.network].policies;
            let wanted = |policy: &usize| {
                *policy != of.spot.policy
                    && (rule.policies.is_empty() || rule.policies.contains(&rows[*policy].label))
            };
            let others = (0..rows.len()).filter(wanted);
            others.map(|policy| Point { spot: Spot { policy, ..of.spot }, ..of.clone() }).collect()
        }
    };
    for to in others {
        // Nothing is compared with itself.
        if to != of {
            let beside = beside(rule, &of, Some(&to), units)?;
            all.push(Place { of: of.clone(), to: Some(to), beside });
        }
    }
    Ok(())
}

/// The comparison of `of` with `to` where `beside` of the rule says.
fn beside(
    rule: &Rule,
    of: &Point,
    to: Option<&Point>,
    units: &[Unit],
) -> Result<Option<[Point; 2]>, String> {
    let (Some(side), Some(to)) = (&rule.beside, to) else { return Ok(None) };
    let both = [moved(of, side, units, &of.metric)?, moved(to, side, units, &to.metric)?];
    Ok(Some(both))
}

/// All points that `side` of `rule` may mean.
fn points(rule: &Rule, side: &Side, units: &[Unit]) -> Result<Vec<Point>, String> {
    let unit = match &side.variant {
        None => 0,
        Some(name) => unit_of(units, name)?,
    };
    let plan = &units[unit].plan;
    let pages = match (&side.page, rule.pages.as_slice()) {
        (Some(name), _) => vec![page_of(plan, name)?],
        (None, []) => (0..plan.page_count()).collect(),
        (None, names) => names.iter().map(|name| page_of(plan, name)).collect::<Result<_, _>>()?,
    };
    let networks = match (&side.network, rule.networks.as_slice()) {
        (Some(name), _) => vec![network_of(plan, name)?],
        (None, []) => (0..plan.networks.len()).collect(),
        (None, names) => names.iter().map(|it| network_of(plan, it)).collect::<Result<_, _>>()?,
    };
    let mut all = Vec::new();
    for page in pages {
        for &network in &networks {
            let policies = match (&side.policy, rule.policies.as_slice()) {
                (Some(label), _) => vec![policy_of(plan, network, label)?],
                // With `others` the list says with whom.
                (None, labels) if !labels.is_empty() => labels
                    .iter()
                    .map(|label| policy_of(plan, network, label))
                    .collect::<Result<_, _>>()?,
                (None, _) => (0..plan.networks[network].policies.len()).collect(),
            };
            let metric = side.metric.as_ref().unwrap_or(&rule.metric);
            all.extend(policies.into_iter().map(|policy| Point {
                unit,
                spot: Spot { page, network, policy },
                metric: metric.clone(),
            }));
        }
    }
    Ok(all)
}

/// The point that is as `of` but for what `side` says.
pub(super) fn moved(
    of: &Point,
    side: &Side,
    units: &[Unit],
    metric: &Measure,
) -> Result<Point, String> {
    let names = of.names(units);
    let unit = match &side.variant {
        None => of.unit,
        Some(name) => unit_of(units, name)?,
    };
    let plan = &units[unit].plan;
    let page = page_of(plan, side.page.as_ref().unwrap_or(&names.page))?;
    let network = network_of(plan, side.network.as_ref().unwrap_or(&names.network))?;
    let policy = policy_of(plan, network, side.policy.as_ref().unwrap_or(&names.policy))?;
    let metric = side.metric.as_ref().unwrap_or(metric).clone();
    Ok(Point { unit, spot: Spot { page, network, policy }, metric })
}

impl Place {
    /// Everything that it looks at.
    pub(super) fn points(&self) -> impl Iterator<Item = &Point> {
        std::iter::once(&self.of).chain(&self.to).chain(self.beside.iter().flatten())
    }
}

impl Point {
    /// The names of where it is.
    pub(super) fn names(&self, units: &[Unit]) -> Names {
        let unit = &units[self.unit];
        let network = &unit.plan.networks[self.spot.network];
        Names {
            variant: unit.variant.clone().unwrap_or_else(|| MAIN.to_owned()),
            page: unit.plan.page_name(self.spot.page).to_owned(),
            network: network.network.name.clone(),
            policy: network.policies[self.spot.policy].label.clone(),
        }
    }
}

/// Position of the variant called `name` among the units.
pub(super) fn unit_of(units: &[Unit], name: &str) -> Result<usize, String> {
    let names = units.iter().map(|unit| unit.variant.as_deref().unwrap_or(MAIN));
    position("variant", Some(&Named::Name(name.to_owned())), names)
}

/// Position of the page called `name`; there is one without a name if there are flows only.
pub(super) fn page_of(plan: &Plan, name: &str) -> Result<usize, String> {
    if name.is_empty() && plan.pages.is_empty() {
        return Ok(0);
    }
    let names = plan.pages.iter().map(|page| page.note.name.as_str());
    position("page", Some(&Named::Name(name.to_owned())), names)
}

/// Position of the network called `name`.
pub(super) fn network_of(plan: &Plan, name: &str) -> Result<usize, String> {
    let names = plan.networks.iter().map(|network| network.network.name.as_str());
    position("network", Some(&Named::Name(name.to_owned())), names)
}

/// Position of the policy called `label` on a network.
pub(super) fn policy_of(plan: &Plan, network: usize, label: &str) -> Result<usize, String> {
    let names = plan.networks[network].policies.iter().map(|row| row.label.as_str());
    position("policy", Some(&Named::Name(label.to_owned())), names)
}

/// Position of the one that is named.
pub(super) fn position<'a>(
    what: &str,
    named: Option<&Named>,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<usize, String> {
    let found = match named {
        Some(Named::Name(name)) => names.clone().position(|other| other == name),
        Some(Named::Index(index)) => {
            Some(*index as usize).filter(|index| *index < names.clone().count())
        }
        None => None,
    };
    found.ok_or_else(|| {
        let name = named.map_or(String::new(), ToString::to_string);
        let known: Vec<&str> = names.clone().collect();
        let near = suggestion(&name, names);
        format!("there is no {what} `{name}`{near}; there are: {}", known.join(", "))
    })
}
