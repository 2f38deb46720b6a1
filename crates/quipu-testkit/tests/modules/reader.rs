//! What a file of Rust uses of its own crate, read from its tokens: comments and documentation are none.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::graph::Level;

/// What a file uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    /// Paths that begin with `crate`, `super` or `self`, outside of tests and of what it passes on.
    pub(crate) uses: Vec<Vec<String>>,
    /// Names that it passes on with `pub use`, each with the path that it stands for.
    pub(crate) passed_on: BTreeMap<String, Vec<String>>,
}

/// The files below `source`, by module, without those of tests and of programs.
pub(crate) fn read(source: &Path) -> BTreeMap<Level, File> {
    let mut files = BTreeMap::new();
    collect(source, &[], &mut files);
    files
}

fn collect(folder: &Path, level: &[String], files: &mut BTreeMap<Level, File>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        if stem == "tests" || stem == "testing" || stem == "main" || stem == "bin" {
            continue;
        }
        let inner = || [level, std::slice::from_ref(&stem)].concat();
        if path.is_dir() {
            collect(&path, &inner(), files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let module = if stem == "mod" || stem == "lib" { level.to_vec() } else { inner() };
            files.insert(module, File::of(&fs::read_to_string(&path).unwrap()));
        }
    }
}

impl File {
    /// Reads `text`.
    ///
    /// # Panics
    /// If it is no Rust.
    pub(crate) fn of(text: &str) -> File {
        let tokens = TokenStream::from_str(text).unwrap();
        let mut file = File::default();
        file.read(&tokens.into_iter().collect::<Vec<_>>());
        file
    }

    fn read(&mut self, tokens: &[TokenTree]) {
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            if is_test(tokens, at) {
                // Up to the item's body or end.
                let is_end = |token: &TokenTree| match token {
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    TokenTree::Punct(sign) => sign.as_char() == ';',
                    _ => false,
                };
                at += 2;
                at += tokens[at..].iter().position(is_end).map_or(tokens.len(), |end| end + 1);
                continue;
            }
            match token {
                TokenTree::Ident(word) if word == "use" && is_public(tokens, at) => {
                    let mut all = Vec::new();
                    at = tree(tokens, at + 1, &[], &mut all);
                    for (path, name) in all {
                        self.passed_on.insert(name, path);
                    }
                    continue;
                }
                TokenTree::Ident(word) if is_start(word) && is_path(tokens, at + 1) => {
                    let mut all = Vec::new();
                    at = tree(tokens, at, &[], &mut all);
                    self.uses.extend(all.into_iter().map(|(path, _)| path));
                    continue;
                }
                TokenTree::Group(group) => {
                    self.read(&group.stream().into_iter().collect::<Vec<_>>());
                }
                _ => {}
            }
            at += 1;
        }
    }
}

fn is_start(word: &proc_macro2::Ident) -> bool {
    ["crate", "super", "self"].iter().any(|start| word == start)
}

/// Whether `::` stands at `at`.
fn is_path(tokens: &[TokenTree], at: usize) -> bool {
    let is_colon = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(sign)) if sign.as_char() == ':');
    is_colon(tokens.get(at)) && is_colon(tokens.get(at + 1))
}

/// Whether `#[cfg(test)]` stands at `at`.
fn is_test(tokens: &[TokenTree], at: usize) -> bool {
    let Some(TokenTree::Punct(sign)) = tokens.get(at) else { return false };
    let Some(TokenTree::Group(group)) = tokens.get(at + 1) else { return false };
    let text = group.stream().to_string().replace(' ', "");
    sign.as_char() == '#' && text == "cfg(test)"
}

/// Whether `pub` or `pub(…)` stands before `at`.
fn is_public(tokens: &[TokenTree], at: usize) -> bool {
    let is_pub =
        |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Ident(word)) if word == "pub");
    let before = |steps: usize| at.checked_sub(steps).and_then(|at| tokens.get(at));
    is_pub(before(1)) || (matches!(before(1), Some(TokenTree::Group(_))) && is_pub(before(2)))
}

/// Adds the paths of the tree that begins at `at`, each with the name that it has here; the position behind.
fn tree(
    tokens: &[TokenTree],
    mut at: usize,
    before: &[String],
    all: &mut Vec<(Vec<String>, String)>,
) -> usize {
    let mut path = before.to_vec();
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(word)) => path.push(word.to_string()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let is_comma =
                    |it: &TokenTree| matches!(it, TokenTree::Punct(sign) if sign.as_char() == ',');
                for part in inner.split(is_comma).filter(|part| !part.is_empty()) {
                    tree(part, 0, &path, all);
                }
                return at + 1;
            }
            _ => {}
        }
        at += 1;
        if !is_path(tokens, at) {
            break;
        }
        at += 2;
    }
    if path.len() > before.len() && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let own = path.last().cloned().unwrap_or_default();
    let renamed = match (tokens.get(at), tokens.get(at + 1)) {
        (Some(TokenTree::Ident(word)), Some(TokenTree::Ident(name))) if word == "as" => {
            Some(name.to_string())
        }
        _ => None,
    };
    all.push((path, renamed.unwrap_or(own)));
    at
}
