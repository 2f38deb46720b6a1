//! Which objects the page load does not wait for.

use std::collections::BTreeSet;

use quipu_base::Duration;

use super::select::Draft;
use super::{NotHeld, ObjectKind};
use crate::page::object::host_of;

/// What ends within this time after the load event held it: recorders stamp the two differently.
/// Our choice.
const TOLERANCE: Duration = Duration::from_millis(100);

/// A request by script that waits longer than this for its first byte is a long poll, where the
/// load event is unknown. Our choice.
const LONG_WAIT: Duration = Duration::from_secs(10);

/// Decides per object of a load, in order of start.
pub(super) struct Holding {
    on_load: Option<Duration>,
    streams_begun: BTreeSet<String>,
}

impl Holding {
    /// `on_load` is not believed if the main document ended after it.
    pub(super) fn new(on_load: Option<Duration>, main: &Draft<'_>) -> Holding {
        let on_load = on_load.filter(|&time| time > Duration::ZERO && time + TOLERANCE >= main.end);
        Holding { on_load, streams_begun: BTreeSet::new() }
    }

    /// Why the load does not wait for `draft`; `None` if it does.
    pub(super) fn not_held(&mut self, draft: &Draft<'_>) -> Option<NotHeld> {
        let later_segment = is_media(draft) && !self.streams_begun.insert(folder(draft.url));
        let by_script = matches!(
            draft.kind,
            ObjectKind::Xhr | ObjectKind::Fetch | ObjectKind::Preflight | ObjectKind::Other
        );
        let open_after_load = match self.on_load {
            Some(on_load) => draft.end > on_load + TOLERANCE,
            None => super::select::millis(draft.entry.timings.wait) > LONG_WAIT,
        };
        match draft.kind {
            ObjectKind::Ping => Some(NotHeld::Beacon),
            ObjectKind::Prefetch => Some(NotHeld::Prefetch),
            _ if self.on_load.is_some_and(|on_load| draft.start > on_load) => {
                Some(NotHeld::AfterOnLoad)
            }
            _ if is_icon(draft.url) => Some(NotHeld::Icon),
            _ if later_segment => Some(NotHeld::LaterSegment),
            _ if by_script && open_after_load => Some(NotHeld::LongPoll),
            _ => None,
        }
    }
}

/// True for the icon that browsers look for, by its usual name.
fn is_icon(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.rsplit('/').next().is_some_and(|name| name.starts_with("favicon."))
}

/// True for audio and video, also where a script fetches it.
fn is_media(draft: &Draft<'_>) -> bool {
    let mime = draft.entry.response.content.mime_type.as_deref().unwrap_or_default();
    draft.kind == ObjectKind::Media || ObjectKind::from_mime(mime) == Some(ObjectKind::Media)
}

/// Host and folder of a URL: the segments of one stream share it.
fn folder(url: &str) -> String {
    let path = url.split('?').next().unwrap_or_default();
    let end = path.rfind('/').unwrap_or(0);
    if path[..end].ends_with('/') { host_of(url).to_owned() } else { path[..end].to_owned() }
}
