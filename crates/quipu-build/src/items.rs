//! The items of a crate: functions, types, constants, implementations, each with the names that it mentions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Item as Syntax, ReturnType, TraitItem, Type, UseTree, Visibility};

use crate::hash::Hash;

/// An item of a crate, without its comments.
#[derive(Debug)]
pub(crate) struct Item {
    /// The module that it is in, from the crate's root on.
    pub(crate) module: Vec<String>,
    /// What it is called; none for an implementation.
    pub(crate) names: Vec<String>,
    /// Methods that a trait declares: by these alone it may be used too.
    pub(crate) methods: Vec<String>,
    /// The module within which its names are known.
    pub(crate) scope: Vec<String>,
    /// The types, or the trait, that an implementation belongs to: whoever uses these may use it.
    pub(crate) of: Vec<String>,
    /// What a function gives, such as `Entry`; empty if it is none.
    pub(crate) gives: String,
    /// All of it.
    pub(crate) tokens: TokenStream,
}

/// What some tokens mention.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mentions {
    /// Names that stand by themselves.
    pub(crate) names: BTreeSet<String>,
    /// Names after a dot: methods and fields.
    pub(crate) members: BTreeSet<String>,
}

/// The items of the crate whose sources are in `folder`. Tests are left out.
///
/// # Errors
/// If a file cannot be read or is not in the language.
pub(crate) fn read(folder: &Path) -> io::Result<Vec<Item>> {
    let mut items = Vec::new();
    file(&folder.join("lib.rs"), folder, &[], &mut items)?;
    Ok(items)
}

/// Adds the items of `file`, whose modules lie in `folder`.
fn file(file: &Path, folder: &Path, module: &[String], items: &mut Vec<Item>) -> io::Result<()> {
    let wrong =
        |error: &dyn std::fmt::Display| io::Error::other(format!("{}: {error}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let syntax = syn::parse_file(&text).map_err(|error| wrong(&error))?;
    add(syntax.items, folder, module, items)
}

fn add(
    all: Vec<Syntax>,
    folder: &Path,
    module: &[String],
    items: &mut Vec<Item>,
) -> io::Result<()> {
    for syntax in all {
        if attributes(&syntax).iter().any(is_test) {
            continue;
        }
        if let Syntax::Mod(inner) = syntax {
            let name = inner.ident.to_string();
            let mut path = module.to_vec();
            path.push(name.clone());
            match inner.content {
                Some((_, content)) => add(content, &folder.join(&name), &path, items)?,
                None => {
                    let (within, beside) = source(folder, &name);
                    file(&within, &beside, &path, items)?;
                }
            }
            continue;
        }
        items.extend(item(&syntax, module));
    }
    Ok(())
}

/// The file of the module `name` declared in `folder`, and the folder of its own modules.
fn source(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let own = folder.join(name);
    let beside = folder.join(format!("{name}.rs"));
    (if beside.is_file() { beside } else { own.join("mod.rs") }, own)
}

fn is_test(attribute: &Attribute) -> bool {
    match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    }
}

fn attributes(item: &Syntax) -> &[Attribute] {
    match item {
        Syntax::Const(it) => &it.attrs,
        Syntax::Enum(it) => &it.attrs,
        Syntax::Fn(it) => &it.attrs,
        Syntax::Impl(it) => &it.attrs,
        Syntax::Macro(it) => &it.attrs,
        Syntax::Mod(it) => &it.attrs,
        Syntax::Static(it) => &it.attrs,
        Syntax::Struct(it) => &it.attrs,
        Syntax::Trait(it) => &it.attrs,
        Syntax::Type(it) => &it.attrs,
        Syntax::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// What is to be known of an item; `None` for an import that renames nothing.
fn item(syntax: &Syntax, module: &[String]) -> Option<Item> {
    let mut item = Item {
        module: module.to_vec(),
        names: Vec::new(),
        methods: Vec::new(),
        scope: Vec::new(),
        of: Vec::new(),
        gives: String::new(),
        tokens: syntax.to_token_stream(),
    };
    let (name, seen) = match syntax {
        Syntax::Const(it) => (&it.ident, &it.vis),
        Syntax::Enum(it) => (&it.ident, &it.vis),
        Syntax::Static(it) => (&it.ident, &it.vis),
        Syntax::Struct(it) => (&it.ident, &it.vis),
        Syntax::Type(it) => (&it.ident, &it.vis),
        Syntax::Fn(it) => {
            if let ReturnType::Type(_, kind) = &it.sig.output {
                item.gives = kind.to_token_stream().to_string().replace(' ', "");
            }
            (&it.sig.ident, &it.vis)
        }
        Syntax::Trait(it) => {
            for member in &it.items {
                if let TraitItem::Fn(method) = member {
                    item.methods.push(method.sig.ident.to_string());
                }
            }
            (&it.ident, &it.vis)
        }
        Syntax::Impl(it) => {
            item.of = owners(&it.self_ty);
            // For a type of others whoever uses the trait may mean it.
            item.of.extend(
                it.trait_
                    .iter()
                    .flat_map(|(path, _)| path.segments.last().map(|last| last.ident.to_string())),
            );
            return Some(item);
        }
        Syntax::Use(it) => {
            renames(&it.tree, &mut item.names);
            item.scope = scope(&it.vis, module);
            return (!item.names.is_empty()).then_some(item);
        }
        // A macro's names are known everywhere; what a call of one makes may have any of its names.
        _ => {
            let mut mentioned = Mentions::default();
            mentioned.add(&item.tokens);
            item.names = mentioned.names.into_iter().collect();
            return Some(item);
        }
    };
    item.names.push(name.to_string());
    item.scope = scope(seen, module);
    Some(item)
}

/// The module in which an item is known.
fn scope(seen: &Visibility, module: &[String]) -> Vec<String> {
    match seen {
        Visibility::Inherited => module.to_vec(),
        Visibility::Restricted(it) if it.path.is_ident("super") => {
            module.split_last().map_or_else(Vec::new, |(_, parent)| parent.to_vec())
        }
        _ => Vec::new(),
    }
}

/// The last name of a type, without references and brackets.
fn owners(kind: &Type) -> Vec<String> {
    match kind {
        Type::Path(path) => {
            path.path.segments.last().map(|it| it.ident.to_string()).into_iter().collect()
        }
        Type::Reference(it) => owners(&it.elem),
        Type::Slice(it) => owners(&it.elem),
        Type::Array(it) => owners(&it.elem),
        _ => Vec::new(),
    }
}

fn renames(tree: &UseTree, names: &mut Vec<String>) {
    match tree {
        UseTree::Path(it) => renames(&it.tree, names),
        UseTree::Rename(it) => names.push(it.rename.to_string()),
        UseTree::Group(it) => it.items.iter().for_each(|tree| renames(tree, names)),
        _ => {}
    }
}

/// Calls `each` with every token that is no comment; groups come as their ends.
fn walk(tokens: &TokenStream, each: &mut dyn FnMut(&str, bool)) {
    let mut tokens = tokens.clone().into_iter().peekable();
    let mut after_dot = false;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(sign) => {
                if sign.as_char() == '#' && tokens.peek().is_some_and(is_doc) {
                    tokens.next();
                    continue;
                }
                let mut text = [0; 4];
                each(sign.as_char().encode_utf8(&mut text), false);
                // The second of two dots makes a range.
                after_dot = sign.as_char() == '.' && !after_dot;
                continue;
            }
            TokenTree::Ident(name) => each(&name.to_string(), after_dot),
            TokenTree::Literal(value) => each(&value.to_string(), false),
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                each(open, false);
                walk(&group.stream(), each);
                each(close, false);
            }
        }
        after_dot = false;
    }
}

/// Whether this is the rest of a comment that documents, which comes as `#[doc = "..."]`.
fn is_doc(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
}

/// The hash of some tokens without comments.
pub(crate) fn hash(tokens: &TokenStream) -> u128 {
    let mut hash = Hash::default();
    walk(tokens, &mut |token, _| hash.add(token));
    hash.end()
}

impl Mentions {
    /// Adds what `tokens` mention.
    pub(crate) fn add(&mut self, tokens: &TokenStream) {
        walk(tokens, &mut |token, is_member| {
            if token.starts_with(|sign: char| sign.is_alphabetic() || sign == '_') {
                let set = if is_member { &mut self.members } else { &mut self.names };
                if !set.contains(token) {
                    set.insert(token.to_owned());
                }
            }
        });
    }
}
