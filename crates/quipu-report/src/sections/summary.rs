//! The result in sentences, from the numbers alone.

use std::collections::{BTreeMap, BTreeSet};

use super::{Context, times, verdicts, words};
use crate::aggregate::ratios::{Difference, Standing};
use crate::results::{Cell, Scene};
use quipu_record::{Metric, NetworkShare, Turned};

/// Scenes that are told one by one.
const FEW_SCENES: usize = 3;
/// Names in a list.
const MOST_NAMES: usize = 4;

/// Turns of one scene that are told, more are counted.
const MOST_TURNED: usize = 3;

/// The sentences, most important first.
pub(super) fn summary(context: &Context<'_>) -> Vec<String> {
    let mut sentences = verdicts::sentences(context.folders);
    // Scenes of different experiments are no set that one could count winners in.
    if context.folders.judged.len() <= 1 {
        let told: Vec<(&Scene, &Standing)> = context
            .scenes
            .iter()
            .zip(&context.standings)
            .filter_map(|(scene, standing)| Some((*scene, standing.as_ref()?)))
            .collect();
        if told.len() > FEW_SCENES {
            sentences.extend(overall(context, &told));
        } else {
            for (scene, standing) in told {
                sentences.extend(of_scene(context, scene, standing));
            }
        }
        sentences.extend(only_one(context));
        sentences.extend(network_shares(context));
        sentences.extend(alone(context));
        sentences.extend(turned(context));
        sentences.extend(flows(context));
    }
    sentences.extend(runs(context));
    sentences
}

/// Who is fastest in one scene, who is as fast, and who is slowest.
fn of_scene(context: &Context<'_>, scene: &Scene, standing: &Standing) -> Vec<String> {
    let best = &scene.cells[standing.best];
    let name = |position: &usize| scene.cells[*position].policy.as_str();
    let of = |difference: Difference| -> Vec<&str> {
        let found = standing.others.iter().filter(|(_, it)| it.difference() == difference);
        found.map(|(position, _)| name(position)).collect()
    };
    let times = best.values(Metric::PageTime);
    let median = quipu_record::stats::median(&times).unwrap_or_default();
    let mut sentences = vec![format!(
        "On {}, {} is fastest: the page is complete after {} ({}).",
        context.name(scene),
        best.policy,
        words::time(median),
        match times.len() {
            1 => "one load".to_owned(),
            loads => format!("median of {} loads", words::grouped(loads as u64)),
        }
    )];
    let same = of(Difference::Same);
    if !same.is_empty() {
        let (give, list) =
            (if same.len() == 1 { "gives" } else { "give" }, words::list(&same, MOST_NAMES));
        sentences.push(format!("{list} {give} the same result in every run."));
    }
    let unclear = of(Difference::Unclear);
    if !unclear.is_empty() {
        sentences.push(format!(
            "{} cannot be distinguished from it: the intervals of the ratios contain 1.",
            words::list(&unclear, MOST_NAMES)
        ));
    }
    let clear: Vec<&(usize, crate::results::Ratio)> = standing
        .others
        .iter()
        .filter(|(_, it)| matches!(it.difference(), Difference::Clear | Difference::Single))
        .collect();
    if let Some((position, ratio)) = clear.first() {
        sentences.push(format!(
            "{} {} needs {} times as long{}{}.",
            if clear.len() == 1 { "Only" } else { "Next," },
            name(position),
            words::ratio(ratio.mean),
            words::interval(ratio),
            match clear.len() {
                1 => String::new(),
                _ => match clear.last() {
                    Some((last, ratio)) => format!(
                        "; slowest is {} with {} times{}",
                        name(last),
                        words::ratio(ratio.mean),
                        words::interval(ratio)
                    ),
                    None => String::new(),
                },
            }
        ));
    }
    if let Some(over) = times::over_bound(best) {
        sentences.push(format!(
            "{} is at {over:.2} times the bound there, which no scheduler can beat.",
            best.policy
        ));
    }
    sentences
}

/// Who is fastest in how many of many scenes.
fn overall(context: &Context<'_>, told: &[(&Scene, &Standing)]) -> Vec<String> {
    let mut wins: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut largest: Option<(f64, &Scene, &str, &str)> = None;
    let mut to_best: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut clear = 0;
    for (scene, standing) in told {
        let best = scene.cells[standing.best].policy.as_str();
        wins.entry(best).or_default().0 += 1;
        wins.entry(best).or_default().1 += 1;
        to_best.entry(best).or_default().push(1_000_000);
        for (position, ratio) in &standing.others {
            let policy = scene.cells[*position].policy.as_str();
            // Ratios of times, far below 2^64 millionths.
            to_best.entry(policy).or_default().push((ratio.mean * 1e6) as u64);
            if matches!(ratio.difference(), Difference::Same | Difference::Unclear) {
                wins.entry(policy).or_default().1 += 1;
            }
            if largest.is_none_or(|(most, ..)| ratio.mean > most) {
                largest = Some((ratio.mean, scene, policy, best));
            }
        }
        let near = |(_, ratio): &&(usize, crate::results::Ratio)| {
            matches!(ratio.difference(), Difference::Same | Difference::Unclear)
        };
        clear += u64::from(standing.others.iter().filter(near).count() == 0);
    }
    let all = told.len() as u64;
    let what = combination(context);
    let mut order: Vec<(&str, (u64, u64))> = wins.into_iter().collect();
    order.sort_by(|one, other| {
        (other.1.1, other.1.0).cmp(&(one.1.1, one.1.0)).then(one.0.cmp(other.0))
    });
    let mut sentences = Vec::new();
    if let Some((policy, (first, among))) = order.first() {
        let of = format!("{} {what}", words::grouped(all));
        sentences.push(match first == among {
            true => format!(
                "By page time {policy} is the fastest in {} of {of}.",
                words::grouped(*first)
            ),
            false => format!(
                "By page time {policy} is the fastest, or cannot be distinguished from the fastest, in \
                 {} of {of}; it is the fastest in {}.",
                words::grouped(*among),
                words::grouped(*first)
            ),
        });
    }
    let next: Vec<String> = order
        .iter()
        .skip(1)
        .take(3)
        .map(|(policy, (_, among))| format!("{policy} in {}", words::grouped(*among)))
        .collect();
    if !next.is_empty() {
        let (few, it) = (next.len(), words::list(&next, 3));
        let is = if few == 1 { "The next one is" } else { "The next ones are" };
        sentences.push(format!("{is} {it}."));
    }
    sentences.push(match clear {
        clear if clear == all => {
            format!("In all {} {what} one policy is clearly the fastest.", words::grouped(all))
        }
        0 => format!("In none of the {what} is one policy clearly the fastest."),
        1 => format!("In one of the {what} one policy is clearly the fastest."),
        clear => {
            format!("In {} of the {what} one policy is clearly the fastest.", words::grouped(clear))
        }
    });
    let mut middle: Vec<(u64, &str)> = to_best
        .iter()
        .filter_map(|(policy, ratios)| Some((quipu_record::stats::median(ratios)?, *policy)))
        .collect();
    middle.sort_unstable();
    if let (Some(first), Some(last)) = (middle.first(), middle.last())
        && first.1 != last.1
    {
        let of = |it: &(u64, &str)| format!("{} ({})", it.1, words::ratio(it.0 as f64 / 1e6));
        sentences.push(format!(
            "Median ratio to the fastest policy over all {what}: lowest for {}, highest for {}.",
            of(first),
            of(last)
        ));
    }
    if let Some((ratio, scene, slow, best)) = largest {
        sentences.push(format!(
            "The largest difference is on {}: {slow} needs {} times as long as {best}.",
            context.name(scene),
            words::ratio(ratio)
        ));
    }
    let over: Vec<u64> = told
        .iter()
        .filter_map(|(scene, standing)| times::over_bound(&scene.cells[standing.best]))
        .map(|over| (over * 1e6) as u64)
        .collect();
    if let Some(five) = quipu_record::stats::five_numbers(&over) {
        let of = |value: u64| value as f64 / 1e6;
        sentences.push(format!(
            "The fastest policies are at {:.2} to {:.2} times the bound that no scheduler can beat \
             (median {:.2}).",
            of(five.least),
            of(five.most),
            of(five.median)
        ));
    }
    sentences
}

/// What scenes are called together: `networks`, `combinations of page and network`.
fn combination(context: &Context<'_>) -> String {
    let places = || context.scenes.iter().map(|scene| &scene.place);
    let several = |names: BTreeSet<&String>| names.len() > 1;
    let mut axes: Vec<&str> = Vec::new();
    if several(places().map(|place| &place.page).collect()) {
        axes.push("page");
    }
    if several(places().map(|place| &place.network).collect()) {
        axes.push("network");
    }
    for (position, field) in context.folders.results.fields.iter().enumerate() {
        if several(places().filter_map(|place| place.fields.get(position)).collect()) {
            axes.push(field);
        }
    }
    match axes.as_slice() {
        ["page"] => "pages".to_owned(),
        ["network"] => "networks".to_owned(),
        [field] => format!("values of {field}"),
        axes => format!("combinations of {}", words::list(axes, 8)),
    }
}

/// Which paths are faster alone than with the others: scene by scene, or of many scenes how often.
fn alone(context: &Context<'_>) -> Vec<String> {
    let found = context.scenes.iter().filter(|scene| !scene.faster_alone.is_empty());
    if context.scenes.len() <= FEW_SCENES {
        let of = |scene: &&&Scene| {
            let name = context.name(scene);
            let paths = scene.faster_alone.iter();
            paths.map(|path| format!("On {name}, {path}")).collect::<Vec<_>>()
        };
        return found.flat_map(|scene| of(&scene)).collect();
    }
    let mut paths: BTreeMap<&str, u64> = BTreeMap::new();
    for scene in found.clone() {
        for path in &scene.faster_alone {
            *paths.entry(path.path.as_str()).or_default() += 1;
        }
    }
    if paths.is_empty() {
        return Vec::new();
    }
    let mut order: Vec<(&str, u64)> = paths.into_iter().collect();
    order.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let paths: Vec<String> =
        order.iter().map(|(path, count)| format!("{path} in {}", words::grouped(*count))).collect();
    let (found, all) = (found.count() as u64, context.scenes.len() as u64);
    let among = match found == all {
        true => format!("all {}", words::grouped(all)),
        false => format!("{} of {}", words::grouped(found), words::grouped(all)),
    };
    vec![format!(
        "In {among} {} a path alone is faster than every policy over all paths: {}.",
        combination(context),
        words::list(&paths, MOST_NAMES)
    )]
}

/// What other readings of the recordings turn, scene by scene.
fn turned(context: &Context<'_>) -> Vec<String> {
    let found = context.scenes.iter().filter(|scene| !scene.turned.is_empty());
    let of = |scene: &&Scene| {
        // What says the opposite first.
        let mut turned: Vec<&Turned> = scene.turned.iter().collect();
        turned.sort_by_key(|turned| !turned.is_opposite());
        let more = match turned.len().saturating_sub(MOST_TURNED) {
            0 => String::new(),
            more => format!("; and {} more", words::grouped(more as u64)),
        };
        let told: Vec<String> = turned.iter().take(MOST_TURNED).map(|it| it.to_string()).collect();
        let name = context.name(scene);
        format!(
            "On {name}, some results depend on what the recording hides: {}{more}.",
            told.join("; ")
        )
    };
    found.map(of).collect()
}

/// How much of page times a network can change: scene by scene, or of many scenes in how many it is little.
fn network_shares(context: &Context<'_>) -> Vec<String> {
    let median = quipu_record::stats::median;
    let of = |scene: &Scene| {
        let of_cell = |cell: &Cell| {
            let above = median(&cell.values(Metric::PageAboveFloor))?;
            Some((median(&cell.values(Metric::PageTime))?, above))
        };
        let (page, above) = scene.cells.iter().filter_map(of_cell).min()?;
        Some((NetworkShare::of(above, page), page.saturating_sub(above)))
    };
    let scenes = context.scenes.iter();
    let found: Vec<(&Scene, NetworkShare, u64)> =
        scenes.filter_map(|scene| of(scene).map(|(share, floor)| (*scene, share, floor))).collect();
    if context.scenes.len() <= FEW_SCENES {
        let sentence = |(scene, share, floor): &(&Scene, NetworkShare, u64)| {
            let (name, floor) = (context.name(scene), words::time(*floor));
            let share = share.consequence();
            format!(
                "On {name}, the page would take {floor} if the network were infinitely fast (its floor); {share}."
            )
        };
        return found.iter().map(sentence).collect();
    }
    let little = found.iter().filter(|(_, share, _)| share.is_little()).count() as u64;
    match little {
        0 => Vec::new(),
        little => vec![format!(
            "In {} of {} {} the network accounts for less than a third of the fastest page time, so compare the \
             times above the floor there rather than whole page times.",
            words::grouped(little),
            words::grouped(context.scenes.len() as u64),
            combination(context)
        )],
    }
}

/// What a single policy needs, if there is nothing to compare.
fn only_one(context: &Context<'_>) -> Vec<String> {
    let alone = context.scenes.iter().zip(&context.standings).filter(|(_, it)| it.is_none());
    let of = |(scene, _): (&&Scene, &Option<Standing>)| {
        let cell = scene.cells.first()?;
        let median = quipu_record::stats::median(&cell.values(Metric::PageTime))?;
        let over = times::over_bound(cell);
        let over = over.map(|over| format!(", {over:.2} times the bound")).unwrap_or_default();
        let of = match cell.loads.len() as u64 {
            1 => "one load".to_owned(),
            loads => format!("median of {} loads", words::grouped(loads)),
        };
        Some(format!(
            "On {}, the page is complete after {} with {} ({of}){over}.",
            context.name(scene),
            words::time(median),
            cell.policy,
        ))
    };
    alone.take(FEW_SCENES).filter_map(of).collect()
}

/// What flows get, in the first scene that has some.
fn flows(context: &Context<'_>) -> Vec<String> {
    let scenes = context.folders.results.scenes.iter();
    let Some(scene) =
        scenes.clone().find(|scene| scene.cells.iter().any(|it| !it.flows.is_empty()))
    else {
        return Vec::new();
    };
    let mut sentences = Vec::new();
    for cell in scene.cells.iter().filter(|cell| !cell.flows.is_empty()).take(MOST_NAMES) {
        let each: Vec<String> = cell
            .flows
            .iter()
            .filter_map(|flow| {
                let rate = quipu_record::stats::median(&flow.goodput)?;
                Some(format!("{:.2} Mb/s for {}", rate as f64 / 1e6, flow.name))
            })
            .collect();
        if !each.is_empty() {
            sentences.push(format!(
                "On {} with {}, the median goodput is {}.",
                context.name(scene),
                cell.policy,
                words::list(&each, MOST_NAMES)
            ));
        }
    }
    sentences
}

/// How many runs there are, and how many failed.
fn runs(context: &Context<'_>) -> Vec<String> {
    let folders = context.folders;
    let (finished, planned) = folders.runs;
    let failed = folders.failures.len() as u64;
    if planned == 0 {
        return Vec::new();
    }
    vec![match (failed, planned == finished) {
        (0, true) if planned == 1 => "The run finished.".to_owned(),
        (0, true) => format!("All {} runs finished.", words::grouped(planned)),
        (0, false) => {
            format!("{} of {} runs are done.", words::grouped(finished), words::grouped(planned))
        }
        (1, _) => format!("One of {} runs failed.", words::grouped(planned)),
        (failed, _) => {
            format!("{} of {} runs failed.", words::grouped(failed), words::grouped(planned))
        }
    }]
}
