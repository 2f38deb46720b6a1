//! Plain rules by name: how many streams share a packet, how lost bytes go again.

use crate::registry::{Build, BuildError, Built, Confidence, Entry, Layer, Param, Values};
use crate::reinject::{ResendPath, ResendRules};
use crate::stream::Pack;

/// The parameters of a rule for lost bytes, with its defaults.
fn params(rules: ResendRules) -> Vec<Param> {
    let paths: &[&str] = match rules.path {
        ResendPath::Policy => &["policy", "open"],
        ResendPath::Open => &["open", "policy"],
    };
    let (avoid, requeue) = (rules.avoid_origin_after_pto, rules.requeue_after_pto);
    vec![
        Param::choice("path", paths, "the path policy's pick for them, or any open path"),
        Param::integer(
            "avoid_after",
            avoid.into(),
            (0, u32::MAX.into()),
            "from so many probe timeouts in a row, lost bytes avoid the path that lost them",
        ),
        Param::integer(
            "requeue_after",
            requeue.into(),
            (1, u32::MAX.into()),
            "from so many probe timeouts in a row, a path's bytes in flight are pending again",
        ),
    ]
}

fn pack(name: &'static str, about: &'static str, formula: &'static str, build: Build) -> Entry {
    Entry {
        name,
        layer: Layer::Pack,
        about,
        formula,
        params: Vec::new(),
        source: "our choice",
        confidence: Confidence::High,
        build,
    }
}

/// The plain rules of this crate.
pub(super) fn entries() -> Vec<Entry> {
    vec![
        pack(
            "one",
            "one stream's bytes per packet",
            "a packet is closed when its stream has no more for it",
            &|_, _| Ok(Built { pack: Some(Pack::One), ..Built::default() }),
        ),
        pack(
            "many",
            "packets are filled with the turns that follow",
            "a packet is filled with the next turns while they fit",
            &|_, _| Ok(Built { pack: Some(Pack::Many), ..Built::default() }),
        ),
        resend(
            "rank",
            "lost bytes go before the fresh ones of their stream",
            "lost bytes of a stream go before its fresh ones, in the stream's own turn",
            "our choice",
            ResendRules::RANK,
            &|values, _| Ok(Built::resend(rules(values, false)?)),
        ),
        resend(
            "first",
            "lost bytes go before all fresh ones",
            "lost bytes of all streams, oldest loss first, go before all fresh ones",
            "our choice",
            ResendRules::FIRST,
            &|values, _| Ok(Built::resend(rules(values, true)?)),
        ),
        resend(
            "mp-quic",
            "lost bytes go first, and away from a path that does not answer",
            "as first: lost bytes of all streams go before all fresh ones; their path: the path policy's",
            "mp-quic (De Coninck and Bonaventure, CoNEXT 2017), code; within the window, unlike it",
            ResendRules::MP_QUIC,
            &|values, _| Ok(Built::resend(rules(values, true)?)),
        ),
        resend(
            "xquic",
            "lost bytes go first, on whichever path the policy picks",
            "lost bytes go before all fresh ones, on whichever path the path policy picks, also after timeouts;\n\
             a path's bytes in flight are pending again from its second probe timeout in a row",
            "alibaba/xquic, code; when bytes in flight are pending again is our choice",
            ResendRules::XQUIC,
            &|values, _| Ok(Built::resend(rules(values, true)?)),
        ),
        resend(
            "picoquic",
            "lost bytes go before the fresh ones of their stream, on any open path",
            "lost bytes go before the fresh ones of their stream, on any open path, the longest unused first",
            "private-octopus/picoquic, code",
            ResendRules::PICOQUIC,
            &|values, _| Ok(Built::resend(rules(values, false)?)),
        ),
    ]
}

fn resend(
    name: &'static str,
    about: &'static str,
    formula: &'static str,
    source: &'static str,
    defaults: ResendRules,
    build: Build,
) -> Entry {
    Entry {
        name,
        layer: Layer::Resend,
        about,
        formula,
        params: params(defaults),
        source,
        confidence: Confidence::High,
        build,
    }
}

fn rules(values: &Values, first: bool) -> Result<ResendRules, BuildError> {
    let timeouts = |name| -> Result<u32, BuildError> {
        Ok(u32::try_from(values.integer(name)?).unwrap_or(u32::MAX))
    };
    let path = match values.choice("path")? {
        "open" => ResendPath::Open,
        _ => ResendPath::Policy,
    };
    Ok(ResendRules {
        first,
        path,
        avoid_origin_after_pto: timeouts("avoid_after")?,
        requeue_after_pto: timeouts("requeue_after")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{BuildContext, Part, Registry};
    use quipu_base::Seed;

    fn built(text: &str) -> ResendRules {
        let part = Part::read(&Registry::builtin(), Layer::Resend, text).unwrap();
        part.build(&mut BuildContext::new(Seed::new(1))).unwrap().resend.unwrap()
    }

    #[test]
    fn every_implementation_of_the_table_has_its_name() {
        let named = [
            ("rank", ResendRules::RANK),
            ("first", ResendRules::FIRST),
            ("mp-quic", ResendRules::MP_QUIC),
            ("xquic", ResendRules::XQUIC),
            ("picoquic", ResendRules::PICOQUIC),
        ];
        for (name, rules) in named {
            assert_eq!(built(name), rules, "{name}");
        }
    }

    #[test]
    fn every_rule_can_be_set_alone() {
        let open = ResendRules { path: ResendPath::Open, ..ResendRules::FIRST };
        assert_eq!(built("first:path=open"), open);
        let mixed = ResendRules { requeue_after_pto: 1, ..ResendRules::XQUIC };
        assert_eq!(built("xquic:requeue_after=1"), mixed);
        let policy = ResendRules { path: ResendPath::Policy, ..ResendRules::PICOQUIC };
        assert_eq!(built("picoquic:path=policy"), policy);
    }
}
