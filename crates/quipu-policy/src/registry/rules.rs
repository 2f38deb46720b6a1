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

/// A number of probe timeouts that never comes.
const NEVER: u32 = u32::MAX;

pub(super) fn entries() -> Vec<Entry> {
    let mut entries = plain();
    entries.extend([mp_quic(), xquic(), picoquic()]);
    entries
}

fn plain() -> Vec<Entry> {
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
            "lost bytes go before the fresh ones of their stream; the default",
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

fn mp_quic() -> Entry {
    Entry {
        name: "mp-quic",
        layer: Layer::Resend,
        about: "lost bytes go first; a path that timed out is left at once",
        params: Vec::new(),
        source: "mp-quic, code; a window with room is required here, there it is ignored",
        confidence: Confidence::High,
        build: |_, _| {
            let left_at = 1;
            Ok(Built::resend(ResendRules {
                first: true,
                avoid_origin_after_pto: left_at,
                requeue_after_pto: left_at,
            }))
        },
    }
}

fn xquic() -> Entry {
    Entry {
        name: "xquic",
        layer: Layer::Resend,
        about: "lost bytes go first, on the path that the path policy picks",
        params: Vec::new(),
        source: "xquic, code; requeued when its path falls into the low class, our choice",
        confidence: Confidence::MediumHigh,
        build: |_, _| {
            Ok(Built::resend(ResendRules {
                first: true,
                avoid_origin_after_pto: NEVER,
                requeue_after_pto: 2,
            }))
        },
    }
}

fn picoquic() -> Entry {
    Entry {
        name: "picoquic",
        layer: Layer::Resend,
        about: "lost bytes go before the fresh ones of their stream, on any path",
        params: Vec::new(),
        source: "picoquic, code; RFC 10069 allows another path after a probe timeout",
        confidence: Confidence::MediumHigh,
        build: |_, _| {
            Ok(Built::resend(ResendRules {
                first: false,
                avoid_origin_after_pto: NEVER,
                requeue_after_pto: 1,
            }))
        },
    }
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
