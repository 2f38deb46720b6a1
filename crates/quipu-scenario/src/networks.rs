//! The networks that come with the program, and those in files.

use std::path::Path;

use serde::Deserialize;

use super::document::Document;
use super::error::ScenarioError;
use super::form::Shorthand;
use super::network::Network;
use super::network_name::{BUILTIN, NetworkName};

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
        let mut network: Network = Network::table().read(&document)?;
        network.count_from(document.folder());
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

/// Whether the file is one that describes a network, as [`find`] reads it, and not one of an experiment: it has paths.
pub fn is_file(file: &Path) -> bool {
    let table =
        super::document::read_text(file).ok().and_then(|text| text.parse::<toml::Table>().ok());
    table.is_some_and(|table| table.contains_key("paths"))
}

/// Checks paths and links of `network`, which stands at `field`; one error of each path at most.
pub(super) fn problems(network: &Network, field: &str) -> Vec<ScenarioError> {
    let shared = network.validate_shared().map_err(|(place, source)| ScenarioError::Link {
        field: format!("{field}.{place}"),
        source,
    });
    let paths = network.paths.iter().enumerate().map(|(index, path)| {
        let field = format!("{field}.paths[{index}]");
        unique(network, index, &field)?;
        path.validate().map_err(|source| ScenarioError::Link { field: field.clone(), source })?;
        match (&network.server, path.uplink()) {
            (Some(server), None) => {
                let expected = "no server, or an uplink of each path";
                return Err(ScenarioError::invalid(
                    format!("{field}.uplink"),
                    format!("missing beside the server {server}"),
                    expected,
                ));
            }
            (None, Some(uplink)) => {
                let expected = "links, or the URL of a server of the network";
                return Err(ScenarioError::invalid(format!("{field}.uplink"), uplink, expected));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        network.validate_hops(index).map_err(|(place, source)| ScenarioError::Link {
            field: format!("{field}.{place}"),
            source,
        })
    });
    std::iter::once(shared).chain(paths).filter_map(Result::err).collect()
}

/// Checks that no path before that at `index` has its name.
fn unique(network: &Network, index: usize, field: &str) -> Result<(), ScenarioError> {
    let Some(path) = network.paths.get(index) else { return Ok(()) };
    let mut earlier = network.paths.iter().take(index);
    match earlier.position(|earlier| earlier.name == path.name) {
        None => Ok(()),
        Some(first) => Err(ScenarioError::invalid(
            format!("{field}.name"),
            format!("{}, as paths[{first}]", path.name),
            format!("a name of its own for each of paths[{first}] and paths[{index}]"),
        )),
    }
}

impl Shorthand<NetworkName> for Network {
    const EXPECTED: &'static str = "the name of a network, or a table with name and paths";

    fn from_short(name: NetworkName) -> Result<Self, String> {
        find(name.as_str()).map_err(|error| error.to_string())
    }
}
