//! The networks that come with the program, and those in files.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, value};

use super::ScenarioError;
use super::document::Document;
use super::limits::MOST_PATHS;
use super::path::Network;

const BUILTIN: [&str; 2] = [include_str!("networks.toml"), include_str!("scenes.toml")];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    networks: Vec<Network>,
}

/// All networks that come with the program, in the order of the data files.
pub fn builtin() -> Vec<Network> {
    // A test reads the files; if one were wrong there would be no networks of it, never a panic.
    let read = |text| toml::from_str::<File>(text).map(|file| file.networks).unwrap_or_default();
    BUILTIN.into_iter().flat_map(read).collect()
}

/// The network of a scenario that names none: `wifi+lte`.
pub(super) fn default_networks() -> Vec<Network> {
    builtin().into_iter().take(1).collect()
}

/// The network called `name`, or the one in the file of that name if it ends in `.toml`.
///
/// # Errors
/// If there is no such network, or the file is unreadable or describes none.
pub fn find(name: &str) -> Result<Network, ScenarioError> {
    if name.ends_with(".toml") {
        let document = Document::read(Path::new(name))?;
        let mut network: Network = document.read_as(super::form::network())?;
        network.count_from(Path::new(name));
        return Ok(network);
    }
    let known = builtin();
    match known.iter().find(|network| network.name == name) {
        Some(network) => Ok(network.clone()),
        None => {
            let names = known.iter().map(|network| network.name.as_str());
            Err(ScenarioError::unknown("network", name, names))
        }
    }
}

/// Checks paths and links of `network`, which stands at `field`; one error of each path at most.
pub(super) fn problems(network: &Network, field: &str) -> Vec<ScenarioError> {
    let count = network.paths.len();
    if !(1..=MOST_PATHS).contains(&count) {
        let field = format!("{field}.paths");
        return vec![ScenarioError::invalid(field, count, "1 to 32 paths")];
    }
    let shared = network.validate_shared().map_err(|(place, source)| ScenarioError::Link {
        field: format!("{field}.{place}"),
        source,
    });
    let paths = network.paths.iter().enumerate().map(|(index, path)| {
        let field = format!("{field}.paths[{index}]");
        path.validate().map_err(|source| ScenarioError::Link { field: field.clone(), source })?;
        network.validate_hops(index).map_err(|(place, source)| ScenarioError::Link {
            field: format!("{field}.{place}"),
            source,
        })
    });
    std::iter::once(shared).chain(paths).filter_map(Result::err).collect()
}

/// Reads a list of tables and names.
pub(super) fn read_list<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Network>, D::Error> {
    struct List;

    impl<'de> de::Visitor<'de> for List {
        type Value = Vec<Network>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of networks, each a name or a table")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Network>, A::Error> {
            let mut networks = Vec::new();
            while let Some(Entry(network)) = list.next_element()? {
                networks.push(network);
            }
            Ok(networks)
        }
    }

    input.deserialize_seq(List)
}

/// A network as a table, or by name.
struct Entry(Network);

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> de::Visitor<'de> for Either {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a network, or a table with name and paths")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Entry, E> {
                find(name).map(Entry).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Entry, A::Error> {
                Network::deserialize(value::MapAccessDeserializer::new(map)).map(Entry)
            }
        }

        input.deserialize_any(Either)
    }
}
