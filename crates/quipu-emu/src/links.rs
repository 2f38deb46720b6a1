//! The links of an emulation: what they are, and how the thread that carries makes them.

use std::error::Error;
use std::fmt;

use quipu_base::{Bytes, Duration, Seed};
use quipu_link::{AnyLink, InvalidConfig, LinkConfig};

/// A link of an emulation: one direction, by its position among the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

/// The links of one run of an emulation.
///
/// They are made on the thread that carries, since a link is of one thread: either from configurations, or by a function
/// that has all kinds of links, as that of a scenario.
pub struct Links {
    all: Vec<Described>,
    maker: Maker,
}

/// What is known of a link before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// What reports call it.
    pub name: String,
    /// Its shortest delay, without jitter.
    pub least_delay: Duration,
}

/// Why links cannot be made.
pub type MakeError = Box<dyn Error + Send + Sync>;

enum Maker {
    Configs(Seed, Vec<LinkConfig>),
    Function(Box<dyn FnOnce() -> Result<Vec<AnyLink>, MakeError> + Send>),
}

impl LinkId {
    /// The link at a position, from zero.
    pub const fn new(index: u32) -> Self {
        LinkId(index)
    }

    /// Position among the links of the emulation, from zero.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Links {
    /// The most links of an emulation. Our choice.
    pub const MOST: usize = 10_000;

    /// No links yet. Link `i` will draw from `seed.child("link", i)`, as the i-th link of a simulated world with that
    /// seed does.
    pub fn new(seed: Seed) -> Self {
        Links { all: Vec::new(), maker: Maker::Configs(seed, Vec::new()) }
    }

    /// The links that `make` makes, of which `all` tells: as many, in that order. It is called on the thread that
    /// carries. What packets take on a link is to be their length, so the links' [overhead](LinkConfig::overhead) must
    /// be zero.
    pub fn made_by(
        all: Vec<Described>,
        make: impl FnOnce() -> Result<Vec<AnyLink>, MakeError> + Send + 'static,
    ) -> Self {
        Links { all, maker: Maker::Function(Box::new(make)) }
    }

    /// Adds a link, which reports call `name`. What packets take on it is their length: the headers of IP and
    /// UDP are in them, so [`LinkConfig::overhead`] counts for nothing.
    ///
    /// # Errors
    /// If `config` makes no link, if there are [`Links::MOST`] already, or if a function makes these links.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        config: &LinkConfig,
    ) -> Result<LinkId, InvalidConfig> {
        config.validate()?;
        let index = self.all.len();
        let invalid = |expected| {
            let value = (index + 1).to_string();
            Err(InvalidConfig { field: "links", value, expected })
        };
        if index >= Links::MOST {
            return invalid("at most 10000");
        }
        let Maker::Configs(_, configs) = &mut self.maker else {
            return invalid("those that a function makes");
        };
        configs.push(LinkConfig { overhead: Bytes::ZERO, ..config.clone() });
        self.all.push(Described { name: name.into(), least_delay: config.least_delay() });
        Ok(LinkId(index as u32))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|link| link.name.as_str())
    }

    /// The shortest delay of `link`, without jitter.
    pub(crate) fn least_delay(&self, link: LinkId) -> Duration {
        self.all.get(link.index()).map_or(Duration::ZERO, |link| link.least_delay)
    }

    /// Makes them, on the thread that calls this.
    ///
    /// # Errors
    /// Those of the function; and if there are not as many as were described.
    pub(crate) fn make(self) -> Result<Vec<AnyLink>, MakeError> {
        let links = match self.maker {
            Maker::Function(make) => make()?,
            Maker::Configs(seed, configs) => {
                let link = |(index, config)| AnyLink::new(config, seed.child("link", index));
                (0u64..).zip(&configs).map(link).collect::<Result<_, InvalidConfig>>()?
            }
        };
        let (made, described) = (links.len(), self.all.len());
        if made != described {
            let message =
                format!("{made} links were made, expected the {described} that were described");
            return Err(message.into());
        }
        Ok(links)
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.all).finish()
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::{Instant, Rate};
    use quipu_link::{Answer, Aqm, CoDel, FlowKey, Verdict, ecn};

    use super::*;

    fn config() -> LinkConfig {
        LinkConfig::new(Rate::from_mbit_per_sec(12), Duration::from_millis(5))
    }

    fn offer_to(link: &mut AnyLink) -> Answer {
        link.offer(Instant::ZERO, Bytes(1_500), ecn::NOT_ECT, FlowKey::default())
    }

    #[test]
    fn a_packet_takes_its_length_on_a_link() {
        let mut links = Links::new(Seed::new(1));
        links.add("up", &config()).unwrap();
        let Answer::Decided(verdict) = offer_to(&mut links.make().unwrap()[0]) else { panic!() };
        assert_eq!(verdict, Verdict::deliver(Instant::from_nanos(6_000_000)));
    }

    #[test]
    fn a_managed_queue_makes_a_managed_link() {
        let mut links = Links::new(Seed::new(1));
        links.add("up", &config().with_aqm(Aqm::CoDel(CoDel::default()))).unwrap();
        assert!(matches!(offer_to(&mut links.make().unwrap()[0]), Answer::Waits(_)));
    }

    #[test]
    fn a_config_that_makes_no_link_is_refused_at_once() {
        let mut links = Links::new(Seed::new(1));
        let error = links.add("up", &config().with_loss(2.0)).unwrap_err();
        assert_eq!(error.field, "loss");
        assert!(links.is_empty());
    }

    #[test]
    fn a_function_makes_the_links_that_it_described() {
        let described = |count| {
            let described = Described { name: "up".to_owned(), least_delay: Duration::ZERO };
            vec![described; count]
        };
        let make = || Ok(vec![AnyLink::new(&config(), Seed::new(1))?]);
        assert_eq!(Links::made_by(described(1), make).make().unwrap().len(), 1);
        let error = Links::made_by(described(2), make).make().unwrap_err();
        assert_eq!(error.to_string(), "1 links were made, expected the 2 that were described");
        let failing = || Err("no radio".into());
        let error = Links::made_by(described(1), failing).make().unwrap_err();
        assert_eq!(error.to_string(), "no radio");
        let error = Links::made_by(described(1), make).add("more", &config()).unwrap_err();
        assert_eq!(error.field, "links");
    }
}
