//! A small map: something for each path identifier that is open to use.

use quipu_base::PathId;

/// Values by path identifier, in order: a few, one behind the other and with none to spare, for there
/// are many connections that do nothing.
#[derive(Debug)]
pub(super) struct ByPath<T>(Vec<(PathId, T)>);

impl<T> Default for ByPath<T> {
    fn default() -> Self {
        ByPath(Vec::new())
    }
}

impl<T> ByPath<T> {
    #[inline]
    fn position(&self, path: PathId) -> Result<usize, usize> {
        // Where no path ended, each is at its number.
        let at = usize::try_from(path.0).unwrap_or(usize::MAX);
        if self.0.get(at).is_some_and(|(id, _)| *id == path) {
            return Ok(at);
        }
        self.0.binary_search_by_key(&path, |(id, _)| *id)
    }

    pub(super) fn get(&self, path: PathId) -> Option<&T> {
        let at = self.position(path).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, path: PathId) -> Option<&mut T> {
        let at = self.position(path).ok()?;
        self.0.get_mut(at).map(|(_, value)| value)
    }

    pub(super) fn remove(&mut self, path: PathId) -> Option<T> {
        let at = self.position(path).ok()?;
        Some(self.0.remove(at).1)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }
}

impl<T: Default> ByPath<T> {
    /// That of a path, a new one if there is none.
    pub(super) fn entry(&mut self, path: PathId) -> &mut T {
        let at = self.position(path).unwrap_or_else(|at| {
            self.0.reserve_exact(1);
            self.0.insert(at, (path, T::default()));
            at
        });
        &mut self.0[at].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_paths() {
        let mut values = ByPath::default();
        for id in [3, 0, 7] {
            *values.entry(PathId(id)) = id;
        }
        assert_eq!(values.values().collect::<Vec<_>>(), [&0, &3, &7]);
        *values.entry(PathId(3)) += 10;
        assert_eq!(values.get(PathId(3)), Some(&13));
        assert_eq!(values.remove(PathId(3)), Some(13));
        assert_eq!(values.get_mut(PathId(3)), None);
        assert_eq!(values.get_mut(PathId(7)), Some(&mut 7));
    }
}
