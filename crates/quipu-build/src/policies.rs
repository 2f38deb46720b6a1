//! A hash for each policy, of all the code that it can reach.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::graph::Graph;
use crate::hash::Hash;
use crate::items::{self, Item, Mentions};

/// What a policy is registered as.
const ENTRY: &str = "Entry";
/// What gives several: it leads to none of them, as a run has those that its names choose.
const ENTRIES: &str = "Vec<Entry>";

/// The hash of a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyHash {
    /// Its layer, such as `path`.
    pub layer: String,
    /// Its name, such as `minrtt`.
    pub name: String,
    /// Of its entry and of all that this can reach, but for what counts for every run anyway.
    pub hash: u128,
}

/// The hashes of all policies of a crate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    /// Of all that other crates may name, and of what this can reach.
    pub rest: u128,
    /// Of each policy, in order of layer and name. One whose entry is not understood is left out.
    pub all: Vec<PolicyHash>,
}

/// Where a policy is registered: `Entry { name: "ecf", .. }`, or `helper("ecf", ..)`.
struct Place {
    layer: String,
    name: String,
    group: Group,
}

impl Policies {
    /// The policies of `items`; other crates use no more of these than `words` say.
    pub(crate) fn of(items: &[Item], words: &BTreeSet<String>) -> Policies {
        let helpers: BTreeMap<&str, &Item> = items
            .iter()
            .filter(|item| item.gives == ENTRY)
            .flat_map(|item| item.names.iter().map(move |name| (name.as_str(), item)))
            .collect();
        let lists: Vec<(TokenStream, Vec<Place>)> = items
            .iter()
            .map(|item| {
                let mut places = Vec::new();
                let around = match item.gives == ENTRY || item.gives == ENTRIES {
                    true => without(&item.tokens, &helpers, &mut places),
                    false => TokenStream::new(),
                };
                (around, places)
            })
            .collect();
        let is_cut = |index: usize| items[index].gives == ENTRIES || !lists[index].1.is_empty();
        let graph = Graph::new(items, &is_cut);
        let outside = Mentions { names: words.clone(), members: BTreeSet::new() };
        let common = graph.reach(graph.means(&outside, &[]));
        let hashes: Vec<u128> = items.iter().map(|item| items::hash(&item.tokens)).collect();
        let add_all = |hash: &mut Hash, indexes: &mut dyn Iterator<Item = usize>| {
            for index in indexes {
                hash.add(items[index].module.join("::"));
                hash.add(hashes[index].to_le_bytes());
            }
        };
        let mut rest = Hash::default();
        add_all(&mut rest, &mut common.iter().copied());
        let mut found: BTreeMap<(String, String), Vec<u128>> = BTreeMap::new();
        for (item, (around, places)) in items.iter().zip(&lists) {
            for Place { layer, name, group } in places {
                let mut mentions = Mentions::default();
                mentions.add(around);
                mentions.add(&group.stream());
                let reached = graph.reach(graph.means(&mentions, &item.module));
                let mut hash = Hash::default();
                hash.add(items::hash(around).to_le_bytes());
                hash.add(items::hash(&group.stream()).to_le_bytes());
                add_all(&mut hash, &mut reached.difference(&common).copied());
                found.entry((layer.clone(), name.clone())).or_default().push(hash.end());
            }
        }
        // What is registered twice is not understood.
        let all = found.into_iter().filter_map(|((layer, name), hashes)| match hashes[..] {
            [hash] => Some(PolicyHash { layer, name, hash }),
            _ => None,
        });
        Policies { rest: rest.end(), all: all.collect() }
    }
}

/// `tokens` without the places at which policies are registered, which are added to `places`.
fn without(
    tokens: &TokenStream,
    helpers: &BTreeMap<&str, &Item>,
    places: &mut Vec<Place>,
) -> TokenStream {
    let mut before = String::new();
    let mut rest = Vec::new();
    for token in tokens.clone() {
        let last = std::mem::take(&mut before);
        match token {
            TokenTree::Group(group) => match place(&last, &group, helpers) {
                Some(place) => places.push(place),
                None => {
                    let inner = without(&group.stream(), helpers, places);
                    rest.push(TokenTree::Group(Group::new(group.delimiter(), inner)));
                }
            },
            TokenTree::Ident(name) => {
                before = name.to_string();
                rest.push(TokenTree::Ident(name));
            }
            other => rest.push(other),
        }
    }
    rest.into_iter().collect()
}

/// The place that `group` after the name `before` is, if it is one.
fn place(before: &str, group: &Group, helpers: &BTreeMap<&str, &Item>) -> Option<Place> {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let (name, layer) = match group.delimiter() {
        Delimiter::Brace if before == ENTRY => {
            let name = tokens.windows(3).find_map(|three| match three {
                [TokenTree::Ident(field), TokenTree::Punct(_), value] if field == "name" => {
                    text(value)
                }
                _ => None,
            });
            (name?, layer(&group.stream())?)
        }
        Delimiter::Parenthesis => {
            let helper = helpers.get(before)?;
            (text(tokens.first()?)?, layer(&group.stream()).or_else(|| layer(&helper.tokens))?)
        }
        _ => return None,
    };
    Some(Place { layer, name, group: group.clone() })
}

/// The text of a literal.
fn text(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    let literal = literal.to_string();
    Some(literal.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}

/// The first `Layer::X` in `tokens`, in small letters as its name is.
fn layer(tokens: &TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let here = tokens.windows(4).find_map(|four| match four {
        [
            TokenTree::Ident(kind),
            TokenTree::Punct(_),
            TokenTree::Punct(_),
            TokenTree::Ident(which),
        ] if kind == "Layer" => Some(which.to_string().to_lowercase()),
        _ => None,
    });
    here.or_else(|| {
        tokens.iter().find_map(|token| match token {
            TokenTree::Group(group) => layer(&group.stream()),
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests;
