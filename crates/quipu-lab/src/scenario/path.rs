//! Paths as a scenario writes them, and networks of them.

use std::str::FromStr;

use quipu_base::Duration;
use serde::{Deserialize, Serialize};

use super::link::{LinkError, LinkSpec, PartialLink};
use super::nearest::suggestion;
use super::units::Unit;

/// A way between client and server.
///
/// Mostly it has two links of its own, one for each direction. With `access` it is a dumbbell: in
/// each direction a link of the sender, the path's own, and a link of the receiver. Every pair of a
/// client and a server has access links of its own, four of the same kind, while the path's own
/// link is there once for all pairs. With `bottleneck` a path leads over the links of an earlier
/// path, whose queues it shares, and has none between its access links.
///
/// ```
/// use quipu_lab::scenario::Network;
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PathInput")]
pub struct PathSpec {
    /// What it is called in tables, such as `wifi`.
    pub name: String,
    /// The links that all pairs of hosts share.
    #[serde(flatten)]
    pub links: LinksSpec,
    /// Each of the links between a host and the shared ones: the client's and the server's, in both
    /// directions. Default: the hosts are at the shared links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<LinkSpec>,
}

/// The links of a path that all pairs of hosts share.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "few per scenario, and most are the large one")]
pub enum LinksSpec {
    /// The path has links of its own.
    Own(OwnLinks),
    /// The path has those of another one.
    Shared {
        /// Name of an earlier path of the network, whose links these are.
        bottleneck: String,
    },
}

/// Both directions of a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OwnLinks {
    /// From the server to the client.
    pub down: LinkSpec,
    /// From the client to the server. What is not given is the downlink's.
    pub up: LinkSpec,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PathInput {
    name: String,
    down: Option<PartialLink>,
    up: Option<PartialLink>,
    bottleneck: Option<String>,
    access: Option<PartialLink>,
}

/// The paths between client and server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// What it is called, such as `wifi+lte`.
    pub name: String,
    /// One line on what it stands for and where it comes from.
    #[serde(default)]
    pub about: String,
    /// The paths; path 0 carries the handshake.
    pub paths: Vec<PathSpec>,
}

impl TryFrom<PathInput> for PathSpec {
    type Error = LinkError;

    fn try_from(input: PathInput) -> Result<Self, LinkError> {
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
            (None, Some(down), up) => {
                let down = down.complete("")?;
                let up = up.unwrap_or_default().over(&down);
                LinksSpec::Own(OwnLinks { down, up })
            }
        };
        let access = input.access.map(|access| access.complete("access.")).transpose()?;
        Ok(PathSpec { name: input.name, links, access })
    }
}

impl FromStr for PathSpec {
    type Err = LinkError;

    /// Reads `rate=30mbit,delay=10ms,loss=1.5%`; fields of the uplink begin with `up.`, those of
    /// access links with `access.`.
    fn from_str(text: &str) -> Result<Self, LinkError> {
        let mut input = PathInput::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (field, value) = part
                .split_once('=')
                .ok_or_else(|| LinkError::NotAssigned { part: part.to_owned() })?;
            let (link, field) = match field.trim().split_once('.') {
                Some(("up", field)) => (&mut input.up, field),
                Some(("down", field)) => (&mut input.down, field),
                Some(("access", field)) => (&mut input.access, field),
                _ => match field.trim() {
                    "name" => {
                        input.name = value.trim().to_owned();
                        continue;
                    }
                    "bottleneck" => {
                        input.bottleneck = Some(value.trim().to_owned());
                        continue;
                    }
                    field => (&mut input.down, field),
                },
            };
            link.get_or_insert_default().set(field, value)?;
        }
        if input.bottleneck.is_none() {
            // What is missing is a field of the link, not the link.
            input.down.get_or_insert_default();
        }
        PathSpec::try_from(input)
    }
}

impl PathSpec {
    /// The links of its own; `None` if it has those of another path.
    pub fn own_links(&self) -> Option<&OwnLinks> {
        match &self.links {
            LinksSpec::Own(links) => Some(links),
            LinksSpec::Shared { .. } => None,
        }
    }

    /// The same, to change them.
    pub fn own_links_mut(&mut self) -> Option<&mut OwnLinks> {
        match &mut self.links {
            LinksSpec::Own(links) => Some(links),
            LinksSpec::Shared { .. } => None,
        }
    }

    /// Checks all links that it has itself.
    ///
    /// # Errors
    /// The first value that makes no link.
    pub fn validate(&self) -> Result<(), LinkError> {
        let own = self.own_links().into_iter();
        let links = own.flat_map(|links| [("down", &links.down), ("up", &links.up)]);
        for (place, link) in links.chain(self.access.iter().map(|access| ("access", access))) {
            link.validate().map_err(|error| LinkError::Invalid(format!("{place}: {error}")))?;
        }
        Ok(())
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
        };
        if let Some(access) = &self.access {
            text.push_str(" access ");
            text.push_str(&access.summary());
        }
        text
    }

    /// The delays of the access links that a datagram takes in one direction, together.
    pub(crate) fn access_delay(&self) -> Duration {
        self.access.as_ref().map_or(Duration::ZERO, |access| access.delay.saturating_mul(2))
    }
}

impl Network {
    /// The network that `--link` options describe; paths without a name are called `path0`, …
    pub fn from_links(mut paths: Vec<PathSpec>) -> Network {
        for (index, path) in paths.iter_mut().enumerate() {
            if path.name.is_empty() {
                path.name = format!("path{index}");
            }
        }
        let parts = paths.iter().map(|path| match &path.links {
            LinksSpec::Own(links) => links.down.rate.print(),
            LinksSpec::Shared { bottleneck } => format!("over-{bottleneck}"),
        });
        let name = parts.collect::<Vec<_>>().join("+");
        Network { name, about: "from the command line".to_owned(), paths }
    }

    /// True if chance decides anything on any link.
    pub fn is_random(&self) -> bool {
        self.paths.iter().any(|path| {
            let own = path.own_links().into_iter().flat_map(|links| [&links.down, &links.up]);
            own.chain(&path.access).any(LinkSpec::is_random)
        })
    }

    /// The path whose links path `index` has between its access links: itself, or the one that it
    /// names as its bottleneck, which may name another one.
    ///
    /// # Errors
    /// If a path names none of those before it, or several.
    pub fn bottleneck(&self, index: usize) -> Result<usize, LinkError> {
        let mut at = index;
        while let Some(PathSpec { links: LinksSpec::Shared { bottleneck }, .. }) =
            self.paths.get(at)
        {
            let earlier = self.paths.iter().enumerate().take(at);
            let mut found = earlier.filter(|(_, path)| path.name == *bottleneck);
            at = match (found.next(), found.next()) {
                // Each is before the last, so that this ends.
                (Some((position, _)), None) => position,
                (Some(_), Some(_)) => {
                    let expected = "one earlier path of that name, there are several";
                    let text = format!("bottleneck is {bottleneck}; expected {expected}");
                    return Err(LinkError::Invalid(text));
                }
                (None, _) => return Err(self.no_bottleneck(at, bottleneck)),
            };
        }
        Ok(at)
    }

    fn no_bottleneck(&self, path: usize, bottleneck: &str) -> LinkError {
        let names = || self.paths.iter().take(path).map(|path| path.name.as_str());
        let known = match path {
            0 => "there is none before this one".to_owned(),
            _ => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
        };
        let suggestion = suggestion(bottleneck, names());
        LinkError::Invalid(format!(
            "bottleneck is {bottleneck}; expected the name of an earlier path{suggestion}; {known}"
        ))
    }

    /// The round trip of path `index` without queues and transmission: all its links' delays.
    ///
    /// # Errors
    /// As [`Network::bottleneck`].
    pub fn round_trip(&self, index: usize) -> Result<Duration, LinkError> {
        let at = |index: usize| self.paths.get(index);
        let access = at(index).map_or(Duration::ZERO, |path| path.access_delay().saturating_mul(2));
        let links = at(self.bottleneck(index)?).and_then(PathSpec::own_links);
        Ok(links.map_or(access, |links| links.down.delay + links.up.delay + access))
    }
}

#[cfg(test)]
mod tests;
