//! What a program is built from, for build scripts.
//!
//! Results are reused as long as the program that made them would make them again. So a program carries
//! hashes of the sources that decide results:
//!
//! - [`Sources`]: all crates of ours that can touch a result, with the versions of what they use. The policies
//!   are told apart: [`Policies`] has a hash for each, of all the code that it can reach, and one for the rest.
//! - [`commit`]: the commit, and whether the tree differs from it. No result is keyed by it.
//! - [`profile`]: how the program was optimised.
//!
//! [`emit`] is all that a build script needs. Start with [`Sources::read`].
//!
//! Not here: what a key is made of, and the hash of an executable, which a program with policies of its own
//! takes of itself.

mod commit;
mod graph;
mod hash;
mod items;
mod lock;
mod manifest;
mod policies;
mod profile;
mod sources;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

pub use commit::commit;
pub use policies::{Policies, PolicyHash};
pub use profile::profile;
pub use sources::Sources;

/// The file that [`emit`] writes into `OUT_DIR`.
pub const FILE: &str = "built_from.rs";

/// Writes what the crate of this build script is built from to `OUT_DIR/built_from.rs`, as an expression
/// `BuiltFrom { commit, profile, sources, policies }` for `include!`, and tells Cargo what it depends on.
/// `top` are the crates, beside the script's own, that results come from; what they use is found.
///
/// # Errors
/// If a file cannot be read or written.
pub fn emit(top: &[&str]) -> io::Result<()> {
    let variable = |name: &str| {
        let missing = || io::Error::other(format!("{name} is not set; expected a build script"));
        env::var_os(name).map(PathBuf::from).ok_or_else(missing)
    };
    let (own, out) = (variable("CARGO_MANIFEST_DIR")?, variable("OUT_DIR")?);
    let crates = own.parent().unwrap_or(&own);
    let root = crates.parent().unwrap_or(crates);
    println!("cargo::rerun-if-changed=build.rs");
    let own_name = own.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let program = Sources::crates(root, &[&own_name])?;
    let mut watched: Vec<PathBuf> =
        vec![root.join("Cargo.toml"), root.join("Cargo.lock"), root.join("experiments")];
    for name in &program {
        watched.extend(Sources::parts(root, name)?);
    }
    watched.retain(|path| path.exists());
    for path in &watched {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let workspace = workspace_of(&out);
    if let Some(workspace) = &workspace {
        println!("cargo::rerun-if-changed={}", workspace.join("Cargo.lock").display());
        println!("cargo::rerun-if-changed={}", workspace.join("Cargo.toml").display());
    }
    println!("cargo::rerun-if-env-changed=QUIPU_COMMIT");
    let given = env::var("QUIPU_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.unwrap_or_else(|| {
        let mut read = |path: &Path| println!("cargo::rerun-if-changed={}", path.display());
        commit(root, &watched, &mut read)
    });
    let profile = profile(&out, workspace.as_deref());
    let sources = match &workspace {
        Some(workspace) => Some(Sources::read(root, workspace, top)?),
        None => None,
    };
    fs::write(out.join(FILE), expression(&commit, &profile, sources.as_ref()))
}

/// The folder above `out` that has a lock file: the workspace in which the program is built, unless its files
/// go elsewhere.
fn workspace_of(out: &Path) -> Option<PathBuf> {
    out.ancestors().find(|folder| folder.join("Cargo.lock").is_file()).map(Path::to_owned)
}

fn expression(commit: &str, profile: &str, sources: Option<&Sources>) -> String {
    let mut text = format!("BuiltFrom {{\n    commit: {commit:?},\n    profile: {profile:?},\n");
    // Text takes whatever is written to it.
    let _ = match sources {
        Some(sources) => writeln!(text, "    sources: Some(0x{:032x}),", sources.rest),
        None => writeln!(text, "    sources: None,"),
    };
    text.push_str("    policies: &[\n");
    for PolicyHash { layer, name, hash } in sources.iter().flat_map(|it| &it.policies) {
        let _ = writeln!(text, "        ({layer:?}, {name:?}, 0x{hash:032x}),");
    }
    text.push_str("    ],\n}\n");
    text
}
