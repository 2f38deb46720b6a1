//! What a paper leaves open, and what of it cannot be tested.

use super::super::settings::Settings;
use super::unlike;
use crate::form::table;
use crate::form::text::NAME;

/// Combinations of settings that one id may have: 8 settings of two values. Our choice.
pub(super) const MOST_COMBINATIONS: usize = 256;

table! {
    /// A setting that the paper leaves open, with plausible values and their source. Every claim is
    /// judged in each combination of the values of all settings, beside the scenario itself.
    pub struct OpenSetting as "Open setting" {
        /// Its name in results.
        pub name: String [text NAME],
        /// Why these values.
        pub about: String => "none",
        /// Its values. The first is that of the scenario itself, and sets nothing.
        pub values: Vec<OpenValue> [2..],
    }
}

table! {
    /// A value of an open setting.
    pub struct OpenValue as "Value of an open setting" {
        /// Its name in results.
        pub name: String [text NAME],
        /// Fields that change.
        pub set: Settings => "none",
    }
}

table! {
    /// A claim that cannot be tested here.
    pub struct Untestable as "Untestable claim" {
        /// What the paper says.
        pub claim: String [text NAME],
        /// Its numbers.
        pub reported: String => "none",
        /// Why it cannot be tested.
        pub because: String [text NAME],
    }
}

/// Combinations of values of `settings`: for each setting the position of its value. The first is the scenario
/// itself, and the last setting moves first. None if there are no settings.
pub(super) fn combinations(settings: &[OpenSetting]) -> Vec<Vec<usize>> {
    if settings.is_empty() {
        return Vec::new();
    }
    let mut all = vec![Vec::new()];
    for setting in settings {
        let longer = all.iter().flat_map(|chosen: &Vec<usize>| {
            (0..setting.values.len()).map(|value| {
                let mut chosen = chosen.clone();
                chosen.push(value);
                chosen
            })
        });
        all = longer.collect();
    }
    all
}

/// Checks what no setting can check alone.
pub(super) fn check(settings: &[OpenSetting]) -> Result<(), String> {
    unlike("setting", settings.iter().map(|setting| setting.name.as_str()))?;
    for setting in settings {
        let OpenSetting { name, values, .. } = setting;
        unlike(&format!("value of setting {name}:"), values.iter().map(|it| it.name.as_str()))?;
        if values.first().is_some_and(|first| !first.set.changes().is_empty()) {
            let message =
                format!("setting {name}: the first value is the scenario's own, without `set`");
            return Err(message);
        }
        if let Some(empty) = values.iter().skip(1).find(|value| value.set.changes().is_empty()) {
            return Err(format!("setting {name}: value `{}` needs `set`", empty.name));
        }
    }
    let counts = settings.iter().map(|setting| setting.values.len());
    match counts.clone().try_fold(1_usize, usize::checked_mul) {
        Some(..=MOST_COMBINATIONS) => Ok(()),
        _ => {
            let counts: Vec<String> = counts.map(|count| count.to_string()).collect();
            let product = counts.join(" × ");
            let most = MOST_COMBINATIONS;
            Err(format!("settings have {product} combinations; expected at most {most}"))
        }
    }
}
