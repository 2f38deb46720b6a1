//! Paths as a scenario writes them, and networks of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use quipu_base::{Duration, Seed};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::choice::Direction;
use super::error::{LinkError, ScenarioError};
use super::field_path::joined;
use super::form::text::NAME;
use super::form::{FieldType, Kind, table};
use super::limits::MOST_PATHS;
use super::link::{LinkSpec, PartialLink};
use super::network_name::NetworkName;
use super::partial::PartialUplink;
use super::radio::RadioSpec;
use super::recorded::drawn_start;
use quipu_record::suggestion;

table! {
    /// A way between client and server. Mostly it has two links of its own, one for each direction. With
    /// `access` it is a dumbbell: in each direction a link of the sender, the path's own, and a link of
    /// the receiver. Every pair of a client and a server has access links of its own, while the path's own
    /// link is there once for all pairs. With `bottleneck` a path leads over the links of an earlier path,
    /// whose queues it shares. On the server's side of all that, `via` names links of the network; on the
    /// client's side, `radio` an access point.
    #[derive(Default)]
    struct PathForm as "Path" needs [down bottleneck] {
        /// What it is called in tables, such as `wifi`.
        name: String [text NAME],
        /// The access point between the path's links and the client.
        radio: Option<String> [text NAME] => "the client is at the links",
        /// Links of the network between the server and the path's own, in order from the server on.
        via: Vec<String> [text NAME] => "none",
        /// From the server to the client.
        down: Option<PartialLink> => "none beside a `bottleneck`",
        /// From the client to the server. What is not given is the downlink's.
        up: Option<PartialUplink> => "as `down`",
        /// Name of an earlier path of the network, whose links this path leads over instead of links of
        /// its own.
        bottleneck: Option<String> [text NAME] => "none",
        /// Each of the links between a host and the shared ones: the client's and the server's, in both
        /// directions.
        access: Option<PartialLink> => "the hosts are at the shared links",
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
    /// The access point on the client's side, if any; see [`RadioSpec`].
    pub radio: Option<String>,
    /// Names of the network's links on the server's side, from the server on.
    pub via: Vec<String>,
    /// What all pairs of hosts share.
    pub links: LinksSpec,
    /// The links between the hosts and the shared ones, if they are not there themselves: four for each
    /// pair, all of this kind.
    pub access: Option<LinkSpec>,
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
}

/// Both directions of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnLinks {
    /// From the server to the client.
    pub down: LinkSpec,
    /// From the client to the server. What is not given is the downlink's.
    pub up: LinkSpec,
}

table! {
    /// Links that paths lead over which name them in `via`.
    struct SharedLinksForm as "Shared links" {
        /// What paths call them.
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
        /// What it is called in tables, such as `wifi+lte`.
        pub name: String [text NAME],
        /// One line on what it stands for and where it comes from.
        pub about: String = String::new(),
        /// Links that paths may lead over by name: see `via`.
        pub links: Vec<SharedLinks> => "none",
        /// The paths; the first carries the handshake.
        pub paths: Vec<PathSpec> [1..=MOST_PATHS],
        /// What paths over the radio need.
        pub radio: Option<RadioSpec> => "none",
    }
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

in_form! {
    PathSpec as PathForm,
    SharedLinks as SharedLinksForm,
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
                LinksSpec::Own(_) => None,
                LinksSpec::Shared { bottleneck } => Some(bottleneck.clone()),
            },
            access: path.access.as_ref().map(LinkSpec::written),
        }
    }
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

impl OwnLinks {
    fn complete(down: PartialLink, up: Option<PartialUplink>) -> Result<Self, LinkError> {
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
    fn check(&self, path: &str, problems: &mut Vec<ScenarioError>) {
        for (link, spec) in [("down", &self.down), ("up", &self.up)] {
            spec.check_fields(&joined(path, link), problems);
        }
    }

    fn validate(&self) -> Result<(), LinkError> {
        [("down", &self.down), ("up", &self.up)].into_iter().try_for_each(|(link, spec)| {
            spec.validate().map_err(|source| LinkError::Of { link, source: Box::new(source) })
        })
    }
}

impl TryFrom<PathForm> for PathSpec {
    type Error = LinkError;

    fn try_from(input: PathForm) -> Result<Self, LinkError> {
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
        Ok(PathSpec { name: input.name, radio: input.radio, via: input.via, links, access })
    }
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

    /// The delays of the access links that a datagram takes in one direction, together.
    pub fn access_delay(&self) -> Duration {
        let one = self.access.as_ref().map_or(Duration::ZERO, LinkSpec::usual_delay);
        one.saturating_mul(2)
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
        });
        let name = parts.collect::<Vec<_>>().join("+");
        let about = "from the command line".to_owned();
        Network { name, about, links: Vec::new(), paths, radio: None }
    }

    /// True if chance decides anything on any link.
    pub fn is_random(&self) -> bool {
        self.paths.iter().any(|path| path.radio.is_some())
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
                LinksSpec::Shared { .. } => None,
            };
            own.into_iter().flatten().chain(&mut path.access)
        });
        let of_network = self.links.iter_mut();
        of_paths.chain(of_network.flat_map(|shared| [&mut shared.links.down, &mut shared.links.up]))
    }

    /// Makes names of files with recordings count from the folder of `file`, which describes the
    /// network.
    pub(super) fn count_from(&mut self, file: &Path) {
        let folder = file.parent().unwrap_or(Path::new(""));
        let traces = self.links_mut().flat_map(LinkSpec::traces_mut);
        traces.for_each(|trace| trace.count_from(folder));
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
        let further = |direction| self.further_delay(index, direction);
        let further = further(Direction::Down) + further(Direction::Up);
        let links = self.paths.get(self.bottleneck(index)?).and_then(PathSpec::own_links);
        Ok(links
            .map_or(further, |links| links.down.usual_delay() + links.up.usual_delay() + further))
    }
}

#[cfg(test)]
mod tests;
