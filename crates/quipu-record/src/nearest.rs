//! The name that somebody probably meant.

/// The one of `names` that is most like `given`, if one is like it at all.
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for name in names {
        let likeness = strsim::jaro_winkler(&given, &name.to_lowercase());
        if likeness > best.map_or(LEAST_LIKENESS, |(likeness, _)| likeness) {
            best = Some((likeness, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Below this likeness a suggestion confuses more than it helps. Our choice.
const LEAST_LIKENESS: f64 = 0.7;

/// `; did you mean NAME?`, or nothing if no name is near.
pub fn suggestion<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, names).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_and_nonsense_finds_none() {
        assert_eq!(nearest("chrom", ["chrome", "firefox"]), Some("chrome"));
        assert_eq!(nearest("drww", ["rr", "dwrr", "fifo"]), Some("dwrr"));
        assert_eq!(nearest("xyzzy", ["rr", "dwrr", "fifo"]), None);
        assert_eq!(suggestion("minrt", ["minrtt"]), "; did you mean `minrtt`?");
    }
}
