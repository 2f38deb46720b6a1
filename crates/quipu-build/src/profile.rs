//! How a program was optimised.

use std::path::Path;
use std::{env, fs};

use crate::manifest::value;

/// The profile of the build whose script has `out` as its folder, such as `release, opt-level 3, thin LTO`.
/// `workspace` is the folder of its manifest; without it nothing is known of LTO.
pub fn profile(out: &Path, workspace: Option<&Path>) -> String {
    // target/PROFILE/build/CRATE-HASH/out
    let folder = out.ancestors().nth(3).and_then(Path::file_name).unwrap_or_default();
    let name = match folder.to_string_lossy() {
        debug if debug == "debug" => "dev".to_owned(),
        other => other.into_owned(),
    };
    let level = env::var("OPT_LEVEL").unwrap_or_else(|_| "unknown".to_owned());
    let variable = format!("CARGO_PROFILE_{}_LTO", name.to_uppercase().replace('-', "_"));
    println!("cargo::rerun-if-env-changed={variable}");
    let lto = env::var(variable).ok().or_else(|| {
        let manifest = fs::read_to_string(workspace?.join("Cargo.toml")).ok()?;
        Some(lto_of(&manifest, &name))
    });
    format!("{name}, opt-level {level}, {}", words(lto.as_deref()))
}

/// What the manifest says of LTO in that profile, or in one that it inherits from.
fn lto_of(manifest: &str, name: &str) -> String {
    let mut name = name.to_owned();
    // Cargo refuses circles; whatever is there, this ends.
    for _ in 0..8 {
        let table = format!("profile.{name}");
        if let Some(lto) = value(manifest, &table, "lto") {
            return lto.to_owned();
        }
        match value(manifest, &table, "inherits") {
            Some(parent) => name = parent.to_owned(),
            None => break,
        }
    }
    "false".to_owned()
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
                        [profile.near]\ninherits = \"release\"\n[profile.circle]\ninherits = \"circle\"\n";
        for (name, lto) in [
            ("release", "thin"),
            ("edit", "off"),
            ("near", "thin"),
            ("dev", "false"),
            ("circle", "false"),
        ] {
            assert_eq!(lto_of(manifest, name), lto, "{name}");
        }
        assert_eq!(words(Some("true")), "fat LTO");
        assert_eq!(words(None), "LTO unknown");
    }
}
