//! Arrows between the modules of a crate, and their circles.

use std::collections::{BTreeMap, BTreeSet};

use crate::reader::File;

/// A module, by names from the crate's root on.
pub(crate) type Level = Vec<String>;

/// For each folder, which of its modules use which.
#[derive(Debug, Default)]
pub(crate) struct Arrows(BTreeMap<Level, BTreeMap<String, BTreeSet<String>>>);

impl Arrows {
    /// The arrows between `files`.
    pub(crate) fn of(files: &BTreeMap<Level, File>) -> Arrows {
        let mut arrows = Arrows::default();
        for (module, file) in files {
            for path in &file.uses {
                let target = resolve(files, module, path, 0);
                let shared = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                // What a folder and its files know of each other is no arrow.
                if let (Some(from), Some(to)) = (module.get(shared), target.get(shared)) {
                    let level = arrows.0.entry(module[..shared].to_vec()).or_default();
                    level.entry(from.clone()).or_default().insert(to.clone());
                }
            }
        }
        arrows
    }
}

/// The module that has what `path` names in `module`, followed through names that are passed on.
fn resolve(
    files: &BTreeMap<Level, File>,
    module: &[String],
    path: &[String],
    depth: usize,
) -> Level {
    let mut at = module.to_vec();
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match first.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            _ => break,
        }
        rest = after;
    }
    while let Some((first, after)) = rest.split_first() {
        let inner = [&at[..], std::slice::from_ref(first)].concat();
        let passed_on = files.get(&at).and_then(|file| file.passed_on.get(first));
        match passed_on {
            _ if files.contains_key(&inner) => at = inner,
            // Names may be passed on through several modules, not for ever.
            Some(path) if depth < 16 && path.first() != Some(first) => {
                return resolve(files, &at, &[&path[..], after].concat(), depth + 1);
            }
            _ => break,
        }
        rest = after;
    }
    at
}

/// The largest sets of modules in which each reaches each other, with their folder.
pub(crate) fn circles(arrows: &Arrows) -> Vec<(Level, BTreeSet<String>)> {
    let mut all = Vec::new();
    for (level, uses) in &arrows.0 {
        let reached: BTreeMap<&String, BTreeSet<String>> =
            uses.keys().map(|module| (module, reached(uses, module))).collect();
        let mut seen = BTreeSet::new();
        for (module, of) in &reached {
            let returns =
                |other: &&String| reached.get(other).is_some_and(|it| it.contains(*module));
            let circle: BTreeSet<String> = of.iter().filter(returns).cloned().collect();
            if circle.len() > 1 && seen.insert(circle.clone()) {
                all.push((level.clone(), circle));
            }
        }
    }
    all
}

fn reached(uses: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&String> = uses.get(from).into_iter().flatten().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next.clone()) {
            open.extend(uses.get(next).into_iter().flatten());
        }
    }
    reached
}
