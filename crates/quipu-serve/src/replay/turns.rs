//! Which of the objects of one URL a request gets.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::request::Parts;
use http::{HeaderValue, Method};

use super::plan::Plan;

/// The objects of one URL.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Those that elements and style sheets request.
    pub(super) loaded: Turn,
    /// Those that scripts request by `fetch` and its like.
    pub(super) fetched: Turn,
    /// Permission checks.
    pub(super) checks: Turn,
}

/// Objects that are served in turn.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) objects: Vec<usize>,
    next: AtomicUsize,
}

impl Turns {
    pub(super) fn of(&mut self, plan: &Plan<'_>, object: usize, is_check: bool) -> &mut Turn {
        match (is_check, plan.is_fetched(object)) {
            (true, _) => &mut self.checks,
            (false, true) => &mut self.fetched,
            (false, false) => &mut self.loaded,
        }
    }

    pub(super) fn all(&self) -> [&Turn; 3] {
        [&self.loaded, &self.fetched, &self.checks]
    }

    /// The turn that a request belongs to. Requests of scripts have an empty destination; browsers tell it, and for
    /// others all objects that are not fetched come first. <https://www.w3.org/TR/fetch-metadata/#sec-fetch-dest-header>
    pub(super) fn asked(&self, parts: &Parts) -> &Turn {
        if parts.method == Method::OPTIONS {
            return &self.checks;
        }
        let destination = parts.headers.get("sec-fetch-dest").map(HeaderValue::as_bytes);
        let (first, second) = match destination {
            Some(b"empty") => (&self.fetched, &self.loaded),
            _ => (&self.loaded, &self.fetched),
        };
        let is_over = destination.is_none() && first.taken() >= first.objects.len();
        if first.objects.is_empty() || (is_over && !second.objects.is_empty()) {
            second
        } else {
            first
        }
    }
}

impl Turn {
    /// True if the next object is the first.
    pub(super) fn is_at_first(&self) -> bool {
        self.taken().checked_rem(self.objects.len()).is_none_or(|at| at == 0)
    }

    pub(super) fn begin_anew(&self) {
        self.next.store(0, Ordering::Relaxed);
    }

    fn taken(&self) -> usize {
        self.next.load(Ordering::Relaxed)
    }

    /// The next object; `takes` if the one after it is next then.
    pub(super) fn take(&self, takes: bool) -> Option<usize> {
        let at = self.next.fetch_add(usize::from(takes), Ordering::Relaxed);
        self.objects.get(at.checked_rem(self.objects.len())?).copied()
    }
}
