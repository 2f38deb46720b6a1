//! How a program was optimised.

use std::path::Path;
use std::{env, fs};

use crate::manifest::value;

/// The profile of the build whose script has `out` as its folder, such as `dist, opt-level 3, thin LTO`.
/// `workspace` is the folder of its manifest; without it nothing is known of LTO. The level is that of the profile: a
/// manifest may give another one to single packages, such as the one of the script.
pub fn profile(out: &Path, workspace: Option<&Path>) -> String {
    // target/PROFILE/build/CRATE-HASH/out
    let folder = out.ancestors().nth(3).and_then(Path::file_name).unwrap_or_default();
    let name = match folder.to_string_lossy() {
        debug if debug == "debug" => "dev".to_owned(),
        other => other.into_owned(),
    };
    let manifest = workspace.and_then(|folder| fs::read_to_string(folder.join("Cargo.toml")).ok());
    let set = |key: &str| {
        let variable = format!("CARGO_PROFILE_{name}_{key}").to_uppercase().replace('-', "_");
        println!("cargo::rerun-if-env-changed={variable}");
        let given = env::var(variable).ok();
        given.or_else(|| manifest.as_deref().map(|manifest| setting(manifest, &name, key)))
    };
    let own_level = || env::var("OPT_LEVEL").unwrap_or_else(|_| "unknown".to_owned());
    let level = set("opt-level").unwrap_or_else(own_level);
    format!("{name}, opt-level {level}, {}", words(set("lto").as_deref()))
}

/// What the manifest says of `key`, `lto` or `opt-level`, in that profile, in one that it inherits from, or by default:
/// <https://doc.rust-lang.org/cargo/reference/profiles.html#default-profiles>.
fn setting(manifest: &str, name: &str, key: &str) -> String {
    let mut name = name.to_owned();
    // Cargo refuses circles; whatever is there, this ends.
    for _ in 0..8 {
        let table = format!("profile.{name}");
        if let Some(found) = value(manifest, &table, key) {
            return found.to_owned();
        }
        match value(manifest, &table, "inherits") {
            Some(parent) => name = parent.to_owned(),
            None => break,
        }
    }
    match (key, name.as_str()) {
        ("lto", _) => "false",
        (_, "dev" | "test") => "0",
        _ => "3",
    }
    .to_owned()
}

/// <https://doc.rust-lang.org/cargo/reference/profiles.html#lto>
fn words(lto: Option<&str>) -> &'static str {
    match lto {
        Some("true" | "fat") => "fat LTO",
        Some("thin") => "thin LTO",
        Some("off" | "false" | "n" | "no") => "no LTO",
        _ => "LTO unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_inherits_what_it_does_not_say() {
        let manifest = "[profile.release]\nlto = \"thin\"\n[profile.edit]\ninherits = \"release\"\nlto = \"off\"\n\
                        [profile.near]\ninherits = \"edit\"\nopt-level = 2\n[profile.circle]\ninherits = \"circle\"\n\
                        [profile.release.package.quipu-cli]\nopt-level = 1\n";
        for (name, level, lto) in [
            ("release", "3", "thin"),
            ("edit", "3", "off"),
            ("near", "2", "off"),
            ("dev", "0", "false"),
            ("circle", "3", "false"),
        ] {
            assert_eq!(setting(manifest, name, "lto"), lto, "{name}");
            assert_eq!(setting(manifest, name, "opt-level"), level, "{name}");
        }
        assert_eq!(words(Some("true")), "fat LTO");
        assert_eq!(words(None), "LTO unknown");
    }
}
