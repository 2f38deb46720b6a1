//! Which loads a report shows in full, and these run again.

use std::str::FromStr;

use quipu_base::Duration;
use quipu_record::{Detail, LoadPlace, Replay, Replays, ResultFolder};

use crate::notices::{Notices, clean};
use crate::read::{Folders, Source};
use crate::results::{Cell, Load, Scene};
use quipu_record::Metric;

/// Loads in full.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    /// Where they took place, in words.
    pub(crate) place: String,
    /// One for each policy that is shown, or those that were named.
    pub(crate) loads: Vec<Replayed>,
    /// What the first is compared with: the others that were named, or of each other policy the same run.
    pub(crate) beside: Vec<Replayed>,
}

/// A load that was run again.
#[derive(Clone, Debug)]
pub(crate) struct Replayed {
    /// Its policy; with the run if several loads have the same policy.
    pub(crate) policy: String,
    /// Policy and run.
    pub(crate) label: String,
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

/// Runs the loads again that a report shows: those of `chosen`, or of each policy of the first scene the one
/// with the median page time; and what the first of them is compared with. What cannot be run is noted.
pub(crate) fn loads(
    folders: &Folders,
    chosen: &[LoadName],
    replays: &dyn Replays,
    notices: &mut Notices,
) -> Loads {
    let results = &folders.results;
    let scene = match chosen.first() {
        Some(name) => results
            .scenes
            .iter()
            .find(|scene| scene.place.page == name.page && scene.place.network == name.network),
        None => results.pages().next().or(results.scenes.first()),
    };
    let Some(scene) = scene else {
        if let Some(LoadName { page, network, .. }) = chosen.first() {
            notices.add(format!("The results have no load of {page} over {network} to show."));
        }
        return Loads::default();
    };
    let Some(source) = source_of(folders, scene) else { return Loads::default() };
    let fields: Vec<(String, String)> =
        results.fields.iter().cloned().zip(scene.place.fields.iter().cloned()).collect();
    let folder = ResultFolder { path: &source.path, label: &source.label, fields: &fields };
    let replay = match replays.open(&folder) {
        Ok(replay) => replay,
        Err(why) => {
            notices.add(format!("No load is shown in full: {}.", clean(&why)));
            return Loads::default();
        }
    };
    let mut run = |(cell, load): (&Cell, Load)| again(&*replay, scene, cell, load, notices);
    let mut shown = Loads::default();
    if chosen.is_empty() {
        let cells = || scene.cells.iter().take(MOST_POLICIES);
        shown.loads = cells().filter_map(|cell| run((cell, middle(cell)?))).collect();
        shown.beside = same_run(&shown.loads, scene, &mut run);
    } else {
        let named: Vec<_> =
            chosen.iter().take(MOST_POLICIES).map(|name| (name, find(scene, name))).collect();
        shown.loads = named.iter().filter_map(|(_, found)| run((*found)?)).collect();
        for (name, _) in named.iter().filter(|(_, found)| found.is_none()) {
            let LoadName { page, network, policy, run } = name;
            let why = match scene.place.page == *page && scene.place.network == *network {
                true => "the results have no such run".to_owned(),
                false => format!("the first load is of {}", place_of(scene)),
            };
            notices.add(format!(
                "Run {run} of {policy} on {page} over {network} is not shown: {why}."
            ));
        }
        name_runs(&mut shown.loads);
        shown.beside = shown.loads.iter().skip(1).cloned().collect();
    }
    shown.place = place_of(scene);
    shown
}

/// The load called `name`, if it is one of `scene`.
fn find<'a>(scene: &'a Scene, name: &LoadName) -> Option<(&'a Cell, Load)> {
    let LoadName { page, network, policy, run } = name;
    let cell = scene.cell(policy)?;
    let is_here = scene.place.page == *page && scene.place.network == *network;
    let load = cell.loads.iter().find(|load| is_here && load.run == u64::from(*run))?;
    Some((cell, *load))
}

/// Runs `load` again; what cannot be run is noted.
fn again(
    replay: &dyn Replay,
    scene: &Scene,
    cell: &Cell,
    load: Load,
    notices: &mut Notices,
) -> Option<Replayed> {
    let place = LoadPlace {
        page: &scene.place.page,
        network: &scene.place.network,
        policy: &cell.policy,
        run: load.run,
        visit: load.visit,
        client: load.client,
        page_time: load.get(Metric::PageTime).map(Duration::from_nanos),
    };
    match replay.replay(&place) {
        Ok(detail) => {
            let (policy, run) = (cell.policy.clone(), load.run);
            Some(Replayed { label: format!("{policy}, run {run}"), policy, run, detail })
        }
        Err(why) => {
            notices.add(format!("A load of {} is not shown: {}.", cell.policy, clean(&why)));
            None
        }
    }
}

/// Of each policy after the first of `loads` the run of that first, which has the same links and losses.
fn same_run(
    loads: &[Replayed],
    scene: &Scene,
    run: &mut impl FnMut((&Cell, Load)) -> Option<Replayed>,
) -> Vec<Replayed> {
    let Some((first, others)) = loads.split_first() else { return Vec::new() };
    if first.detail.objects.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for other in others {
        if other.run == first.run {
            found.push(other.clone());
            continue;
        }
        let cell = scene.cell(&other.policy);
        let key = |load: &&Load| load.run == first.run && load.client == 0 && load.visit == 0;
        let load = cell.and_then(|cell| Some((cell, *cell.loads.iter().find(key)?)));
        found.extend(load.and_then(&mut *run));
    }
    found
}

/// Has loads of the same policy told apart by their runs.
fn name_runs(loads: &mut [Replayed]) {
    let names: Vec<String> = loads.iter().map(|load| load.policy.clone()).collect();
    for load in loads {
        if names.iter().filter(|name| **name == load.policy).count() > 1 {
            load.policy.clone_from(&load.label);
        }
    }
}

/// Page and network in words.
fn place_of(scene: &Scene) -> String {
    match scene.place.page.as_str() {
        "" => scene.place.network.clone(),
        page => format!("{page} over {}", scene.place.network),
    }
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
    loads.sort_by_key(|load| load.get(Metric::PageTime));
    loads.get(loads.len().checked_sub(1)? / 2).map(|load| **load)
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
