//! The networks that come with the program, and those in files.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, value};

use super::path::Network;
use super::{MOST_PATHS, ScenarioError, read_text};

const BUILTIN: &str = include_str!("networks.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    networks: Vec<Network>,
}

/// All networks that come with the program, in the order of the data file.
pub fn builtin() -> Vec<Network> {
    // A test reads the file; if it were wrong there would be no networks, never a panic.
    toml::from_str::<File>(BUILTIN).map(|file| file.networks).unwrap_or_default()
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
        let text = read_text(Path::new(name))?;
        return toml::from_str(&text).map_err(|error| ScenarioError::toml(name, &text, &error));
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

/// Checks paths and links of `network`.
pub(super) fn validate(network: &Network) -> Result<(), ScenarioError> {
    let count = network.paths.len();
    if !(1..=MOST_PATHS).contains(&count) {
        let field = format!("network {}: paths", network.name);
        return Err(ScenarioError::invalid(field, count, "1 to 32 paths"));
    }
    for (index, path) in network.paths.iter().enumerate() {
        let checked = path.validate().and_then(|()| network.bottleneck(index));
        checked.map_err(|source| ScenarioError::Link {
            place: format!("network {}, path {index} ({})", network.name, path.name),
            source,
        })?;
    }
    Ok(())
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
