//! What a registry knows of a policy, and what building one gives.

use std::fmt;

use quipu_base::{Random, Role, Seed};

use super::error::BuildError;
use super::layer::Layer;
use super::param::{Param, Value, Values};
use crate::ack::AckPolicy;
use crate::congestion::ControllerFactory;
use crate::joint::Joint;
use crate::path::PathPolicy;
use crate::reinject::{Reinject, ResendRules};
use crate::stream::{Pack, StreamPolicy};

/// How sure we are that a policy does what its source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Mostly our reconstruction.
    Low,
    /// Between low and medium.
    MediumLow,
    /// The source leaves parts open.
    Medium,
    /// Between medium and high.
    MediumHigh,
    /// Stated in a standard, or read in code.
    High,
}

/// Makes a policy from the values of its parameters. Written as `&|values, context| …`, which lives as long as the
/// program does; one that is made at run time, of a language beside Rust, is leaked.
pub type Build =
    &'static (dyn Fn(&Values, &mut BuildContext) -> Result<Built, BuildError> + Send + Sync);

/// A policy that can be chosen by name.
#[derive(Clone)]
pub struct Entry {
    /// Its name in text: lower-case letters, digits, `-`, `_`.
    pub name: &'static str,
    /// The layer in which it is chosen.
    pub layer: Layer,
    /// One line: what it does.
    pub about: &'static str,
    /// How it decides, in formulas, in lines of at most 116 signs; where there is none, why. What
    /// `quipu schedulers NAME` prints.
    ///
    /// Symbols as in the sources: `f` and `s` the fast and the slow path, `j` any path, `rtt` smoothed
    /// round-trip times, `owd` one-way delays, `L` and `mss` bytes of a packet, `w` weights.
    pub formula: &'static str,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Where it is from: a standard, a paper, code that was read, or "our choice".
    pub source: &'static str,
    /// How sure we are of it.
    pub confidence: Confidence,
    /// Makes one; called once per connection.
    pub build: Build,
}

/// What a policy may use when it is built.
#[derive(Clone, Debug)]
pub struct BuildContext {
    /// The seed of the connection end that the policy will serve.
    pub seed: Seed,
    /// Which end that is; `None` if it is not known, or the policy is made to see whether it can be.
    pub role: Option<Role>,
    /// Initial congestion window in packets.
    pub initial_window: u32,
    /// How lost bytes go again; for joint policies that serve them.
    pub resend: ResendRules,
    /// How many streams share a packet; for joint policies that fill packets.
    pub pack: Pack,
}

/// What one name brought. Mostly one part; a path policy may bring its own copies, a stream policy
/// its own way to fill packets.
#[derive(Default)]
pub struct Built {
    /// Orders streams.
    pub stream: Option<Box<dyn StreamPolicy>>,
    /// Picks paths.
    pub path: Option<Box<dyn PathPolicy>>,
    /// Does both.
    pub joint: Option<Box<dyn Joint>>,
    /// Makes copies.
    pub reinject: Option<Box<dyn Reinject>>,
    /// Routes acknowledgements.
    pub ack: Option<Box<dyn AckPolicy>>,
    /// Makes controllers.
    pub controller: Option<ControllerFactory>,
    /// How many streams share a packet.
    pub pack: Option<Pack>,
    /// How lost bytes go again.
    pub resend: Option<ResendRules>,
    /// True if a stream policy asks that lost bytes go before all fresh ones.
    pub lost_first: bool,
}

impl Entry {
    /// True if it is made of a file, and there is none by default: its name alone chooses nothing, and it is none of
    /// `all`.
    pub fn needs_file(&self) -> bool {
        self.params.iter().any(|param| param.default == Value::File(None))
    }
}

impl BuildContext {
    /// The context of a connection end with that seed, everything else at its default: a window of
    /// 10 packets, as RFC 9002 recommends.
    /// <https://www.rfc-editor.org/rfc/rfc9002#section-7.2>
    pub fn new(seed: Seed) -> Self {
        BuildContext {
            seed,
            role: None,
            initial_window: 10,
            resend: ResendRules::default(),
            pack: Pack::default(),
        }
    }

    /// The random stream of the policy of that name: the same numbers for the same run and end of a
    /// connection, whatever else draws and on however many threads runs go.
    ///
    /// Draw when the policy is built and in `on_event`, keep what was drawn, and read it in answers:
    /// a question may come twice and must get the same answer.
    ///
    /// ```
    /// use quipu_base::{Rng, Seed, uniform};
    /// use quipu_policy::BuildContext;
    /// let mut random = BuildContext::new(Seed::new(1)).random("lottery");
    /// let (ticket, share) = (random.next_u64(), uniform(&mut random));
    /// assert!(ticket != 0 && share < 1.0);
    /// ```
    pub fn random(&self, policy: &str) -> Random {
        self.seed.stream(policy, 0)
    }
}

impl Built {
    /// A stream policy.
    pub fn stream(policy: impl StreamPolicy + 'static) -> Self {
        Built { stream: Some(Box::new(policy)), ..Built::default() }
    }

    /// A path policy.
    pub fn path(policy: impl PathPolicy + 'static) -> Self {
        Built { path: Some(Box::new(policy)), ..Built::default() }
    }

    /// A joint policy.
    pub fn joint(policy: impl Joint + 'static) -> Self {
        Built { joint: Some(Box::new(policy)), ..Built::default() }
    }

    /// A reinjection policy.
    pub fn reinject(policy: impl Reinject + 'static) -> Self {
        Built { reinject: Some(Box::new(policy)), ..Built::default() }
    }

    /// An acknowledgement policy.
    pub fn ack(policy: impl AckPolicy + 'static) -> Self {
        Built { ack: Some(Box::new(policy)), ..Built::default() }
    }

    /// A maker of controllers.
    pub fn controller(factory: ControllerFactory) -> Self {
        Built { controller: Some(factory), ..Built::default() }
    }

    /// The same with copies.
    #[must_use]
    pub fn with_reinject(mut self, policy: impl Reinject + 'static) -> Self {
        self.reinject = Some(Box::new(policy));
        self
    }

    /// The same with a way to fill packets.
    #[must_use]
    pub fn with_pack(mut self, pack: Pack) -> Self {
        self.pack = Some(pack);
        self
    }

    /// Rules for lost bytes.
    pub fn resend(rules: ResendRules) -> Self {
        Built { resend: Some(rules), ..Built::default() }
    }

    /// The same, asking that lost bytes go before all fresh ones.
    #[must_use]
    pub fn with_lost_first(mut self) -> Self {
        self.lost_first = true;
        self
    }

    /// True if it has a part of that layer.
    pub fn has(&self, layer: Layer) -> bool {
        match layer {
            Layer::Stream => self.stream.is_some(),
            Layer::Path => self.path.is_some(),
            Layer::Joint => self.joint.is_some(),
            Layer::Pack => self.pack.is_some(),
            Layer::Resend => self.resend.is_some(),
            Layer::Reinject => self.reinject.is_some(),
            Layer::Ack => self.ack.is_some(),
            Layer::Congestion => self.controller.is_some(),
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("name", &self.name)
            .field("layer", &self.layer)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Confidence::Low => "low",
            Confidence::MediumLow => "medium-low",
            Confidence::Medium => "medium",
            Confidence::MediumHigh => "medium-high",
            Confidence::High => "high",
        })
    }
}
