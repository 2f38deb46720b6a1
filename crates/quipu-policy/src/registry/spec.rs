//! A whole choice of policies, from text to what a connection needs.

use std::fmt;

use quipu_base::Seed;

use super::entry::{BuildContext, Built};
use super::error::{BuildError, SpecError};
use super::layer::Layer;
use super::part::Part;
use super::{Registry, nearest};
use crate::ack::AckPolicy;
use crate::congestion::ControllerFactory;
use crate::joint::{Joint, Pair, Reinjecting};
use crate::reinject::{Reinject, ResendRules};

/// A choice of policies: `stream=wrr path=minrtt ack=own congestion=newreno`.
///
/// Either a stream and a path policy, or a joint one that does both; a policy for acknowledgements
/// and one for congestion control; and, if given, how many streams share a packet (`pack`), how lost
/// bytes go again (`resend`) and which are copied (`reinject`). Can be built any number of times,
/// once per connection.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySpec {
    /// In order of layer.
    parts: Vec<Part>,
}

/// What a connection needs of policies.
pub struct Policies {
    /// What goes next, on which path.
    pub joint: Box<dyn Joint>,
    /// On which path an acknowledgement returns.
    pub ack: Box<dyn AckPolicy>,
    /// Makes a congestion controller for each path.
    pub controllers: ControllerFactory,
    /// How lost bytes go again; the engine reads when a path's bytes in flight become pending.
    pub resend: ResendRules,
    /// True if the choice declares that it may copy bytes that are in flight.
    pub copies: bool,
}

/// What is chosen where nothing is given; our choice: the plainest of each layer.
const DEFAULTS: [(Layer, &str); 4] = [
    (Layer::Stream, "rr"),
    (Layer::Path, "minrtt"),
    (Layer::Ack, "own"),
    (Layer::Congestion, "newreno"),
];

impl PolicySpec {
    /// The choice where nothing is given.
    ///
    /// # Errors
    /// If the registry lacks one of the built-in policies of the default choice.
    pub fn default_of(registry: &Registry) -> Result<Self, SpecError> {
        Self::choose(registry, [])
    }

    /// Reads `layer=policy layer=policy`, in any order; what is not given has its default.
    ///
    /// # Errors
    /// See [`SpecError`].
    pub fn parse(registry: &Registry, text: &str) -> Result<Self, SpecError> {
        let mut choices = Vec::new();
        for item in text.split_whitespace() {
            let Some((layer, policy)) = item.split_once('=') else {
                return Err(SpecError::Syntax { text: item.into(), expected: "layer=policy" });
            };
            let Some(layer) = Layer::ALL.into_iter().find(|known| known.name() == layer) else {
                return Err(SpecError::UnknownLayer {
                    name: layer.into(),
                    hint: nearest(layer, Layer::ALL.iter().map(|layer| layer.name())),
                });
            };
            choices.push((layer, policy));
        }
        Self::choose(registry, choices)
    }

    /// Reads one text per layer, such as `(Layer::Path, "ecf:beta=0.25")`; what is not given has its
    /// default.
    ///
    /// # Errors
    /// See [`SpecError`].
    pub fn choose<'a>(
        registry: &Registry,
        choices: impl IntoIterator<Item = (Layer, &'a str)>,
    ) -> Result<Self, SpecError> {
        let mut parts: Vec<Part> = Vec::new();
        for (layer, text) in choices {
            if parts.iter().any(|part| part.entry().layer == layer) {
                return Err(SpecError::Repeated { what: layer.name().into() });
            }
            parts.push(Part::read(registry, layer, text)?);
        }
        Self::complete(registry, parts)
    }

    /// The same choice but for one layer. A joint policy takes the place of stream and path policy,
    /// and the other way round.
    ///
    /// # Errors
    /// See [`SpecError`].
    pub fn with(&self, registry: &Registry, layer: Layer, text: &str) -> Result<Self, SpecError> {
        let part = Part::read(registry, layer, text)?;
        let gives_way = |other: Layer| {
            other == layer
                || (layer == Layer::Joint && excluded_by_joint(other))
                || (other == Layer::Joint && excluded_by_joint(layer))
        };
        let others = self.parts.iter().filter(|part| !gives_way(part.entry().layer));
        Self::complete(registry, others.cloned().chain([part]).collect())
    }

    /// Fills in the defaults and checks that the parts go together.
    fn complete(registry: &Registry, mut parts: Vec<Part>) -> Result<Self, SpecError> {
        let find = |parts: &[Part], layer| {
            parts.iter().find(|part: &&Part| part.entry().layer == layer).map(title)
        };
        let joint = find(&parts, Layer::Joint);
        for (layer, name) in DEFAULTS {
            let needless = joint.is_some() && excluded_by_joint(layer);
            if !needless && find(&parts, layer).is_none() {
                parts.push(Part::read(registry, layer, name)?);
            }
        }
        if let Some(joint) = joint {
            let excluded = parts.iter().find(|part| excluded_by_joint(part.entry().layer));
            if let Some(excluded) = excluded {
                return Err(SpecError::Conflict {
                    first: joint,
                    second: title(excluded),
                    reason: "a joint policy orders streams and picks paths itself",
                });
            }
        }
        parts.sort_by_key(|part| part.entry().layer);
        let spec = PolicySpec { parts };
        spec.build(&BuildContext::new(Seed::new(0)))?;
        Ok(spec)
    }

    /// The policy chosen in a layer.
    pub fn part(&self, layer: Layer) -> Option<&Part> {
        self.parts.iter().find(|part| part.entry().layer == layer)
    }

    /// All policies chosen, in order of layer.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter()
    }

    /// The same text with every parameter, defaults too: for files that must not depend on them.
    pub fn full_text(&self) -> String {
        let parts: Vec<String> = self
            .parts
            .iter()
            .map(|part| format!("{}={}", part.entry().layer, part.full_text()))
            .collect();
        parts.join(" ")
    }

    /// Makes the policies of one connection. The rules for lost bytes and for sharing packets in
    /// `context` are replaced by those that were chosen.
    ///
    /// # Errors
    /// If the parts, or the values of one, do not go together. What [`PolicySpec::parse`] accepted
    /// can be built.
    pub fn build(&self, context: &BuildContext) -> Result<Policies, SpecError> {
        let mut context = context.clone();
        let mut reinject: Option<(String, Box<dyn Reinject>)> = None;
        let mut take = |layer, context: &mut BuildContext| -> Result<Built, SpecError> {
            let Some(part) = self.part(layer) else { return Ok(Built::default()) };
            let mut built = part.build(context)?;
            if let Some(copies) = built.reinject.take() {
                if let Some((first, _)) = &reinject {
                    return Err(SpecError::Conflict {
                        first: first.clone(),
                        second: title(part),
                        reason: "both make copies",
                    });
                }
                reinject = Some((title(part), copies));
            }
            Ok(built)
        };
        let stream = take(Layer::Stream, &mut context)?;
        let pack = take(Layer::Pack, &mut context)?.pack;
        let resend = take(Layer::Resend, &mut context)?.resend;
        let joint_part = self.part(Layer::Joint).map_or("", Part::name);
        self.check_rules(&stream, pack, resend)?;
        context.pack = pack.or(stream.pack).unwrap_or_default();
        context.resend = resend.unwrap_or_default();
        context.resend.first |= stream.lost_first;
        let path = take(Layer::Path, &mut context)?;
        let joint = take(Layer::Joint, &mut context)?;
        take(Layer::Reinject, &mut context)?;
        let ack = take(Layer::Ack, &mut context)?.ack;
        let controllers = take(Layer::Congestion, &mut context)?.controller;
        let mut joint = match (joint.joint, stream.stream, path.path) {
            (Some(joint), None, None) => joint,
            (None, Some(stream), Some(path)) => {
                Box::new(Pair::new(stream, path, context.resend, context.pack))
            }
            _ => return Err(missing(joint_part, Layer::Joint)),
        };
        let declares_copies = reinject.is_some();
        if let Some((_, copies)) = reinject {
            joint = Box::new(Reinjecting::new(joint, copies));
        }
        Ok(Policies {
            joint,
            ack: ack.ok_or_else(|| missing("", Layer::Ack))?,
            controllers: controllers.ok_or_else(|| missing("", Layer::Congestion))?,
            resend: context.resend,
            copies: declares_copies,
        })
    }

    /// What the stream policy brings must not contradict what was chosen.
    fn check_rules(
        &self,
        stream: &Built,
        pack: Option<crate::stream::Pack>,
        resend: Option<ResendRules>,
    ) -> Result<(), SpecError> {
        let conflict = |layer, reason| SpecError::Conflict {
            first: self.part(Layer::Stream).map(title).unwrap_or_default(),
            second: self.part(layer).map(title).unwrap_or_default(),
            reason,
        };
        if pack.zip(stream.pack).is_some_and(|(chosen, brought)| chosen != brought) {
            return Err(conflict(Layer::Pack, "the stream policy says how packets are filled"));
        }
        if stream.lost_first && resend.is_some_and(|resend| !resend.first) {
            return Err(conflict(Layer::Resend, "the stream policy sends lost bytes first"));
        }
        Ok(())
    }
}

fn excluded_by_joint(layer: Layer) -> bool {
    matches!(layer, Layer::Stream | Layer::Path | Layer::Pack)
}

fn title(part: &Part) -> String {
    format!("{}={part}", part.entry().layer)
}

fn missing(policy: &str, layer: Layer) -> SpecError {
    SpecError::Build { policy: policy.into(), error: BuildError::Missing { layer } }
}

impl fmt::Display for PolicySpec {
    /// The canonical text: every layer, in order, without the parameters that have their default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{}", title(part))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
