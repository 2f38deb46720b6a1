//! Names that were not found, with the nearest that would have been.

use thiserror::Error;

/// Nobody has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown {what} `{name}`; {}known: {}", suggestion(.nearest.as_deref()), .known.join(", "))]
pub struct UnknownName {
    /// What kind of thing was asked for, such as `page`.
    pub what: &'static str,
    /// The name asked for.
    pub name: String,
    /// The most similar name, if one is similar.
    pub nearest: Option<String>,
    /// All names.
    pub known: Vec<String>,
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("did you mean `{nearest}`? ")).unwrap_or_default()
}

impl UnknownName {
    pub(crate) fn new<'a>(
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> UnknownName {
        let known: Vec<String> = known.map(str::to_owned).collect();
        // At most a third of the letters may differ: our choice.
        let limit = name.chars().count().div_ceil(3);
        let nearest = known
            .iter()
            .map(|other| (strsim::damerau_levenshtein(name, other), other))
            .min()
            .filter(|(distance, _)| *distance <= limit)
            .map(|(_, other)| other.clone());
        // Names come from users: what is printed has a bound.
        let name = name.chars().take(80).collect();
        UnknownName { what, name, nearest, known }
    }
}

#[cfg(test)]
mod tests {
    use super::UnknownName;

    #[test]
    fn a_similar_name_is_suggested_and_a_strange_one_is_not() {
        let known = ["chrome", "firefox"];
        assert_eq!(
            UnknownName::new("browser", "chorme", known.into_iter()).to_string(),
            "unknown browser `chorme`; did you mean `chrome`? known: chrome, firefox"
        );
        assert_eq!(
            UnknownName::new("browser", "opera", known.into_iter()).to_string(),
            "unknown browser `opera`; known: chrome, firefox"
        );
    }
}
