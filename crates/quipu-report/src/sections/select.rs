//! Selectors: which columns tell scenes apart, and what a reader can choose.

use std::collections::BTreeSet;

use serde_json::Value;

use super::data::text;
use crate::document::{Choice, Control};
use crate::read::Networks;
use crate::results::{Place, Results, Scene};

/// How the scenes of a figure are told apart.
#[derive(Debug)]
pub(super) struct Select {
    axes: Vec<Axis>,
}

#[derive(Clone, Debug)]
struct Axis {
    /// The column.
    id: String,
    label: String,
    kind: Kind,
    /// Values in order of appearance.
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Page,
    Network,
    Field(usize),
    /// All of these together, where not all combinations are there.
    Whole,
}

impl Select {
    /// How `scenes` are told apart: by page, network and each field that has several values, if all
    /// combinations of these are there; else by the name of the scene.
    pub(super) fn new(results: &Results, scenes: &[&Scene]) -> Select {
        let mut axes = vec![
            Axis::new("page", "page", Kind::Page),
            Axis::new("network", "network", Kind::Network),
        ];
        for (position, field) in results.fields.iter().enumerate() {
            axes.push(Axis::new(&column(field), field, Kind::Field(position)));
        }
        for axis in &mut axes {
            axis.fill(results, scenes);
        }
        axes.retain(|axis| axis.values.len() > 1);
        let combinations =
            axes.iter().fold(1_usize, |all, axis| all.saturating_mul(axis.values.len()));
        if combinations != scenes.len() {
            let mut whole = Axis::new("scene", "where", Kind::Whole);
            whole.fill(results, scenes);
            axes = vec![whole];
        }
        Select { axes }
    }

    /// The same without a choice of the network, for figures that show all.
    pub(super) fn without_network(&self) -> Select {
        let others = self.axes.iter().filter(|axis| axis.kind != Kind::Network);
        Select { axes: others.cloned().collect() }
    }

    /// The same without a choice of the field at `position`; `None` if scenes have no choice of it.
    pub(super) fn without_field(&self, position: usize) -> Option<Select> {
        let (own, others): (Vec<Axis>, Vec<Axis>) =
            self.axes.iter().cloned().partition(|axis| axis.kind == Kind::Field(position));
        (!own.is_empty()).then_some(Select { axes: others })
    }

    /// The same without a choice of the network or of fields that change it.
    pub(super) fn without_paths(&self, networks: &Networks) -> Select {
        let others = self.without_network().axes.into_iter().filter(|axis| match axis.kind {
            Kind::Field(position) => !networks.changes(position),
            _ => true,
        });
        Select { axes: others.collect() }
    }

    /// Whether scenes are told apart by their names alone.
    pub(super) fn is_whole(&self) -> bool {
        self.axes.iter().any(|axis| axis.kind == Kind::Whole)
    }

    /// Names of the columns.
    pub(super) fn columns(&self) -> impl Iterator<Item = String> {
        self.axes.iter().map(|axis| axis.id.clone())
    }

    /// The cells of a row about `scene` in these columns.
    pub(super) fn cells(&self, results: &Results, scene: &Scene) -> Vec<Value> {
        self.axes.iter().map(|axis| text(&axis.value(results, scene))).collect()
    }

    /// The selectors: none if there is one scene.
    pub(super) fn controls(&self) -> Vec<Control> {
        let control = |axis: &Axis| Control {
            id: axis.id.clone(),
            label: axis.label.clone(),
            options: axis
                .values
                .iter()
                .map(|value| Choice { value: value.clone(), label: value.clone() })
                .collect(),
            default: axis.values.first().cloned().unwrap_or_default(),
        };
        self.axes.iter().map(control).collect()
    }
}

impl Axis {
    fn new(id: &str, label: &str, kind: Kind) -> Axis {
        Axis { id: id.to_owned(), label: label.to_owned(), kind, values: Vec::new() }
    }

    fn value(&self, results: &Results, scene: &Scene) -> String {
        let place = &scene.place;
        match self.kind {
            Kind::Page => place.page.clone(),
            Kind::Network => place.network.clone(),
            Kind::Field(position) => place.fields.get(position).cloned().unwrap_or_default(),
            Kind::Whole => name(results, place),
        }
    }

    fn fill(&mut self, results: &Results, scenes: &[&Scene]) {
        let mut known = BTreeSet::new();
        let values = scenes.iter().map(|scene| self.value(results, scene));
        self.values = values.filter(|value| known.insert(value.clone())).collect();
    }
}

/// A place in words: `wikipedia over wifi+lte, browser chrome`.
pub(super) fn name(results: &Results, place: &Place) -> String {
    let mut name = match place.page.as_str() {
        "" => place.network.clone(),
        page => format!("{page} over {}", place.network),
    };
    for (field, value) in results.fields.iter().zip(&place.fields) {
        if !value.is_empty() {
            name.push_str(&format!(", {field} {value}"));
        }
    }
    name
}

/// A field as a column that a plot can read: a point would be a way into an object.
pub(super) fn column(field: &str) -> String {
    let sign = |sign: char| if sign.is_alphanumeric() { sign } else { '_' };
    match field.chars().map(sign).collect::<String>() {
        // Names that rows have already.
        name if ["page", "network", "policy", "scene"].contains(&name.as_str()) => name + "_",
        name => name,
    }
}
