//! What kind of thing an object is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Type of an object, as browsers name it for priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectKind {
    /// An HTML document: the page itself or a frame.
    Document,
    /// A style sheet.
    Stylesheet,
    /// A script.
    Script,
    /// A font.
    Font,
    /// Asked for by XMLHttpRequest.
    Xhr,
    /// Asked for by `fetch()`, server-sent events included.
    Fetch,
    /// An image, the favicon included.
    Image,
    /// Audio or video.
    Media,
    /// A web app manifest.
    Manifest,
    /// A cross-origin permission check.
    Preflight,
    /// Fetched ahead for another page.
    Prefetch,
    /// A beacon or ping.
    Ping,
    /// None of these.
    Other,
}

/// The classes of the framework paper's client, which looks at the content of a file: plain text
/// is one class for CSS, scripts and Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SniffedClass {
    /// `text/html`.
    Html,
    /// Text without markup.
    Plain,
    /// `image/*`.
    Image,
    /// `font/*`.
    Font,
    /// Anything else, empty files included.
    Other,
}

impl ObjectKind {
    /// Every kind, in order.
    pub const ALL: [ObjectKind; 13] = [
        ObjectKind::Document,
        ObjectKind::Stylesheet,
        ObjectKind::Script,
        ObjectKind::Font,
        ObjectKind::Xhr,
        ObjectKind::Fetch,
        ObjectKind::Image,
        ObjectKind::Media,
        ObjectKind::Manifest,
        ObjectKind::Preflight,
        ObjectKind::Prefetch,
        ObjectKind::Ping,
        ObjectKind::Other,
    ];

    /// The name in profiles and reports, such as `stylesheet`.
    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::Document => "document",
            ObjectKind::Stylesheet => "stylesheet",
            ObjectKind::Script => "script",
            ObjectKind::Font => "font",
            ObjectKind::Xhr => "xhr",
            ObjectKind::Fetch => "fetch",
            ObjectKind::Image => "image",
            ObjectKind::Media => "media",
            ObjectKind::Manifest => "manifest",
            ObjectKind::Preflight => "preflight",
            ObjectKind::Prefetch => "prefetch",
            ObjectKind::Ping => "ping",
            ObjectKind::Other => "other",
        }
    }

    /// True if requests can start from an object of this kind.
    pub fn can_have_children(self) -> bool {
        matches!(
            self,
            ObjectKind::Document
                | ObjectKind::Stylesheet
                | ObjectKind::Script
                | ObjectKind::Xhr
                | ObjectKind::Fetch
        )
    }

    /// The kind that Chrome's, chrome-har's or WebPageTest's word names; `None` for an unknown
    /// word. Upper and lower case are the same.
    pub fn from_resource_type(word: &str) -> Option<ObjectKind> {
        Some(match word.to_ascii_lowercase().as_str() {
            "document" => ObjectKind::Document,
            "stylesheet" => ObjectKind::Stylesheet,
            "script" => ObjectKind::Script,
            "font" => ObjectKind::Font,
            "xhr" => ObjectKind::Xhr,
            "fetch" | "eventsource" => ObjectKind::Fetch,
            "image" => ObjectKind::Image,
            "media" | "texttrack" => ObjectKind::Media,
            "manifest" => ObjectKind::Manifest,
            "preflight" => ObjectKind::Preflight,
            "prefetch" => ObjectKind::Prefetch,
            "ping" | "cspviolationreport" => ObjectKind::Ping,
            "other" | "signedexchange" => ObjectKind::Other,
            _ => return None,
        })
    }

    /// The kind that a media type tells, parameters ignored; `None` if it tells nothing.
    pub fn from_mime(mime: &str) -> Option<ObjectKind> {
        let essence = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Some(match essence.as_str() {
            "text/html" | "application/xhtml+xml" => ObjectKind::Document,
            "text/css" => ObjectKind::Stylesheet,
            "application/manifest+json" => ObjectKind::Manifest,
            "application/json" => ObjectKind::Xhr,
            "application/vnd.ms-fontobject" => ObjectKind::Font,
            _ if essence.contains("javascript") || essence.contains("ecmascript") => {
                ObjectKind::Script
            }
            _ if essence.starts_with("image/") => ObjectKind::Image,
            _ if essence.starts_with("video/") || essence.starts_with("audio/") => {
                ObjectKind::Media
            }
            _ if essence.starts_with("font/") || essence.contains("font-") => ObjectKind::Font,
            _ => return None,
        })
    }

    /// The kind that the ending of a URL's path tells; `None` if it tells nothing.
    pub fn from_url_path(url: &str) -> Option<ObjectKind> {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or_default();
        let (_, ending) = file.rsplit_once('.')?;
        Some(match ending.to_ascii_lowercase().as_str() {
            "html" | "htm" | "xhtml" => ObjectKind::Document,
            "css" => ObjectKind::Stylesheet,
            "js" | "mjs" => ObjectKind::Script,
            "woff" | "woff2" | "ttf" | "otf" | "eot" => ObjectKind::Font,
            "json" => ObjectKind::Xhr,
            "png" | "jpg" | "jpeg" | "gif" | "webp" | "avif" | "svg" | "ico" => ObjectKind::Image,
            "mp4" | "webm" | "mp3" | "m4a" | "m4s" | "ogg" | "ts" => ObjectKind::Media,
            _ => return None,
        })
    }
}

impl SniffedClass {
    /// The class that the framework paper's client would detect. The media type of the response
    /// stands for the content: our choice for pages other than the paper's, whose files carry
    /// the detected class.
    pub fn detect(mime: &str, empty: bool) -> SniffedClass {
        let essence = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            _ if empty => SniffedClass::Other,
            "text/html" => SniffedClass::Html,
            "text/xml" => SniffedClass::Other,
            _ if essence.starts_with("text/") || essence.contains("javascript") => {
                SniffedClass::Plain
            }
            _ if essence.starts_with("image/") => SniffedClass::Image,
            _ if essence.starts_with("font/") => SniffedClass::Font,
            _ => SniffedClass::Other,
        }
    }

    /// The class that the content of an object of `kind` usually has.
    pub fn of_kind(kind: ObjectKind) -> SniffedClass {
        match kind {
            ObjectKind::Document => SniffedClass::Html,
            ObjectKind::Stylesheet | ObjectKind::Script => SniffedClass::Plain,
            ObjectKind::Image => SniffedClass::Image,
            ObjectKind::Font => SniffedClass::Font,
            _ => SniffedClass::Other,
        }
    }

    /// The class of a word written by the paper's client; `None` for an unknown word.
    pub fn from_word(word: &str) -> Option<SniffedClass> {
        Some(match word {
            "html" => SniffedClass::Html,
            "plain" => SniffedClass::Plain,
            "image" => SniffedClass::Image,
            "font" => SniffedClass::Font,
            "other" => SniffedClass::Other,
            _ => return None,
        })
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_all_producers_are_known() {
        assert_eq!(ObjectKind::from_resource_type("XHR"), Some(ObjectKind::Xhr));
        assert_eq!(ObjectKind::from_resource_type("Stylesheet"), Some(ObjectKind::Stylesheet));
        assert_eq!(ObjectKind::from_resource_type("weird"), None);
        for kind in ObjectKind::ALL {
            assert_eq!(ObjectKind::from_resource_type(kind.name()), Some(kind));
        }
    }

    #[test]
    fn media_types_and_endings_tell_the_kind() {
        let script = Some(ObjectKind::Script);
        assert_eq!(ObjectKind::from_mime("text/javascript; charset=UTF-8"), script);
        assert_eq!(ObjectKind::from_mime("application/x-font-woff"), Some(ObjectKind::Font));
        assert_eq!(ObjectKind::from_mime("application/octet-stream"), None);
        assert_eq!(ObjectKind::from_url_path("https://a.test/b.c/x.JS?v=1.png"), script);
        assert_eq!(ObjectKind::from_url_path("https://a.test/x"), None);
    }

    #[test]
    fn markdown_and_css_and_scripts_sniff_as_plain_text() {
        for mime in ["text/css", "text/markdown; charset=utf-8", "application/javascript"] {
            assert_eq!(SniffedClass::detect(mime, false), SniffedClass::Plain);
        }
        assert_eq!(SniffedClass::detect("text/css", true), SniffedClass::Other);
    }
}
