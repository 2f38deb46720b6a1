//! Radio as a scenario writes it: access points, stations that move, and what lies between.

use quipu_base::{Bytes, Duration, Instant, Rate, Seed};
use quipu_link::radio::{
    AccessPoint, Area, Channel, Medium, Motion, PathLoss, PhyRate, Position, Reach, Shadowing,
    Station, Timing, Waypoint,
};
use quipu_link::{InvalidConfig, LinkConfig, QueueLimit};
use quipu_record::suggestion;

use super::RadioTiming;
use super::error::LinkError;
use super::form::table;
use super::form::text::NAME;
use super::link::over;

/// Access points that a network may have.
const MOST_ACCESS_POINTS: usize = 64;
/// Stations that a network may have.
const MOST_STATIONS: usize = 1_000;

table! {
    /// Wi-Fi of a network: 802.11a. A path leads over it if it names one of the access points. Access
    /// points on one channel, and all their stations, share its airtime in both directions. The client of
    /// the page is the first station, those of flows and cross traffic are the next ones in order; clients
    /// without a station of their own are where the last one is.
    ///
    /// The model is that of [`quipu_link::radio`].
    ///
    /// ```
    /// use quipu_scenario::Network;
    ///
    /// let network: Network = toml::from_str(
    ///     r#"
    ///     name = "office"
    ///     links = [{ name = "server", down = { rate = "300mbit", delay = "0ms" } }]
    ///     paths = [
    ///         { name = "wifi", radio = "desk", via = ["server"], down = { rate = "55mbit", delay = "15ms" } },
    ///     ]
    ///     [radio]
    ///     propagation = { exponent = 3, shadowing = { deviation = 4, distance = 10 } }
    ///     access_points = [{ name = "desk", position = [55, 50], channel = 40 }]
    ///     stations = [{ position = [50, 70], walk = [{ to = [0, 70], speed = 1.5 }] }]
    ///     "#,
    /// )?;
    /// assert_eq!(network.paths[0].summary(), "wifi 55mbit 15ms via server radio desk");
    /// assert_eq!(network.radio.map(|radio| radio.stations.len()), Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct RadioSpec as "Radio" {
        /// How airtime is counted: as in the standard, or as wmediumd counts it.
        pub timing: RadioTiming = RadioTiming::Standard,
        /// Drop-tail queue of each sender for each other end. `default`: that of a link with 54 Mb/s and
        /// the round trip of the path.
        pub queue: QueueLimit = QueueLimit::default(),
        /// How signals propagate.
        pub propagation: PropagationSpec = PropagationSpec::default(),
        /// The access points.
        pub access_points: Vec<AccessPointSpec> [1..=MOST_ACCESS_POINTS],
        /// The stations.
        pub stations: Vec<StationSpec> [1..=MOST_STATIONS],
    }
}

/// What signals meet by default.
const USUAL: PathLoss = PathLoss::USUAL;

table! {
    /// How signals propagate: log-distance path loss with shadowing and fading.
    ///
    /// See [`PathLoss`].
    pub struct PropagationSpec as "Propagation" {
        /// Exponent of the distance.
        pub exponent: f64 [PathLoss::EXPONENTS] = USUAL.exponent,
        /// Standard deviation of the fading of each attempt in decibels.
        pub fading: f64 [PathLoss::DECIBELS] = USUAL.fading,
        /// Noise in dBm.
        pub noise: f64 [PathLoss::NOISES] = USUAL.noise,
        /// Decibels above its sensitivity that a rate must have to be chosen.
        pub margin: f64 [PathLoss::DECIBELS] = USUAL.margin,
        /// Shadows.
        pub shadowing: Option<ShadowingSpec> => "none",
    }
}

table! {
    /// Shadows, which are alike at places and times that are near each other.
    ///
    /// See [`Shadowing`].
    pub struct ShadowingSpec as "Shadowing" {
        /// Standard deviation in decibels.
        pub deviation: f64 [PathLoss::DECIBELS],
        /// Metres over which the correlation falls to 1/e.
        pub distance: f64 [Shadowing::DISTANCES],
        /// Time over which it falls to 1/e; `never`: only motion changes shadows.
        pub time: Option<Duration> [Shadowing::SHORTEST..] = None,
    }
}

table! {
    /// An access point.
    pub struct AccessPointSpec as "Access point" {
        /// What paths call it.
        pub name: String [text NAME],
        /// Metres to the east and to the north.
        pub position: [f64; 2] [Position::COORDINATES],
        /// Number of the channel.
        pub channel: u8 [among Channel::NUMBERS],
        /// Power of the transmitter in dBm.
        pub power: f64 [AccessPoint::POWERS] = usual().power,
        /// Gain of the antenna in decibels.
        pub gain: f64 [AccessPoint::GAINS] = usual().gain,
    }
}

table! {
    /// A station: at a `position`, from which it may `walk`; or at `waypoints`; or it may `wander`.
    pub struct StationSpec as "Station" needs [position waypoints wander] {
        /// Where it is, or begins to walk: metres to the east and to the north.
        pub position: Option<[f64; 2]> [Position::COORDINATES] => "none",
        /// Power of the transmitter in dBm.
        pub power: f64 [AccessPoint::POWERS] = usual().power,
        /// Gain of the antenna in decibels.
        pub gain: f64 [AccessPoint::GAINS] = usual().gain,
        /// Where it goes from its position, from the start of the run on.
        pub walk: Vec<LegSpec> => "none",
        /// Where it is at which times.
        pub waypoints: Vec<WaypointSpec> => "none",
        /// It goes to one drawn place after the other.
        pub wander: Option<WanderSpec> => "none",
    }
}

table! {
    /// A straight way.
    pub struct LegSpec as "Leg" {
        /// Its end: metres to the east and to the north.
        pub to: [f64; 2] [Position::COORDINATES],
        /// Metres per second.
        pub speed: f64 [Motion::SPEEDS],
    }
}

table! {
    /// A place at a time.
    pub struct WaypointSpec as "Waypoint" {
        /// When, from the start of the run.
        pub at: Duration,
        /// Where: metres to the east and to the north.
        pub position: [f64; 2] [Position::COORDINATES],
    }
}

table! {
    /// Random waypoints.
    ///
    /// See [`Motion::Random`].
    pub struct WanderSpec as "Wander" {
        /// Metres from west to east and from south to north, from the origin on.
        pub area: [f64; 2] [0.0..=*Position::COORDINATES.end()],
        /// The slowest and the fastest leg in metres per second.
        pub speed: [f64; 2] [Motion::SPEEDS],
    }
}

/// An access point or a station with its usual antenna.
fn usual() -> AccessPoint {
    AccessPoint::at(Position::default())
}

fn place([x, y]: [f64; 2]) -> Position {
    Position::new(x, y)
}

impl PropagationSpec {
    fn config(&self) -> PathLoss {
        let shadowing = self.shadowing.as_ref().map(|shadowing| Shadowing {
            deviation: shadowing.deviation,
            distance: shadowing.distance,
            time: shadowing.time,
        });
        let PropagationSpec { exponent, fading, noise, margin, .. } = *self;
        PathLoss { exponent, shadowing, fading, noise, margin }
    }
}

impl AccessPointSpec {
    fn config(&self) -> AccessPoint {
        AccessPoint { position: place(self.position), power: self.power, gain: self.gain }
    }

    fn channel(&self) -> Result<Channel, LinkError> {
        Channel::new(self.channel).ok_or_else(|| {
            let known = Channel::NUMBERS.map(|number| number.to_string()).join(", ");
            field("channel", self.channel, format!("one of {known}"))
        })
    }
}

impl StationSpec {
    /// How it moves.
    fn motion(&self) -> Result<Motion, LinkError> {
        let walks = !self.walk.is_empty();
        match (self.position, self.waypoints.as_slice(), &self.wander) {
            (Some(position), [], None) if walks => {
                let legs = self.walk.iter().map(|leg| (place(leg.to), leg.speed));
                Motion::at_speeds(place(position), Instant::ZERO, legs).map_err(refused)
            }
            (Some(position), [], None) => Ok(Motion::Fixed(place(position))),
            (None, waypoints @ [_, ..], None) if !walks => {
                let waypoint = |waypoint: &WaypointSpec| Waypoint {
                    at: Instant::ZERO + waypoint.at,
                    position: place(waypoint.position),
                };
                Ok(Motion::Waypoints(waypoints.iter().map(waypoint).collect()))
            }
            (None, [], Some(wander)) if !walks => Ok(Motion::Random {
                area: Area { from: Position::default(), to: place(wander.area) },
                slowest: wander.speed[0],
                fastest: wander.speed[1],
            }),
            _ => {
                let expected =
                    "either it, from which the station may walk, or waypoints, or wander";
                let found = if self.position.is_some() { "one of several" } else { "missing" };
                Err(field("position", found, expected))
            }
        }
    }

    /// A complaint about its motion, by the field that describes it.
    fn named(&self, error: LinkError) -> LinkError {
        let LinkError::Field { field: name, value, expected } = error else { return error };
        let name = match (name.as_str(), self.walk.is_empty()) {
            ("waypoints" | "speed", false) => "walk",
            ("speed", true) => "wander.speed",
            _ => &name,
        };
        field(name, value, expected)
    }

    fn config(&self, seed: Seed) -> Result<Station, LinkError> {
        let (power, gain) = (self.power, self.gain);
        Ok(Station { motion: self.motion()?, seed, power, gain })
    }
}

/// What the radio model refuses, as a field of `propagation`, of an access point or of a station.
fn refused(error: InvalidConfig) -> LinkError {
    let field = match error.field.trim_start_matches("radio.") {
        "shadowing" => "shadowing.deviation",
        "waypoints.at" | "waypoints.position" => "waypoints",
        "access_points.position" => "position",
        "area" => "wander.area",
        field => field,
    };
    LinkError::Field {
        field: field.to_owned(),
        value: error.value,
        expected: error.expected.to_owned(),
    }
}

/// The same as an error of a part.
fn within(place: &str, error: LinkError) -> LinkError {
    match error {
        LinkError::Field { field, value, expected } => {
            LinkError::Field { field: format!("{place}.{field}"), value, expected }
        }
        other => LinkError::Invalid(format!("{place}: {other}")),
    }
}

fn field(field: &str, value: impl ToString, expected: impl Into<String>) -> LinkError {
    LinkError::Field {
        field: field.to_owned(),
        value: value.to_string(),
        expected: expected.into(),
    }
}

impl RadioSpec {
    /// Checks all numbers and names.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn validate(&self) -> Result<(), LinkError> {
        let path_loss = self.propagation.config();
        path_loss.validate().map_err(|error| within("propagation", refused(error)))?;
        let reach = |point: &AccessPoint, station: &Station| {
            // Any channel will do, and nothing is drawn.
            let channel = Channel::new(Channel::NUMBERS[0]);
            let checked = channel.map(|channel| {
                Reach::new(channel, path_loss, point, station, Seed::new(0)).map_err(refused)
            });
            checked.transpose().map(|_| ())
        };
        let somewhere = Station::new(Motion::Fixed(Position::default()), Seed::new(0));
        for (index, point) in self.access_points.iter().enumerate() {
            let place = || format!("access_points[{index}]");
            point.channel().map_err(|error| within(&place(), error))?;
            reach(&point.config(), &somewhere).map_err(|error| within(&place(), error))?;
            if self.access_points[..index].iter().any(|earlier| earlier.name == point.name) {
                let error = field("name", &point.name, "a name of its own, there are two");
                return Err(within(&place(), error));
            }
        }
        let point = AccessPoint::at(Position::default());
        for (index, station) in self.stations.iter().enumerate() {
            let checked = station.config(Seed::new(0));
            checked.and_then(|station| reach(&point, &station)).map_err(|error| {
                within(&format!("stations[{index}]"), self.stations[index].named(error))
            })?;
        }
        Ok(())
    }

    /// The position of the access point of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn access_point(&self, name: &str) -> Result<usize, LinkError> {
        let found = self.access_points.iter().position(|point| point.name == name);
        found.ok_or_else(|| {
            let names = || self.access_points.iter().map(|point| point.name.as_str());
            let known = names().collect::<Vec<_>>().join(", ");
            let suggestion = suggestion(name, names());
            LinkError::Invalid(format!(
                "radio is {name}; expected the name of an access point{suggestion}; there are: {known}"
            ))
        })
    }

    /// The media of all access points in order; those on one channel are the same.
    ///
    /// # Errors
    /// As [`RadioSpec::validate`].
    pub fn media(&self) -> Result<Vec<(Medium, AccessPoint)>, LinkError> {
        let mut media: Vec<(Medium, AccessPoint)> = Vec::with_capacity(self.access_points.len());
        for point in &self.access_points {
            let channel = point.channel()?;
            let known = media.iter().find(|(medium, _)| medium.channel() == channel);
            let medium = match known {
                Some((medium, _)) => medium.clone(),
                None => {
                    let path_loss = self.propagation.config();
                    Medium::new(channel, path_loss, self.timing()).map_err(refused)?
                }
            };
            media.push((medium, point.config()));
        }
        Ok(media)
    }

    /// The station of the pair of hosts of that number, in a world of `seed`.
    ///
    /// # Errors
    /// As [`RadioSpec::validate`].
    pub fn station(&self, pair: u16, seed: Seed) -> Result<Station, LinkError> {
        let index = usize::from(pair).min(self.stations.len().saturating_sub(1));
        let seed = seed.child("radio.station", index as u64);
        match self.stations.get(index) {
            Some(station) => station.config(seed),
            None => Err(field("stations", 0, "1 to 1000 stations")),
        }
    }

    /// The seed of what is drawn for a pair of hosts on a path of the network.
    pub fn pair_seed(pair: u16, path: usize, seed: Seed) -> Seed {
        seed.child("radio.path", path as u64).child("radio.pair", u64::from(pair))
    }

    /// What a link over the radio has beside its airtime, as part of a way with that round trip.
    pub fn link(&self, overhead: Bytes, round_trip: Duration) -> LinkConfig {
        let fastest = Rate::from_mbit_per_sec(54);
        let queue = over(self.queue, round_trip);
        let with_rate = LinkConfig::new(fastest, Duration::ZERO).with_queue(queue);
        let queue = QueueLimit::Bytes(with_rate.queue_bytes());
        LinkConfig { overhead, queue, ..LinkConfig::default() }
    }

    /// What the air lets through at most in any time, wherever the hosts are and whoever else sends:
    /// bits per second of IP in packets of at most `largest` bytes.
    pub fn rate_bound(&self, largest: Bytes) -> Rate {
        PhyRate::Mbit54.payload_bound(self.timing(), largest)
    }

    fn timing(&self) -> Timing {
        match self.timing {
            RadioTiming::Standard => Timing::Standard,
            RadioTiming::Wmediumd => Timing::Wmediumd,
        }
    }
}

#[cfg(test)]
mod tests;
