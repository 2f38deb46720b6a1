//! The plain rules by name: how many streams share a packet, how lost bytes go again.

use super::entry::{Built, Confidence, Entry, Layer};
use super::error::BuildError;
use super::param::{Param, Values};
use crate::reinject::ResendRules;
use crate::stream::Pack;

const AVOID: Param = Param::integer(
    "avoid_after",
    1,
    (0, u32::MAX as u64),
    "from so many probe timeouts in a row, lost bytes avoid the path that lost them",
);

const REQUEUE: Param = Param::integer(
    "requeue_after",
    1,
    (1, u32::MAX as u64),
    "from so many probe timeouts in a row, a path's bytes in flight are pending again",
);

pub(super) fn entries() -> Vec<Entry> {
    let rule = |name, layer, about, params, build| Entry {
        name,
        layer,
        about,
        params,
        source: "our choice",
        confidence: Confidence::High,
        build,
    };
    vec![
        rule("one", Layer::Pack, "one stream's bytes per packet", Vec::new(), |_, _| {
            Ok(Built { pack: Some(Pack::One), ..Built::default() })
        }),
        rule("many", Layer::Pack, "packets are filled with the turns that follow", Vec::new(), {
            |_, _| Ok(Built { pack: Some(Pack::Many), ..Built::default() })
        }),
        rule(
            "rank",
            Layer::Resend,
            "lost bytes go before the fresh ones of their stream",
            vec![AVOID, REQUEUE],
            |values, _| Ok(Built::resend(rules(values, false)?)),
        ),
        rule(
            "first",
            Layer::Resend,
            "lost bytes go before all fresh ones",
            vec![AVOID, REQUEUE],
            |values, _| Ok(Built::resend(rules(values, true)?)),
        ),
    ]
}

fn rules(values: &Values, first: bool) -> Result<ResendRules, BuildError> {
    let timeouts = |name| -> Result<u32, BuildError> {
        Ok(u32::try_from(values.integer(name)?).unwrap_or(u32::MAX))
    };
    Ok(ResendRules {
        first,
        avoid_origin_after_pto: timeouts("avoid_after")?,
        requeue_after_pto: timeouts("requeue_after")?,
    })
}
