//! Networks as a scenario writes them: paths, and the links that they share.

mod alone;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use quipu_base::{Duration, Seed};
use quipu_link::Columns;
use quipu_record::suggestion;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::choice::Direction;
use super::error::{LinkError, ScenarioError};
use super::form::text::NAME;
use super::form::{FieldType, Kind, table};
use super::input::Inputs;
use super::limits::MOST_PATHS;
use super::link::{LinkSpec, PartialLink};
use super::network_name::NetworkName;
use super::partial::PartialUplink;
use super::path::{LinksSpec, OwnLinks, PathSpec, in_form};
use super::radio::RadioSpec;
use super::recorded::{TraceSpec, drawn_start};

table! {
    /// Links that paths lead over which name them in `via`.
    struct SharedLinksForm as "Shared links" {
        /// The name by which paths refer to them.
        name: String [text NAME],
        /// Towards the client.
        down: PartialLink,
        /// Towards the server. What is not given is the downlink's.
        up: Option<PartialUplink> => "as `down`",
    }
}

/// Links that several paths may lead over.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedLinks {
    /// What paths call them.
    pub name: String,
    /// Both directions.
    pub links: OwnLinks,
}

table! {
    /// The paths between client and server.
    pub struct Network as "Network" or NetworkName {
        /// Its name in tables, such as `wifi+lte`.
        pub name: String [text NAME],
        /// One line on what it stands for and where it comes from.
        pub about: String = String::new(),
        /// URL of the server of a real network, each of whose paths has an `uplink`. Nothing else is known of it: it
        /// stands beside results of `quipu compare --live`, and is not simulated.
        pub server: Option<String> [text NAME] => "the network is modelled",
        /// Links that paths may lead over by name: see `via`.
        pub links: Vec<SharedLinks> => "none",
        /// The paths; the first carries the handshake.
        pub paths: Vec<PathSpec> [1..=MOST_PATHS],
        /// The radio channel, for paths with an access point.
        pub radio: Option<RadioSpec> => "none",
    }
}

in_form! {
    SharedLinks as SharedLinksForm,
}

impl From<&SharedLinks> for SharedLinksForm {
    fn from(shared: &SharedLinks) -> Self {
        SharedLinksForm {
            name: shared.name.clone(),
            down: shared.links.down.written(),
            up: Some(PartialUplink(shared.links.up.written())),
        }
    }
}

impl SharedLinks {
    fn check_links(&self, path: &str, problems: &mut Vec<ScenarioError>) {
        self.links.check(path, problems);
    }
}

impl TryFrom<SharedLinksForm> for SharedLinks {
    type Error = LinkError;

    fn try_from(input: SharedLinksForm) -> Result<Self, LinkError> {
        Ok(SharedLinks { name: input.name, links: OwnLinks::complete(input.down, input.up)? })
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
            LinksSpec::Own(links) => links.down.name(),
            LinksSpec::Shared { bottleneck } => format!("over-{bottleneck}"),
            LinksSpec::Real { uplink } => uplink.clone(),
        });
        let name = parts.collect::<Vec<_>>().join("+");
        let about = "from the command line".to_owned();
        Network { name, about, server: None, links: Vec::new(), paths, radio: None }
    }

    /// The real network between this host and the server at that URL, over those uplinks: interfaces, or addresses of
    /// them.
    pub fn real(server: String, uplinks: impl IntoIterator<Item = String>) -> Network {
        Network {
            name: "live".to_owned(),
            about: "real uplinks of this host".to_owned(),
            server: Some(server),
            links: Vec::new(),
            paths: uplinks.into_iter().map(PathSpec::over).collect(),
            radio: None,
        }
    }

    /// True if chance decides anything on any link, or the network is a real one.
    pub fn is_random(&self) -> bool {
        self.server.is_some()
            || self.paths.iter().any(|path| path.radio.is_some())
            || self.all_links().any(LinkSpec::is_random)
    }

    /// All links that a path has itself, and then those that paths name.
    pub fn all_links(&self) -> impl Iterator<Item = &LinkSpec> {
        let of_paths = self.paths.iter().flat_map(|path| {
            let own = path.own_links().into_iter().flat_map(|links| [&links.down, &links.up]);
            own.chain(&path.access)
        });
        of_paths.chain(self.links.iter().flat_map(|shared| [&shared.links.down, &shared.links.up]))
    }

    fn links_mut(&mut self) -> impl Iterator<Item = &mut LinkSpec> {
        let of_paths = self.paths.iter_mut().flat_map(|path| {
            let own = match &mut path.links {
                LinksSpec::Own(links) => Some([&mut links.down, &mut links.up]),
                LinksSpec::Shared { .. } | LinksSpec::Real { .. } => None,
            };
            own.into_iter().flatten().chain(&mut path.access)
        });
        let of_network = self.links.iter_mut();
        of_paths.chain(of_network.flat_map(|shared| [&mut shared.links.down, &mut shared.links.up]))
    }

    /// Makes names of files with recordings count from `folder`.
    pub(super) fn count_from(&mut self, folder: &Path) {
        let traces = self.links_mut().flat_map(LinkSpec::traces_mut);
        traces.for_each(|trace| trace.count_from(folder));
    }

    /// Remembers the contents of its files, so that a change is noticed.
    pub(super) fn pin(&mut self) {
        self.links_mut().flat_map(LinkSpec::traces_mut).for_each(TraceSpec::pin);
    }

    /// The network with the copies that `inputs` has of its files in their place.
    #[must_use]
    pub(super) fn with_inputs(mut self, inputs: &mut Inputs) -> Network {
        self.links_mut().flat_map(LinkSpec::traces_mut).for_each(|trace| trace.keep(inputs));
        self
    }

    /// The network as it is written wherever its files are: with the names that their copies have beside a
    /// result of this network alone.
    #[must_use]
    pub fn portable(&self) -> Network {
        self.clone().with_inputs(&mut Inputs::default())
    }

    /// Names the columns of recordings in CSV files, where a link has no name for them yet; true if there is such a
    /// link.
    pub fn name_columns(&mut self, columns: &Columns) -> bool {
        let before = self.clone();
        let shared = self.links.iter_mut().map(|shared| &mut shared.links);
        let own = self.paths.iter_mut().filter_map(PathSpec::own_links_mut);
        for links in shared.chain(own) {
            links.down.name_columns(columns, Direction::Down);
            links.up.name_columns(columns, Direction::Up);
        }
        for access in self.paths.iter_mut().filter_map(|path| path.access.as_mut()) {
            access.name_columns(columns, Direction::Down);
        }
        *self != before
    }

    /// The network as it is in the run with the seed `run`: where recordings begin at a time to be
    /// drawn, it is drawn.
    ///
    /// All links that follow recordings of one group begin at one time of them, whole milliseconds
    /// evenly spread over the shortest of their recordings (those of the rates, where there are
    /// some). Groups have the same place on that scale: one in the middle of its recordings means
    /// all are.
    pub fn for_run(&self, run: Seed) -> Cow<'_, Network> {
        let mut groups: BTreeMap<String, Duration> = BTreeMap::new();
        for (group, length) in self.all_links().filter_map(LinkSpec::draws_from) {
            let shortest = groups.entry(group).or_insert(length);
            *shortest = length.min(*shortest);
        }
        if groups.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut network = self.clone();
        for link in network.links_mut() {
            let drawn = link.draws_from().and_then(|(group, _)| groups.get(&group));
            if let Some(length) = drawn {
                link.from = Some(drawn_start(run, *length));
            }
        }
        Cow::Owned(network)
    }

    /// The shared links that `path` leads over, in its order. Names that nothing has are left out.
    fn links_of<'a>(&'a self, path: &'a PathSpec) -> impl Iterator<Item = &'a SharedLinks> {
        path.via.iter().filter_map(|name| self.links.iter().find(|shared| shared.name == *name))
    }

    /// The places of the shared links that path `index` leads over, in order from the server on.
    ///
    /// # Errors
    /// If it names links that are not there, or the same ones twice.
    pub fn via(&self, index: usize) -> Result<Vec<usize>, LinkError> {
        let mut via: Vec<usize> = Vec::new();
        for name in self.paths.get(index).map_or(&[][..], |path| &path.via) {
            let found = self.links.iter().position(|shared| shared.name == *name);
            let place = found.ok_or_else(|| {
                let names = || self.links.iter().map(|shared| shared.name.as_str());
                let known = names().collect::<Vec<_>>().join(", ");
                let known = if known.is_empty() { "there are none".to_owned() } else { known };
                let suggestion = suggestion(name, names());
                LinkError::Invalid(format!(
                    "via has {name}; expected names of the network's `links`{suggestion}; there are: \
                     {known}"
                ))
            })?;
            if via.contains(&place) {
                let expected = "each of the network's `links` at most once";
                return Err(LinkError::Invalid(format!(
                    "via has {name} twice; expected {expected}"
                )));
            }
            via.push(place);
        }
        Ok(via)
    }

    /// Checks the links that paths share by name, and the radio.
    ///
    /// # Errors
    /// The first value or name that is wrong, with the place where it is.
    pub(super) fn validate_shared(&self) -> Result<(), (String, LinkError)> {
        for (index, shared) in self.links.iter().enumerate() {
            let place = || format!("links[{index}]");
            shared.links.validate().map_err(|error| (place(), error))?;
            if self.links[..index].iter().any(|earlier| earlier.name == shared.name) {
                let text = "expected a name of their own, there are two".to_owned();
                return Err((place(), LinkError::Invalid(text)));
            }
        }
        match &self.radio {
            Some(radio) => radio.validate().map_err(|error| ("radio".to_owned(), error)),
            None => Ok(()),
        }
    }

    /// Checks that path `index` leads over links and access points that are there.
    ///
    /// # Errors
    /// The first that is not, with the field of the path that names it.
    pub(super) fn validate_hops(&self, index: usize) -> Result<(), (&'static str, LinkError)> {
        self.bottleneck(index).map_err(|error| ("bottleneck", error))?;
        self.via(index).map_err(|error| ("via", error))?;
        let radio = match (self.paths.get(index).and_then(|path| path.radio.as_ref()), &self.radio)
        {
            (None, _) => Ok(()),
            (Some(name), Some(radio)) => radio.access_point(name).map(|_| ()),
            (Some(name), None) => {
                let expected = "a table `radio` of the network with access points and stations";
                Err(LinkError::Invalid(format!("radio is {name}; expected {expected}")))
            }
        };
        radio.map_err(|error| ("radio", error))
    }

    /// The delays that a datagram on path `index` meets in one direction beside that of the links
    /// which all pairs of hosts share: those of access links, and of the links that it names.
    pub fn further_delay(&self, index: usize, direction: Direction) -> Duration {
        let Some(path) = self.paths.get(index) else { return Duration::ZERO };
        let via = self.links_of(path).map(|shared| shared.links.of(direction).usual_delay());
        via.fold(path.access_delay(), |sum, delay| sum + delay)
    }

    /// All delays of path `index` in one direction, without queues and transmission; none where it names no bottleneck
    /// that there is.
    pub fn one_way(&self, index: usize, direction: Direction) -> Duration {
        let owner = self.bottleneck(index).ok().and_then(|owner| self.paths.get(owner));
        let own = owner.and_then(PathSpec::own_links);
        own.map_or(Duration::ZERO, |links| links.of(direction).usual_delay())
            + self.further_delay(index, direction)
    }

    /// The longest [`Network::one_way`] of the paths that use a link: what its queue is measured by.
    pub fn longest_way(&self, direction: Direction, uses: impl Fn(usize) -> bool) -> Duration {
        let users = (0..self.paths.len()).filter(|index| uses(*index));
        users.map(|index| self.one_way(index, direction)).max().unwrap_or_default()
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
    /// As [`Network::bottleneck`]; of a real path it is not known.
    pub fn round_trip(&self, index: usize) -> Result<Duration, LinkError> {
        let owner = self.bottleneck(index)?;
        if let Some(uplink) = self.paths.get(owner).and_then(PathSpec::uplink) {
            return Err(LinkError::Invalid(format!("uplink is {uplink}; expected modelled links")));
        }
        Ok(self.one_way(index, Direction::Down) + self.one_way(index, Direction::Up))
    }
}

#[cfg(test)]
mod tests;
