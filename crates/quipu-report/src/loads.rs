//! Which loads a report shows in full, and these run again.

use std::path::Path;
use std::str::FromStr;

use quipu_base::Duration;
use quipu_lab::detail::{Detail, Options, RunName, find, plan_of, replay};
use quipu_lab::plan::Plan;
use quipu_lab::policies::Registry;
use quipu_lab::sweep::{Point, Sweep};
use quipu_scenario::Document;

use crate::notices::{Notices, clean};
use crate::read::{Folders, Source};
use crate::results::{Cell, Load, Quantity, Scene};

/// Loads in full.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    /// Where they took place, in words.
    pub(crate) place: String,
    /// One for each policy that is shown.
    pub(crate) loads: Vec<Replayed>,
}

/// A load that was run again.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) policy: String,
    pub(crate) run: u64,
    pub(crate) detail: Detail,
}

/// The load that a reader wants to see: `PAGE,NETWORK,POLICY,RUN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadName {
    /// The page.
    pub page: String,
    /// The network.
    pub network: String,
    /// The policy, as tables call it.
    pub policy: String,
    /// Number of the run, from 0.
    pub run: u32,
}

impl FromStr for LoadName {
    type Err = String;

    /// Reads the four, parted by commas. A name that has a comma stands in quotes, in which two stand for
    /// one, as in CSV; a policy needs none for those of its parameters.
    fn from_str(text: &str) -> Result<LoadName, String> {
        let wrong = || {
            format!(
                "`{text}`; expected PAGE,NETWORK,POLICY,RUN, a name with a comma in quotes (\"\")"
            )
        };
        let (page, rest) = first_field(text).ok_or_else(wrong)?;
        let (network, rest) = first_field(rest).ok_or_else(wrong)?;
        let (policy, run) = rest.rsplit_once(',').ok_or_else(wrong)?;
        let policy = match first_field(rest) {
            Some((policy, after)) if rest.trim_start().starts_with('"') && after == run => policy,
            _ => policy.trim().to_owned(),
        };
        let run = run.trim().parse().map_err(|_| wrong())?;
        Ok(LoadName { page, network, policy, run })
    }
}

/// The name in front of the first comma outside of quotes, and what comes after it.
fn first_field(text: &str) -> Option<(String, &str)> {
    let Some(mut rest) = text.trim_start().strip_prefix('"') else {
        let (name, rest) = text.split_once(',')?;
        return Some((name.trim().to_owned(), rest));
    };
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None => return Some((name, after.trim_start().strip_prefix(',')?)),
        }
    }
}

/// Policies whose loads are shown.
const MOST_POLICIES: usize = 12;

/// Bytes of a scenario that are read.
const MOST_BYTES: u64 = 1 << 24;

/// Runs the loads again that a report shows: that of `chosen`, or of each policy of the first scene its
/// middle one by page time. What cannot be run is noted.
pub(crate) fn loads(
    folders: &Folders,
    chosen: Option<&LoadName>,
    registry: &Registry,
    notices: &mut Notices,
) -> Loads {
    let results = &folders.results;
    let scene = match chosen {
        Some(name) => results
            .scenes
            .iter()
            .find(|scene| scene.place.page == name.page && scene.place.network == name.network),
        None => results.pages().next().or(results.scenes.first()),
    };
    let Some(scene) = scene else {
        if let Some(LoadName { page, network, .. }) = chosen {
            notices.add(format!("No load of {page} over {network} is in the results to be shown."));
        }
        return Loads::default();
    };
    let Some(source) = source_of(folders, scene) else { return Loads::default() };
    let plan = match plan(folders, scene, source, registry) {
        Ok(plan) => plan,
        Err(why) => {
            notices.add(format!("No load is shown in full: {why}."));
            return Loads::default();
        }
    };
    let cells = scene.cells.iter().filter(|cell| match chosen {
        Some(name) => cell.policy == name.policy,
        None => true,
    });
    let mut shown = Loads::default();
    for cell in cells.take(MOST_POLICIES) {
        let load = match chosen {
            Some(name) => cell.loads.iter().find(|load| load.run == u64::from(name.run)).copied(),
            None => middle(cell),
        };
        let Some(load) = load else { continue };
        match again(&plan, scene, cell, &load) {
            Ok(detail) => {
                let policy = cell.policy.clone();
                shown.loads.push(Replayed { policy, run: load.run, detail });
            }
            Err(why) => notices.add(format!("A load of {} is not shown: {why}.", cell.policy)),
        }
    }
    if let (Some(name), true) = (chosen, shown.loads.is_empty()) {
        notices.add(format!("No run {} of {} is there to be shown.", name.run, name.policy));
    }
    shown.place = match scene.place.page.as_str() {
        "" => scene.place.network.clone(),
        page => format!("{page} over {}", scene.place.network),
    };
    shown
}

/// The folder that rows of `scene` are from.
fn source_of<'a>(folders: &'a Folders, scene: &Scene) -> Option<&'a Source> {
    let fields = folders.results.fields.iter().zip(&scene.place.fields);
    let is = |source: &&Source| {
        source.fixed.iter().all(|(name, value)| {
            fields.clone().any(|(field, there)| field == name && there == value)
        })
    };
    folders.sources.iter().find(is)
}

/// The load whose page time is the middle one; of flows alone, the first.
fn middle(cell: &Cell) -> Option<Load> {
    let mut loads: Vec<&Load> = cell.loads.iter().collect();
    // A stable sort: of equal ones the earliest stays first.
    loads.sort_by_key(|load| load.get(Quantity::PageTime));
    loads.get(loads.len().checked_sub(1)? / 2).map(|load| **load)
}

/// The file of a sweep.
const SWEEP: &str = "sweep.toml";

/// The plan of the runs of `scene`, which are in the folder `source`.
fn plan(
    folders: &Folders,
    scene: &Scene,
    source: &Source,
    registry: &Registry,
) -> Result<Plan, String> {
    let is_sweep = source.path.join(SWEEP).is_file();
    let file = if is_sweep { SWEEP } else { "scenario.toml" };
    let name = match source.label.as_str() {
        "" => file.to_owned(),
        label => format!("{label}/{file}"),
    };
    let text =
        read(&source.path.join(file)).map_err(|why| format!("{name} cannot be read: {why}"))?;
    if !is_sweep {
        return plan_of(&text, &name, registry).map_err(|error| clean(&error.to_string()));
    }
    let sweep = Sweep::read(&Document::new(&text, &name), registry)
        .map_err(|findings| clean(&findings.to_string()))?
        .ok_or_else(|| format!("{name} has no table [sweep]"))?;
    let fields: Vec<String> = sweep.fields().map(str::to_owned).collect();
    let there: Vec<(&String, &String)> =
        folders.results.fields.iter().zip(&scene.place.fields).collect();
    let is = |point: &Point| fields.iter().zip(point.texts()).all(|pair| there.contains(&pair));
    let point = sweep.points.into_iter().find(is);
    point.map(|point| point.plan).ok_or_else(|| format!("{name} has no such point"))
}

fn read(file: &Path) -> Result<String, String> {
    let size = std::fs::metadata(file).map_err(|error| error.to_string())?.len();
    if size > MOST_BYTES {
        return Err(format!("it has {size} bytes; expected at most {MOST_BYTES}"));
    }
    std::fs::read_to_string(file).map_err(|error| error.to_string())
}

/// Runs `load` again, and makes sure that it is the one of the results.
fn again(plan: &Plan, scene: &Scene, cell: &Cell, load: &Load) -> Result<Detail, String> {
    let small =
        |number: u64| u32::try_from(number).map_err(|_| format!("there is no run {number}"));
    let name = RunName {
        page: &scene.place.page,
        network: &scene.place.network,
        policy: &cell.policy,
        run: small(load.run)?,
    };
    let error = |error: quipu_lab::detail::DetailError| clean(&error.to_string());
    let place = find(plan, &name).map_err(error)?;
    let options =
        Options { visit: small(load.visit)?, client: small(load.client)?, ..Options::default() };
    let detail = replay(plan, place, &options).map_err(error)?;
    if let Some(recorded) = load.get(Quantity::PageTime) {
        detail.compare(Duration::from_nanos(recorded)).map_err(|it| it.to_string())?;
    }
    Ok(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_named_by_four_parts_of_which_those_with_commas_are_quoted() {
        for (text, page, network, policy) in [
            ("wiki,wifi+lte,rr + minrtt,3", "wiki", "wifi+lte", "rr + minrtt"),
            (" wiki , wifi+lte , rr + minrtt , 3 ", "wiki", "wifi+lte", "rr + minrtt"),
            ("wiki,lte,rr:a=1,b=2 + minrtt,3", "wiki", "lte", "rr:a=1,b=2 + minrtt"),
            (r#""a, b","c,d",rr:a=1,b=2,3"#, "a, b", "c,d", "rr:a=1,b=2"),
            (r#"a,"c ""d"", e" , "rr:a=1,b=2",3"#, "a", r#"c "d", e"#, "rr:a=1,b=2"),
            (r#"a"b,"",rr,3"#, "a\"b", "", "rr"),
        ] {
            let name: LoadName = text.parse().unwrap();
            let LoadName { page: is_page, network: is_network, policy: is_policy, run } = name;
            assert_eq!([is_page, is_network, is_policy], [page, network, policy], "{text}");
            assert_eq!(run, 3, "{text}");
        }
    }

    #[test]
    fn what_names_no_load_is_told_with_the_form_expected() {
        for text in ["", "a,b,3", "a,b,c,d", "a,b,c,-1", r#""a,b,c,3"#, r#""a"x,b,c,3"#] {
            let error = text.parse::<LoadName>().unwrap_err();
            assert!(error.contains("expected PAGE,NETWORK,POLICY,RUN"), "{text}: {error}");
        }
    }
}
