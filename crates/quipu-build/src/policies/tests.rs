use std::fs;
use std::path::Path;

use super::*;

/// A crate of policies in small.
const FILES: [(&str, &str); 5] = [
    (
        "lib.rs",
        "//! A crate.\npub mod registry;\nmod path;\nmod stream;\npub trait PathPolicy { fn select(&self) -> u64; }\n\
         #[cfg(test)]\nmod testing;\n",
    ),
    (
        "registry.rs",
        "pub struct Entry { pub name: &'static str, pub layer: Layer, pub build: fn() -> u64 }\n\
         pub enum Layer { Path, Stream }\n\
         pub struct Registry;\nimpl Registry { pub fn builtin() -> Vec<Entry> { \
         let mut all = crate::path::entries(); all.extend(crate::stream::entries()); all } }\n",
    ),
    (
        "path/mod.rs",
        "use crate::registry::{Entry, Layer};\nuse crate::PathPolicy;\nmod near;\nmod far;\nuse near::Near;\n\
         use far::Far as Distant;\nfn shared() -> u64 { 1 }\n\
         pub(crate) fn entries() -> Vec<Entry> { vec![near(), far(\"far\", || Distant.select())] }\n\
         fn near() -> Entry { Entry { name: \"near\", layer: Layer::Path, build: || Near.select() + shared() } }\n\
         fn far(name: &'static str, build: fn() -> u64) -> Entry { Entry { name, layer: Layer::Path, build } }\n",
    ),
    (
        "path/near.rs",
        "use super::PathPolicy;\npub(super) struct Near;\nimpl PathPolicy for Near { fn select(&self) -> u64 { 1 } }\n",
    ),
    (
        "path/far.rs",
        "use super::PathPolicy;\npub(super) struct Far;\nimpl PathPolicy for Far { fn select(&self) -> u64 { 2 } }\n",
    ),
];
const STREAM: &str = "use crate::registry::{Entry, Layer};\nfn turns() -> u64 { 3 }\n\
     fn stream(name: &'static str, build: fn() -> u64) -> Entry { Entry { name, layer: Layer::Stream, build } }\n\
     pub(crate) fn entries() -> Vec<Entry> { vec![stream(\"rr\", || turns()), stream(\"fifo\", || 4)] }\n";

/// The hashes with `from` replaced by `to` in all files.
fn hashes(from: &str, to: &str) -> Policies {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("path")).unwrap();
    let mut replaced = from.is_empty();
    for (name, text) in FILES.into_iter().chain([("stream.rs", STREAM)]) {
        replaced |= text.contains(from);
        fs::write(folder.path().join(name), text.replace(from, to)).unwrap();
    }
    assert!(replaced, "{from}");
    let words = ["Registry", "Entry", "builtin"].map(str::to_owned).into();
    Policies::of(&items::read(folder.path()).unwrap(), &words)
}

/// What another text than `from` makes another.
fn touched(from: &str, to: &str) -> (bool, Vec<String>) {
    let (before, after) = (hashes("", ""), hashes(from, to));
    assert_eq!(before.all.len(), after.all.len());
    let pairs = before.all.iter().zip(&after.all);
    let changed = pairs.filter(|(one, other)| one != other).map(|(one, _)| one.name.clone());
    (before.rest != after.rest, changed.collect())
}

fn touches(from: &str, to: &str, rest: bool, names: &[&str]) {
    let (of_rest, of_names) = touched(from, to);
    assert_eq!(
        (of_rest, of_names.iter().map(String::as_str).collect()),
        (rest, names.to_vec()),
        "{from}"
    );
}

#[test]
fn every_entry_is_found_with_its_layer() {
    let all = hashes("", "").all;
    let names: Vec<(&str, &str)> =
        all.iter().map(|it| (it.layer.as_str(), it.name.as_str())).collect();
    assert_eq!(names, [("path", "far"), ("path", "near"), ("stream", "fifo"), ("stream", "rr")]);
}

#[test]
fn an_edit_touches_whoever_can_reach_it() {
    // An implementation, also of a type with another name; a function; a closure beside others.
    touches("u64 { 1 } }\n", "u64 { 9 } }\n", false, &["near"]);
    touches("u64 { 2 } }\n", "u64 { 9 } }\n", false, &["far"]);
    touches("shared() -> u64 { 1 }", "shared() -> u64 { 9 }", false, &["near"]);
    touches("turns() -> u64 { 3 }", "turns() -> u64 { 9 }", false, &["rr"]);
    touches("|| 4", "|| 9", false, &["fifo"]);
    // What helps to make several.
    touches(
        "Entry { Entry { name, layer: Layer::Stream, build }",
        "Entry { let build = build; Entry { name, \
            layer: Layer::Stream, build }",
        false,
        &["fifo", "rr"],
    );
    // What every run has.
    touches(
        "fn select(&self) -> u64; }",
        "fn select(&self) -> u64; fn more(&self) {} }",
        false,
        &["far", "near"],
    );
    touches("pub struct Registry;", "pub struct Registry {}", true, &[]);
}

#[test]
fn comments_and_tests_touch_nothing() {
    touches("pub(super) struct Near;", "/// Near.\npub(super) struct Near; // here", false, &[]);
    touches("struct Far;", "struct Far;\n#[cfg(test)]\nmod tests { fn select() {} }", false, &[]);
}

/// The policies of this repository: each has a hash, and few share their fate.
#[test]
fn an_edited_policy_touches_few() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut items = items::read(&root.join("crates/quipu-policy/src")).unwrap();
    let words = ["Registry", "PolicySpec", "View", "Joint", "AckPolicy", "StreamPolicy"];
    let words = words.map(str::to_owned).into();
    let before = Policies::of(&items, &words);
    for layer in ["stream", "path", "joint", "pack", "resend", "reinject", "ack", "congestion"] {
        assert!(before.all.iter().any(|it| it.layer == layer), "no policy of layer {layer}");
    }
    for item in items.iter_mut().filter(|item| item.module == ["path", "peekaboo", "model"]) {
        item.tokens.extend([TokenTree::from(proc_macro2::Ident::new(
            "x",
            proc_macro2::Span::call_site(),
        ))]);
    }
    let after = Policies::of(&items, &words);
    let changed = before.all.iter().zip(&after.all).filter(|(one, other)| one != other);
    assert_eq!(changed.map(|(one, _)| one.name.as_str()).collect::<Vec<_>>(), ["peekaboo"]);
    assert_eq!(before.rest, after.rest);
}
