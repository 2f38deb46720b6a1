//! Paths as a scenario writes them.

use std::str::FromStr;

use quipu_base::Duration;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::choice::{Direction, EnergyModel};
use super::error::{LinkError, ScenarioError};
use super::field_path::joined;
use super::form::text::NAME;
use super::form::{FieldType, Kind, table};
use super::link::{LinkSpec, PartialLink};
use super::partial::PartialUplink;

table! {
    /// A path between client and server. Usually it has two links of its own, one for each direction. With
    /// `access` it is a dumbbell: in each direction a link of the sender, the path's own, and a link of
    /// the receiver. Every pair of a client and a server has access links of its own, while the path's own
    /// link is there once for all pairs. With `bottleneck` a path leads over the links of an earlier path,
    /// whose queues it shares. On the server's side of all that, `via` names links of the network; on the
    /// client's side, `radio` an access point.
    #[derive(Default)]
    struct PathForm as "Path" needs [down bottleneck uplink] {
        /// Its name in tables, such as `wifi`.
        name: String [text NAME],
        /// The access point between the path's links and the client.
        radio: Option<String> [text NAME] => "the client is at the links",
        /// Links of the network between the server and the path's own, in order from the server on.
        via: Vec<String> [text NAME] => "none",
        /// From the server to the client.
        down: Option<PartialLink> => "none beside a `bottleneck` or an `uplink`",
        /// From the client to the server. What is not given is the downlink's.
        up: Option<PartialUplink> => "as `down`",
        /// Name of an earlier path of the network, whose links this path leads over instead of links of
        /// its own.
        bottleneck: Option<String> [text NAME] => "none",
        /// What the path leaves a real host by, in a network with a `server`: an interface, or an address of one. It
        /// stands in place of links, of which nothing is known.
        uplink: Option<String> [text NAME] => "none",
        /// Each of the links between a host and the shared ones: the client's and the server's, in both
        /// directions.
        access: Option<PartialLink> => "the hosts are at the shared links",
        /// The model of the client's radio on this path, by which its energy is counted
        /// ([energy.md](energy.md)): Wi-Fi or LTE of Huang et al. (MobiSys 2012).
        energy: Option<EnergyModel> => "energy is not counted",
        /// Price of a megabyte (10^6 bytes) in either direction, in any unit that all paths share; counted in
        /// millionths.
        price: Option<f64> [0.0..=1_000_000.0] => "none",
    }
}

/// A way between client and server, with links of its own or over those of another path.
///
/// ```
/// use quipu_scenario::{Network};
///
/// let network: Network = toml::from_str(
///     r#"
///     name = "dumbbell"
///     paths = [
///         { name = "near", down = { rate = "4mbit", delay = "10us" }, access = { rate = "10mbit", delay = "45ms" } },
///         { name = "far", bottleneck = "near", access = { rate = "10mbit", delay = "90ms" } },
///     ]
///     "#,
/// )?;
/// assert_eq!(network.paths[0].summary(), "near 4mbit 10us access 10mbit 45ms");
/// assert_eq!(network.paths[1].summary(), "far over near access 10mbit 90ms");
/// // Both directions, two access links and the bottleneck each.
/// assert_eq!(network.round_trip(1).unwrap().as_micros(), 360_020);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PathSpec {
    /// Its name in tables.
    pub name: String,
    /// The access point on the client's side, if any; see [`RadioSpec`](super::RadioSpec).
    pub radio: Option<String>,
    /// Names of the network's links on the server's side, from the server on.
    pub via: Vec<String>,
    /// What all pairs of hosts share.
    pub links: LinksSpec,
    /// The links between the hosts and the shared ones, if they are not there themselves: four for each
    /// pair, all of this kind.
    pub access: Option<LinkSpec>,
    /// The model of the client's radio on it, if its energy is counted.
    pub energy: Option<EnergyModel>,
    /// Price of a megabyte (10^6 bytes) in either direction, if bytes have one.
    pub price: Option<f64>,
}

/// The links of a path that all pairs of hosts share.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "few per scenario, and most are the large one")]
pub enum LinksSpec {
    /// The path has links of its own.
    Own(OwnLinks),
    /// The path has those of another one.
    Shared {
        /// Name of an earlier path of the network, whose links these are.
        bottleneck: String,
    },
    /// The path is real, and what its links are is not known.
    Real {
        /// The interface that it leaves the client's host by, or an address of one.
        uplink: String,
    },
}

/// Both directions of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnLinks {
    /// From the server to the client.
    pub down: LinkSpec,
    /// From the client to the server. What is not given is the downlink's.
    pub up: LinkSpec,
}

/// Types that a file has in another form, which serde reads and writes for them.
macro_rules! in_form {
    ($($ty:ty as $form:ty,)+) => {$(
        impl<'de> Deserialize<'de> for $ty {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                <$form>::deserialize(input)?.try_into().map_err(de::Error::custom)
            }
        }

        impl Serialize for $ty {
            fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                <$form>::from(self).serialize(output)
            }
        }

        impl FieldType for $ty {
            fn kind() -> Kind {
                <$form>::kind()
            }

            fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                Self::deserialize(input)
            }

            fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                self.serialize(output)
            }

            fn check(&self, path: &str, problems: &mut Vec<ScenarioError>) {
                self.check_links(path, problems);
                <$form>::from(self).check_fields(path, problems);
            }
        }
    )+};
}

pub(super) use in_form;

in_form! {
    PathSpec as PathForm,
}

impl From<&PathSpec> for PathForm {
    fn from(path: &PathSpec) -> Self {
        let own = path.own_links();
        PathForm {
            name: path.name.clone(),
            radio: path.radio.clone(),
            via: path.via.clone(),
            down: own.map(|links| links.down.written()),
            up: own.map(|links| PartialUplink(links.up.written())),
            bottleneck: match &path.links {
                LinksSpec::Own(_) | LinksSpec::Real { .. } => None,
                LinksSpec::Shared { bottleneck } => Some(bottleneck.clone()),
            },
            uplink: path.uplink().map(str::to_owned),
            access: path.access.as_ref().map(LinkSpec::written),
            energy: path.energy,
            price: path.price,
        }
    }
}

impl OwnLinks {
    /// Both links, where the uplink is like the downlink in all that is not given.
    pub(super) fn complete(
        down: PartialLink,
        up: Option<PartialUplink>,
    ) -> Result<Self, LinkError> {
        let down = down.complete("")?;
        let up = up.unwrap_or_default().0.over(&down);
        Ok(OwnLinks { down, up })
    }

    /// The link of one direction.
    pub fn of(&self, direction: Direction) -> &LinkSpec {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }

    /// Holds the fields of both links to their ranges.
    pub(super) fn check(&self, path: &str, problems: &mut Vec<ScenarioError>) {
        for (link, spec) in [("down", &self.down), ("up", &self.up)] {
            spec.check_fields(&joined(path, link), problems);
        }
    }

    /// Checks the values of both links.
    pub(super) fn validate(&self) -> Result<(), LinkError> {
        [("down", &self.down), ("up", &self.up)].into_iter().try_for_each(|(link, spec)| {
            spec.validate().map_err(|source| LinkError::Of { link, source: Box::new(source) })
        })
    }
}

impl TryFrom<PathForm> for PathSpec {
    type Error = LinkError;

    fn try_from(input: PathForm) -> Result<Self, LinkError> {
        if let Some(uplink) = input.uplink {
            return real(
                uplink,
                input.name,
                &[
                    ("bottleneck", input.bottleneck.is_some()),
                    ("down", input.down.is_some()),
                    ("up", input.up.is_some()),
                    ("access", input.access.is_some()),
                    ("radio", input.radio.is_some()),
                    ("via", !input.via.is_empty()),
                    ("energy", input.energy.is_some()),
                    ("price", input.price.is_some()),
                ],
            );
        }
        let links = match (input.bottleneck, input.down, input.up) {
            (Some(bottleneck), None, None) => LinksSpec::Shared { bottleneck },
            (Some(bottleneck), ..) => {
                let expected = "either that or links of the path's own (rate, delay, …; down, up)";
                let text = format!("bottleneck is {bottleneck}; expected {expected}");
                return Err(LinkError::Invalid(text));
            }
            (None, None, _) => {
                let expected = "the path's downlink, or the bottleneck that it shares";
                return Err(LinkError::Missing { field: "down".to_owned(), expected });
            }
            (None, Some(down), up) => LinksSpec::Own(OwnLinks::complete(down, up)?),
        };
        let access = input.access.map(|access| access.complete("access.")).transpose()?;
        if let (Some(radio), Some(_)) = (&input.radio, &access) {
            let expected = "no access links beside it, as the radio is the client's";
            return Err(LinkError::Invalid(format!("radio is {radio}; expected {expected}")));
        }
        Ok(PathSpec {
            name: input.name,
            radio: input.radio,
            via: input.via,
            links,
            access,
            energy: input.energy,
            price: input.price,
        })
    }
}

/// The path by a real uplink, which has none of the `others`: fields with whether they are given.
fn real(uplink: String, name: String, others: &[(&str, bool)]) -> Result<PathSpec, LinkError> {
    if let Some((field, _)) = others.iter().find(|(_, given)| *given) {
        let text = format!("uplink is {uplink}; expected no {field} beside it");
        return Err(LinkError::Invalid(text));
    }
    Ok(PathSpec { name, ..PathSpec::over(uplink) })
}

impl FromStr for PathSpec {
    type Err = LinkError;

    /// Reads `rate=30mbit,delay=10ms,loss=1.5%`; fields of the uplink begin with `up.`, those of
    /// access links with `access.`.
    fn from_str(text: &str) -> Result<Self, LinkError> {
        let mut input = PathForm::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (field, value) = part
                .split_once('=')
                .ok_or_else(|| LinkError::NotAssigned { part: part.to_owned() })?;
            let (link, field) = match field.trim().split_once('.') {
                Some(("up", field)) => (&mut input.up.get_or_insert_default().0, field),
                Some(("down", field)) => (input.down.get_or_insert_default(), field),
                Some(("access", field)) => (input.access.get_or_insert_default(), field),
                _ => match field.trim() {
                    "name" => {
                        input.name = value.trim().to_owned();
                        continue;
                    }
                    "bottleneck" => {
                        input.bottleneck = Some(value.trim().to_owned());
                        continue;
                    }
                    field => (input.down.get_or_insert_default(), field),
                },
            };
            link.set(field, value)?;
        }
        if input.bottleneck.is_none() {
            // What is missing is a field of the link, not the link.
            input.down.get_or_insert_default();
        }
        PathSpec::try_from(input)
    }
}

impl PathSpec {
    /// The path of a real host that leaves it by `uplink`, and has its name.
    pub fn over(uplink: String) -> PathSpec {
        PathSpec {
            name: uplink.clone(),
            radio: None,
            via: Vec::new(),
            links: LinksSpec::Real { uplink },
            access: None,
            energy: None,
            price: None,
        }
    }

    /// The links of its own; `None` if it has those of another path.
    pub fn own_links(&self) -> Option<&OwnLinks> {
        match &self.links {
            LinksSpec::Own(links) => Some(links),
            LinksSpec::Shared { .. } | LinksSpec::Real { .. } => None,
        }
    }

    /// The same, to change them.
    pub fn own_links_mut(&mut self) -> Option<&mut OwnLinks> {
        match &mut self.links {
            LinksSpec::Own(links) => Some(links),
            LinksSpec::Shared { .. } | LinksSpec::Real { .. } => None,
        }
    }

    /// What it leaves a real host by; `None` if its links are modelled.
    pub fn uplink(&self) -> Option<&str> {
        match &self.links {
            LinksSpec::Real { uplink } => Some(uplink),
            LinksSpec::Own(_) | LinksSpec::Shared { .. } => None,
        }
    }

    /// Holds the fields of its links to their ranges.
    fn check_links(&self, path: &str, problems: &mut Vec<ScenarioError>) {
        if let Some(links) = self.own_links() {
            links.check(path, problems);
        }
        if let Some(access) = &self.access {
            access.check_fields(&joined(path, "access"), problems);
        }
    }

    /// Checks all links that it has itself.
    ///
    /// # Errors
    /// The first value that makes no link.
    pub fn validate(&self) -> Result<(), LinkError> {
        self.own_links().map_or(Ok(()), OwnLinks::validate)?;
        let access = self.access.as_ref().map_or(Ok(()), LinkSpec::validate);
        access.map_err(|source| LinkError::Of { link: "access", source: Box::new(source) })
    }

    /// One line such as `wifi 55mbit 15ms`.
    pub fn summary(&self) -> String {
        let mut text = match &self.links {
            LinksSpec::Own(OwnLinks { down, up }) if down == up => {
                format!("{} {}", self.name, down.summary())
            }
            LinksSpec::Own(OwnLinks { down, up }) => {
                format!("{} {} (up {})", self.name, down.summary(), up.summary())
            }
            LinksSpec::Shared { bottleneck } => format!("{} over {bottleneck}", self.name),
            LinksSpec::Real { uplink } if *uplink == self.name => uplink.clone(),
            LinksSpec::Real { uplink } => format!("{} by {uplink}", self.name),
        };
        if let Some(access) = &self.access {
            text.push_str(" access ");
            text.push_str(&access.summary());
        }
        if !self.via.is_empty() {
            text.push_str(" via ");
            text.push_str(&self.via.join(", "));
        }
        if let Some(radio) = &self.radio {
            text.push_str(" radio ");
            text.push_str(radio);
        }
        text
    }

    /// Price of a megabyte in millionths, rounded.
    pub fn price_millionths(&self) -> Option<u64> {
        // At most 10^12, as the field was checked.
        self.price.map(|price| (price * 1e6 + 0.5) as u64)
    }

    /// The delays of the access links that a datagram takes in one direction, together.
    pub fn access_delay(&self) -> Duration {
        let one = self.access.as_ref().map_or(Duration::ZERO, LinkSpec::usual_delay);
        one.saturating_mul(2)
    }
}

#[cfg(test)]
mod tests;
