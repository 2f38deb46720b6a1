//! Lists the experiments that the library brings.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    list_experiments();
}

/// Writes a list of all files in `experiments/`, each with its text, as an expression of the library's.
fn list_experiments() {
    let Some(crate_dir) = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from) else { return };
    let Some(target) = std::env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let root = crate_dir.join("../../experiments");
    let mut files = Vec::new();
    collect(&root, "", &mut files);
    files.sort();
    let mut list = "&[\n".to_owned();
    for (name, path) in files {
        // Text takes whatever is written to it.
        let _ = writeln!(list, "    ({name:?}, include_str!({:?})),", path.display().to_string());
    }
    list.push_str("]\n");
    if let Err(error) = fs::write(target.join("experiments.rs"), list) {
        println!("cargo::error=cannot write the list of experiments: {error}");
    }
}

/// Adds the scenarios and tables in `folder` and below, named from the root on with slashes.
fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let path = entry.path();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if path.is_dir() {
            collect(&path, &format!("{name}/"), files);
        } else if path.extension().is_some_and(|ending| ending == "toml" || ending == "csv") {
            files.push((name, path));
        }
    }
}
