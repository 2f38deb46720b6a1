//! Versions of dependencies, from a lock file.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
struct Package<'t> {
    name: &'t str,
    version: &'t str,
    /// From where, and with which checksum; empty for what lies beside the workspace.
    origin: String,
    /// Names, with a version where the name alone does not tell.
    uses: Vec<&'t str>,
}

/// A line for each package of the lock file `text` that `names` need, with version and checksum, in order of
/// name. Those that `skip` names are left out, with what they need.
pub(crate) fn versions(
    text: &str,
    names: &BTreeSet<String>,
    skip: &BTreeSet<String>,
) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<Package<'_>>> = BTreeMap::new();
    for package in packages(text) {
        by_name.entry(package.name).or_default().push(package);
    }
    let mut lines = BTreeSet::new();
    let mut ahead: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    while let Some(wanted) = ahead.pop() {
        let (name, version) = match wanted.split_once(' ') {
            Some((name, rest)) => (name, rest.split(' ').next()),
            None => (wanted, None),
        };
        if skip.contains(name) || !seen.insert(wanted) {
            continue;
        }
        // Where only the name is known, all of that name count.
        let found = by_name.get(name).into_iter().flatten();
        for package in found.filter(|it| version.is_none_or(|version| it.version == version)) {
            lines.insert(format!("{name} {} {}", package.version, package.origin));
            ahead.extend(&package.uses);
        }
    }
    lines.into_iter().collect()
}

fn packages(text: &str) -> Vec<Package<'_>> {
    let mut all: Vec<Package<'_>> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line == "[[package]]" {
            all.push(Package::default());
            continue;
        }
        let Some(package) = all.last_mut() else { continue };
        match line.split_once(" = ") {
            Some(("name", name)) => package.name = name.trim_matches('"'),
            Some(("version", version)) => package.version = version.trim_matches('"'),
            Some(("source" | "checksum", origin)) => package.origin += origin,
            // The list of what it uses.
            None if line.starts_with('"') => {
                package.uses.push(line.trim_end_matches(',').trim_matches('"'));
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\ndependencies = [\n \"a\",\n]\n\
        \n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry\"\nchecksum = \"aa\"\ndependencies = [\n \
        \"b 2.0.0\",\n]\n\n[[package]]\nname = \"b\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"b\"\nversion = \
        \"2.0.0\"\n\n[[package]]\nname = \"other\"\nversion = \"3.0.0\"\n";

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn what_is_needed_counts_with_its_version_and_nothing_else() {
        let lines = versions(LOCK, &set(&["a", "ours"]), &set(&["ours"]));
        assert_eq!(lines, ["a 1.0.0 \"registry\"\"aa\"", "b 2.0.0 "]);
    }
}
