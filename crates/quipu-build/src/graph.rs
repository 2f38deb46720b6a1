//! Which item of a crate may use which other one.
//!
//! An item uses all that its names may mean: names are looked up without regard to modules, but for those that
//! are private to one. Whoever uses a type uses all that is implemented for it, and whoever calls a method of a
//! trait uses the trait. So more is found than is used, and nothing less.

use std::collections::{BTreeMap, BTreeSet};

use crate::items::{Item, Mentions};

/// The items of a crate, and what each uses.
pub(crate) struct Graph<'i> {
    items: &'i [Item],
    by_name: BTreeMap<&'i str, Vec<usize>>,
    by_method: BTreeMap<&'i str, Vec<usize>>,
    uses: Vec<BTreeSet<usize>>,
    /// Items that nobody needs to mention to use them.
    loose: Vec<usize>,
}

impl<'i> Graph<'i> {
    /// The graph of `items`; to those for which `is_cut` is true of their position nothing leads.
    pub(crate) fn new(items: &'i [Item], is_cut: &dyn Fn(usize) -> bool) -> Graph<'i> {
        let mut graph = Graph {
            items,
            by_name: BTreeMap::new(),
            by_method: BTreeMap::new(),
            uses: vec![BTreeSet::new(); items.len()],
            loose: Vec::new(),
        };
        for (index, item) in items.iter().enumerate().filter(|(index, _)| !is_cut(*index)) {
            for name in &item.names {
                graph.by_name.entry(name).or_default().push(index);
            }
            for method in &item.methods {
                graph.by_method.entry(method).or_default().push(index);
            }
        }
        for (index, item) in items.iter().enumerate() {
            let mut mentions = Mentions::default();
            mentions.add(&item.tokens);
            let found = graph.means(&mentions, &item.module);
            graph.uses[index].extend(found);
            if item.names.iter().any(|name| name == "_") {
                graph.loose.push(index);
            }
            if item.names.is_empty() {
                graph.attach(index);
            }
        }
        graph
    }

    /// Lets the type that an implementation is for lead to it, or else its trait.
    fn attach(&mut self, index: usize) {
        let item = &self.items[index];
        let owners = item.of.iter().map(|name| self.named(name, &item.module));
        match owners.map(Vec::from_iter).find(|owners| !owners.is_empty()) {
            Some(owners) => {
                for owner in owners {
                    self.uses[owner].insert(index);
                }
            }
            None => self.loose.push(index),
        }
    }

    /// The items that `name` may mean in `module`.
    fn named(&self, name: &str, module: &[String]) -> impl Iterator<Item = usize> {
        let all = self.by_name.get(name).into_iter().flatten().copied();
        all.filter(|&index| module.starts_with(&self.items[index].scope))
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// The items that mentions in `module` may mean.
    pub(crate) fn means(&self, mentions: &Mentions, module: &[String]) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for name in &mentions.names {
            found.extend(self.named(name, module));
        }
        for name in mentions.names.iter().chain(&mentions.members) {
            found.extend(self.by_method.get(name.as_str()).into_iter().flatten());
        }
        found
    }

    /// All that `start` can reach, itself included, and what needs no mention.
    pub(crate) fn reach(&self, start: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut ahead: Vec<usize> = start.into_iter().chain(self.loose.iter().copied()).collect();
        let mut reached: BTreeSet<usize> = ahead.iter().copied().collect();
        while let Some(index) = ahead.pop() {
            ahead.extend(self.uses[index].iter().copied().filter(|&next| reached.insert(next)));
        }
        reached
    }
}
