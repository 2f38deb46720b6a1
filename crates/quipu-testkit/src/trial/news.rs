//! What an end is told of its paths, and whether it makes sense.

use std::collections::BTreeMap;

use quipu_base::PathId;
use quipu_quic::{ConnectionEvent, Route};

use super::Rule;

/// What is known of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Up,
    Suspect,
    Gone,
}

/// All that an end was told of its paths.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    paths: BTreeMap<PathId, Known>,
    /// Where a path went when it moved last.
    routes: BTreeMap<PathId, Route>,
    /// The first thing that made no sense.
    wrong: Option<(PathId, String)>,
}

impl News {
    /// The application is told.
    pub(super) fn hear(&mut self, event: &ConnectionEvent) {
        let (path, expected, known): (PathId, &[Option<Known>], Known) = match *event {
            ConnectionEvent::Connected => (PathId::ZERO, &[None], Known::Up),
            ConnectionEvent::PathUp(path) => (path, &[None], Known::Up),
            ConnectionEvent::PathSuspect(path) => (path, &[Some(Known::Up)], Known::Suspect),
            ConnectionEvent::PathRevived(path) => (path, &[Some(Known::Suspect)], Known::Up),
            ConnectionEvent::PathGone(path) => {
                (path, &[None, Some(Known::Up), Some(Known::Suspect)], Known::Gone)
            }
            ConnectionEvent::PathMigrated(ref moved) => return self.hear_move(moved),
            _ => return,
        };
        let before = self.paths.insert(path, known);
        if !expected.contains(&before) {
            self.wrong.get_or_insert((path, format!("{event:?} after {before:?}")));
        }
    }

    fn hear_move(&mut self, moved: &quipu_quic::connection::Migration) {
        let before = self.routes.insert(moved.path, moved.new);
        if moved.old == moved.new || before.is_some_and(|route| route != moved.old) {
            self.wrong.get_or_insert((moved.path, format!("{moved:?} after {before:?}")));
        }
    }

    /// The paths that are there as far as the application knows.
    pub(super) fn live(&self) -> impl Iterator<Item = PathId> {
        let live = self.paths.iter().filter(|(_, known)| **known != Known::Gone);
        live.map(|(path, _)| *path)
    }

    /// What made no sense, if anything did.
    pub(super) fn broken(&self) -> Option<Rule> {
        let (path, what) = self.wrong.clone()?;
        Some(Rule::Told { path, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_once_and_revives_only_if_it_was_suspect() {
        use ConnectionEvent::{Connected, PathGone, PathRevived, PathSuspect, PathUp};
        let path = PathId(1);
        for (events, makes_sense) in [
            (vec![PathUp(path), PathSuspect(path), PathRevived(path), PathGone(path)], true),
            (vec![PathGone(path)], true),
            (vec![Connected, PathSuspect(PathId::ZERO)], true),
            (vec![PathUp(path), PathRevived(path)], false),
            (vec![PathUp(path), PathGone(path), PathGone(path)], false),
            (vec![PathGone(path), PathUp(path)], false),
        ] {
            let mut news = News::default();
            events.iter().for_each(|event| news.hear(event));
            assert_eq!(news.broken().is_none(), makes_sense, "{events:?}");
        }
    }
}
