//! What networks are called, and the texts that describe those that come with the program.

use serde::{Deserialize, Deserializer, Serializer};

use super::form::{FieldType, Kind, Names, Numbers, Text};

/// Files with the networks that come with the program.
pub(crate) const BUILTIN: [&str; 2] = [include_str!("networks.toml"), include_str!("scenes.toml")];

/// Names of the networks that come with the program, in the order of these files.
fn builtin() -> Vec<String> {
    #[derive(Deserialize)]
    struct File {
        networks: Vec<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    // A test reads the files; if one were wrong there would be no names of it, never a panic.
    let read = |text| toml::from_str::<File>(text).map(|file| file.networks).unwrap_or_default();
    BUILTIN.into_iter().flat_map(read).map(|network| network.name).collect()
}

/// A network by name.
static NETWORK_NAME: Text = Text {
    name: "name of a network",
    expected: "the name of a network, or of a file that ends in .toml and describes one",
    pattern: r"\.toml$",
    accepts: |text| text.ends_with(".toml") || builtin().iter().any(|name| name == text),
    numbers: Numbers::None,
    names: Names::All(builtin),
    examples: &["wifi+lte"],
    refused: &["", "wifi+lt"],
};

/// What a network is called that is not described where it is used.
#[derive(Clone, Debug)]
pub(crate) struct NetworkName(String);

impl NetworkName {
    /// The name.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FieldType for NetworkName {
    fn kind() -> Kind {
        Kind::Text(&NETWORK_NAME)
    }

    fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        String::deserialize(input).map(NetworkName)
    }

    fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_str(&self.0)
    }
}
