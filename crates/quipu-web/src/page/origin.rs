//! The origins of a page: which servers its objects come from if they are not folded into one.

use std::collections::BTreeMap;

use super::{Object, ObjectId, Page};

/// The origins of a page, numbered in the order of their first objects.
///
/// An origin is a scheme and an authority; letter case and a scheme's usual port make no difference:
/// RFC 9110, section 4.2.3. Another port or scheme of a host is another server here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origins {
    names: Vec<String>,
    of_object: Vec<u32>,
}

impl Origins {
    pub(super) fn of(page: &Page) -> Origins {
        let mut numbers = BTreeMap::new();
        let mut names = Vec::new();
        let mut number = |object: &Object| {
            *numbers.entry(object.origin()).or_insert_with_key(|name: &String| {
                names.push(name.clone());
                // No more than objects, which are counted in 32 bits.
                (names.len() - 1) as u32
            })
        };
        let of_object = page.objects().iter().map(&mut number).collect();
        Origins { names, of_object }
    }

    /// Their names, such as `https://example.com`.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of the origin of `object`; 0 if there is no such object.
    pub fn number_of(&self, object: ObjectId) -> usize {
        // As many as a `u32` counts.
        self.of_object.get(object.index()).map_or(0, |&number| number as usize)
    }
}

/// The host of the origin called `name`, with its port if that is told.
pub fn host_of_origin(name: &str) -> &str {
    name.split_once("://").map_or(name, |(_, host)| host)
}

impl Object {
    /// Scheme and authority of the URL: `https://example.com`; an object without a host is of
    /// `https://` and [`PRIVATE_HOST`](super::PRIVATE_HOST).
    pub fn origin(&self) -> String {
        let scheme = self.url.split_once("://").map_or("", |(scheme, _)| scheme);
        let scheme = match scheme.to_ascii_lowercase() {
            scheme if scheme.is_empty() => "https".to_owned(),
            scheme => scheme,
        };
        let host = self.host().to_ascii_lowercase();
        let usual_port = if scheme == "http" { ":80" } else { ":443" };
        let host = host.strip_suffix(usual_port).unwrap_or(&host);
        format!("{scheme}://{host}")
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::Bytes;

    use super::*;
    use crate::page::ObjectKind;

    fn page(urls: &[&str]) -> Page {
        let object =
            |(id, url): (u32, &&str)| Object::new(ObjectId(id), *url, ObjectKind::Image, Bytes(1));
        Page::new("p", (0..).zip(urls).map(object).collect()).unwrap()
    }

    #[test]
    fn scheme_host_and_port_make_an_origin() {
        let origins = page(&[
            "https://a.test/1",
            "http://a.test/2",
            "HTTPS://A.test:443/3",
            "https://a.test:8443/4",
            "https://b.test/5",
            "http://a.test:80/6",
            "no-url",
            "https://a.test",
        ])
        .origins();
        let number = |id| origins.number_of(ObjectId(id));
        assert_eq!((0..8).map(number).collect::<Vec<_>>(), [0, 1, 0, 2, 3, 1, 4, 0]);
        assert_eq!(
            origins.names(),
            [
                "https://a.test",
                "http://a.test",
                "https://a.test:8443",
                "https://b.test",
                "https://page.test"
            ]
        );
        assert_eq!(number(99), 0);
        assert_eq!(host_of_origin("https://a.test:8443"), "a.test:8443");
    }
}
