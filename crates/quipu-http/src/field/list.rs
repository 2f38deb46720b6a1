//! A list of fields in one buffer.

use std::fmt;

/// What a field counts beside its name and value, in octets.
/// <https://www.rfc-editor.org/rfc/rfc7541#section-4.1>
pub const FIELD_OVERHEAD: u64 = 32;

/// Room for so many fields is made at once; our choice: what a browser's request has.
const USUAL_FIELDS: usize = 8;
/// And for so many octets of their names and values.
const USUAL_OCTETS: usize = 256;

/// Fields in their order: names and values of a request or a response, pseudo-header fields included.
///
/// All octets lie in one buffer, so that a list costs two allocations whatever its length, and none
/// when it is [cleared](FieldList::clear) and filled again. Nothing is checked here: see
/// [`message`](crate::message).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FieldList {
    octets: Vec<u8>,
    spans: Vec<Span>,
}

/// Where a field ends; it starts where the one before it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Span {
    name_end: usize,
    value_end: usize,
    sensitive: bool,
}

/// One field of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name, in lower case in a well-formed message.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// Whether compression must leave no trace of the value in a table.
    /// <https://www.rfc-editor.org/rfc/rfc7541#section-7.1.3>
    pub sensitive: bool,
}

impl FieldList {
    /// A list of no fields.
    pub const fn new() -> Self {
        FieldList { octets: Vec::new(), spans: Vec::new() }
    }

    /// Appends a field.
    pub fn push(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.push_field(Field { name: name.as_ref(), value: value.as_ref(), sensitive: false });
    }

    /// Appends a field whose value no table may hold.
    pub fn push_sensitive(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.push_field(Field { name: name.as_ref(), value: value.as_ref(), sensitive: true });
    }

    /// Appends a copy of `field`.
    pub fn push_field(&mut self, field: Field<'_>) {
        self.begin();
        self.octets.extend_from_slice(field.name);
        let name_end = self.octets.len();
        self.octets.extend_from_slice(field.value);
        self.spans.push(Span {
            name_end,
            value_end: self.octets.len(),
            sensitive: field.sensitive,
        });
    }

    /// Makes room for a usual message at once, where there is none.
    fn begin(&mut self) {
        if self.spans.capacity() == 0 {
            self.spans.reserve(USUAL_FIELDS);
            self.octets.reserve(USUAL_OCTETS);
        }
    }

    /// The list with a field appended.
    #[must_use]
    pub fn with(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.push(name, value);
        self
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True if there is no field.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Removes all fields and keeps the memory.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.spans.clear();
    }

    /// The fields in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Field<'_>> + '_ {
        let mut start = 0;
        self.spans.iter().map(move |span| {
            let name = &self.octets[start..span.name_end];
            let value = &self.octets[span.name_end..span.value_end];
            start = span.value_end;
            Field { name, value, sensitive: span.sensitive }
        })
    }

    /// Value of the first field called `name`, compared octet by octet.
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&[u8]> {
        let name = name.as_ref();
        self.iter().find(|field| field.name == name).map(|field| field.value)
    }

    /// Size in octets as peers limit it: names, values, and 32 for each field.
    /// <https://www.rfc-editor.org/rfc/rfc7540#section-6.5.2>
    pub fn size(&self) -> u64 {
        self.tail_start() as u64 + FIELD_OVERHEAD * self.spans.len() as u64
    }

    /// Lets a decoder append the octets of a field before it is known whether the field stays. Must be
    /// followed by [`FieldList::keep_tail`] or [`FieldList::drop_tail`].
    pub(crate) fn tail(&mut self) -> &mut Vec<u8> {
        self.begin();
        &mut self.octets
    }

    /// Where the tail starts.
    pub(crate) fn tail_start(&self) -> usize {
        self.spans.last().map_or(0, |span| span.value_end)
    }

    /// Makes a field of the tail, whose name ends at `name_end`, counted from the buffer's start.
    pub(crate) fn keep_tail(&mut self, name_end: usize, sensitive: bool) {
        self.spans.push(Span { name_end, value_end: self.octets.len(), sensitive });
    }

    /// Drops the tail.
    pub(crate) fn drop_tail(&mut self) {
        self.octets.truncate(self.tail_start());
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(N, V)> for FieldList {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Self {
        let mut list = FieldList::new();
        for (name, value) in fields {
            list.push(name, value);
        }
        list
    }
}

impl fmt::Debug for FieldList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Prints the value of a sensitive field as its length only.
impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name.escape_ascii())?;
        if self.sensitive {
            write!(f, "<{} octets>", self.value.len())
        } else {
            write!(f, "{}", self.value.escape_ascii())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_order_and_count_as_peers_count() {
        let mut list = FieldList::new().with(":status", "200").with("a", "");
        list.push_sensitive("a", "xyz");
        let names: Vec<_> = list.iter().map(|field| field.name).collect();
        assert_eq!(names, [&b":status"[..], b"a", b"a"]);
        assert_eq!(list.get("a"), Some(&b""[..]));
        assert_eq!(list.get("b"), None);
        assert_eq!(list.size(), 10 + 1 + 4 + 3 * 32);
        assert_eq!(format!("{list:?}"), "[:status: 200, a: , a: <3 octets>]");
    }
}
