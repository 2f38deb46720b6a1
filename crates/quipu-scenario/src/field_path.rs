//! Paths of fields from the top of a scenario, such as `networks[1].paths[0].down`.

/// The path of the field `key` of the table at `path`.
pub(crate) fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A part of a field's path: a key or a number in a list.
pub(crate) enum Step<'a> {
    /// The key of a table.
    Key(&'a str),
    /// A place in a list, from 0.
    Index(usize),
}

/// The parts of `networks[1].paths[0].down`.
pub(crate) fn steps(field: &str) -> impl Iterator<Item = Step<'_>> {
    field.split('.').flat_map(|part| {
        let (key, indices) = part.split_once('[').map_or((part, ""), |(key, rest)| (key, rest));
        let indices = indices.split('[').filter_map(|index| {
            index.strip_suffix(']').and_then(|index| index.parse().ok()).map(Step::Index)
        });
        std::iter::once(Step::Key(key)).chain(indices)
    })
}
