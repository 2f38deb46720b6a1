//! Which module of a crate may use which: there are no circles but those listed in `exceptions.rs`, each
//! with its reason.
//!
//! Modules are compared with their neighbours: those at the top of a crate, and the files of one folder. What
//! a folder's own file and the files in it know of each other is their affair, and so are tests.
#![expect(clippy::unwrap_used, reason = "tests")]

mod exceptions;
mod graph;
mod reader;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use exceptions::EXCEPTIONS;
use graph::{Arrows, Level, circles};

#[test]
fn modules_make_no_circles_but_those_listed() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for member in fs::read_dir(crates).unwrap() {
        let member = member.unwrap();
        let name = member.file_name().to_string_lossy().trim_start_matches("quipu-").to_owned();
        let source = member.path().join("src");
        if source.join("lib.rs").exists() {
            let all = circles(&Arrows::of(&reader::read(&source)));
            found.extend(all.into_iter().map(|(level, circle)| (name.clone(), level, circle)));
        }
    }
    let is_listed = |(name, level, circle): &(String, Level, BTreeSet<String>)| {
        EXCEPTIONS.iter().any(|(of, folder, modules, _)| {
            of == name
                && *folder == level.join("::")
                && circle.iter().all(|module| modules.contains(&module.as_str()))
        })
    };
    let surprises: Vec<_> = found.iter().filter(|circle| !is_listed(circle)).collect();
    assert!(surprises.is_empty(), "modules in circles that are not listed: {surprises:#?}");
    for (name, folder, modules, _) in EXCEPTIONS {
        let is_there = found.iter().any(|(of, level, circle)| {
            of == name
                && level.join("::") == *folder
                && circle.iter().all(|module| modules.contains(&module.as_str()))
        });
        assert!(
            is_there,
            "the circle of {name} {folder} {modules:?} is gone: take it off the list"
        );
    }
}

#[test]
fn every_exception_has_a_reason_and_modules() {
    for (name, folder, modules, reason) in EXCEPTIONS {
        assert!(reason.ends_with('.') && modules.len() > 1, "{name} {folder} {modules:?}");
    }
}

/// The circles of a crate of these files.
fn circles_of(files: &[(&str, &str)]) -> Vec<(Level, BTreeSet<String>)> {
    let level = |name: &str| -> Level {
        name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let files: BTreeMap<Level, reader::File> =
        files.iter().map(|(name, text)| (level(name), reader::File::of(text))).collect();
    circles(&Arrows::of(&files))
}

#[test]
fn a_circle_is_found_through_names_that_the_root_passes_on() {
    let root = "mod a; mod b; mod c; pub use a::A; pub use b::{B, c as d};";
    let found = circles_of(&[
        ("", root),
        ("a", "use crate::B; pub struct A;"),
        ("b", "use super::{A, c::C}; pub struct B;"),
        ("c", "pub struct C; //! use crate::A;"),
    ]);
    assert_eq!(found, [(vec![], ["a", "b"].map(str::to_owned).into())]);
}

#[test]
fn files_of_a_folder_are_compared_and_their_folder_is_not() {
    let found = circles_of(&[
        ("", "mod a;"),
        ("a", "mod x; mod y; pub use x::X; pub struct Own;"),
        ("a::x", "use super::{Own, y::Y}; pub struct X;"),
        ("a::y", "fn f() -> crate::a::X { macro_call!(super::x::X) } pub struct Y;"),
    ]);
    assert_eq!(found, [(vec!["a".to_owned()], ["x", "y"].map(str::to_owned).into())]);
}

#[test]
fn tests_and_words_are_no_arrows() {
    let found = circles_of(&[
        ("", "mod a; mod b;"),
        ("a", "use crate::b::B; pub struct A;"),
        (
            "b",
            "/// See [`crate::a::A`].\npub struct B; #[cfg(test)] mod tests { use crate::a::A; }",
        ),
    ]);
    assert_eq!(found, []);
}
