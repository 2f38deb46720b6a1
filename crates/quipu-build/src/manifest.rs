//! The few things that are read from manifests: names of dependencies, and values of a profile.

/// Which packages `[dependencies]` and its like in the manifest `text` name; tests and build scripts do not
/// count.
pub(crate) fn dependencies(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (table, line) in lines(text) {
        let name = match table.strip_suffix("dependencies") {
            // Those of a target too.
            Some(rest) if rest.is_empty() || rest.ends_with("'.") || rest.ends_with(").") => {
                line.split(['.', '=', ' ']).next()
            }
            _ => continue,
        };
        names.extend(name.map(str::to_owned));
    }
    names
}

/// The value of `key` in the table `wanted` of the manifest `text`, without quotes.
pub(crate) fn value<'t>(text: &'t str, wanted: &str, key: &str) -> Option<&'t str> {
    lines(text).filter(|(table, _)| *table == wanted).find_map(|(_, line)| {
        let (found, value) = line.split_once('=')?;
        (found.trim() == key)
            .then(|| value.split('#').next().unwrap_or(value).trim().trim_matches('"'))
    })
}

/// The lines of the table `wanted` of the manifest `text`.
pub(crate) fn table(text: &str, wanted: &str) -> String {
    let own = lines(text).filter(|(table, _)| *table == wanted).map(|(_, line)| line);
    own.collect::<Vec<_>>().join("\n")
}

/// Each line that is no comment, with the name of its table.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut table = "";
    text.lines().map(str::trim).filter_map(move |line| {
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_end_matches(']');
            return None;
        }
        (!line.is_empty() && !line.starts_with('#')).then_some((table, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"a\"\n\n[dependencies]\nquipu-base.workspace = true\n# none\nserde = \"1\"\n\
        \n[target.'cfg(unix)'.dependencies]\nlibc = { version = \"1\" }\n\n[dev-dependencies]\ninsta = \"1\"\n\
        [profile.edit]\ninherits = \"release\" # as is\nlto=\"off\"\n";

    #[test]
    fn only_what_the_crate_itself_uses_counts() {
        assert_eq!(dependencies(MANIFEST), ["quipu-base", "serde", "libc"]);
    }

    #[test]
    fn values_are_found_by_table_and_key() {
        assert_eq!(value(MANIFEST, "profile.edit", "inherits"), Some("release"));
        assert_eq!(value(MANIFEST, "profile.edit", "lto"), Some("off"));
        assert_eq!(value(MANIFEST, "profile.release", "lto"), None);
        assert_eq!(table(MANIFEST, "package"), "name = \"a\"");
    }
}
