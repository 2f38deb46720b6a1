//! The text of a scenario file, in which the place of each field can be found again.

use std::ops::Range;
use std::path::{Path, PathBuf};

use quipu_record::read_at_most;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::ScenarioError;
use super::field_path::{Step, joined, steps};
use super::finding::{Finding, Findings, Place, Spot, shortened};
use super::input::FileUse;

/// A scenario file as it was read.
#[derive(Clone, Debug)]
pub struct Document {
    file: String,
    text: String,
    folder: PathBuf,
}

/// A key of a table, with its value.
type Entry<'t, 'i> = (&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>);

impl Document {
    /// `text` as the content of `file`, from whose folder names of other files count.
    pub fn new(text: impl Into<String>, file: impl Into<String>) -> Document {
        let file = file.into();
        let folder = Path::new(&file).parent().unwrap_or(Path::new("")).to_owned();
        Document { file, text: text.into(), folder }
    }

    /// The same, where names of other files count from `folder`.
    #[must_use]
    pub fn in_folder(self, folder: &Path) -> Document {
        Document { folder: folder.to_owned(), ..self }
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If it is unreadable or larger than 64 MiB.
    pub fn read(path: &Path) -> Result<Document, ScenarioError> {
        Ok(Document::new(read_text(path)?, path.display().to_string()))
    }

    /// Its content.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The folder from which names of other files count; empty for the current one.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the file is called.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// What is said of a file where nothing else can be said.
    pub fn unreadable(&self) -> Findings {
        let finding = Finding::new("", "no scenario", "").at(Place::File(self.spot(0..0)));
        Findings::one(finding)
    }

    /// Its tables with their places.
    ///
    /// # Errors
    /// What is no TOML, one finding for each line.
    pub(super) fn parse(&self) -> Result<Spanned<DeTable<'_>>, Vec<Finding>> {
        let (root, errors) = DeTable::parse_recoverable(&self.text);
        let mut findings: Vec<(usize, Finding)> = Vec::new();
        for error in errors {
            let span = error.span().unwrap_or_default();
            let spot = self.spot(span);
            // What follows in the same line mostly comes of the first.
            if findings.iter().all(|(line, _)| *line != spot.line) {
                let line = spot.line;
                let finding = Finding::new("", error.message().replace('\n', ", "), "");
                findings.push((line, finding.at(Place::File(spot))));
            }
        }
        match findings.is_empty() {
            true => Ok(root),
            false => Err(findings.into_iter().map(|(_, finding)| finding).collect()),
        }
    }

    /// Its tables, where files that describe networks are named from anywhere.
    ///
    /// # Errors
    /// See [`Document::parse`].
    pub(super) fn located(&self) -> Result<Spanned<DeTable<'_>>, Vec<Finding>> {
        let mut root = self.parse()?;
        if let Some(networks) = root.get_mut().get_mut("networks")
            && let DeValue::Array(list) = networks.get_mut()
        {
            for item in list.iter_mut() {
                if let DeValue::String(name) = item.get_mut()
                    && let Some(located) = FileUse::Network.located(name, &self.folder)
                {
                    *name = located.into();
                }
            }
        }
        Ok(root)
    }

    /// What `error`, of reading this text, tells, with place and field.
    pub(super) fn refused(&self, error: &toml::de::Error) -> Finding {
        let message = error.message().replace('\n', ", ");
        let Some(span) = error.span() else { return Finding::new("", message, "") };
        let field = match self.parse() {
            Ok(root) => field_at(root.get_ref(), &span),
            Err(_) => String::new(),
        };
        Finding::new(field, message, "").at(Place::File(self.spot(span)))
    }

    /// The place of bytes `span`.
    pub(super) fn spot(&self, span: Range<usize>) -> Spot {
        Spot::new(&self.file, &self.text, span)
    }

    /// The text of bytes `span`, in short.
    pub(super) fn value_text(&self, span: Range<usize>) -> String {
        shortened(self.text.get(span).unwrap_or_default())
    }

    /// The place of the field with that path, or of the nearest table or list around it that is
    /// there; the start of the file if nothing of it is.
    pub fn locate(&self, field: &str) -> Spot {
        let span = self.parse().map(|root| span_of(root.get_ref(), field)).unwrap_or_default();
        self.spot(span)
    }
}

impl ScenarioError {
    /// What `toml` found wrong in `text`, the content of `file`.
    pub fn toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let finding = Document::new(text, file).refused(error);
        ScenarioError::Found(Findings::one(finding))
    }
}

/// Bytes of the value of `field`, or of what is there of the way to it.
fn span_of(root: &DeTable<'_>, field: &str) -> Range<usize> {
    let mut span = 0..0;
    let mut table = Some(root);
    let mut list: Option<&toml::de::DeArray<'_>> = None;
    for step in steps(field) {
        let value = match step {
            Step::Key(key) => table.and_then(|table| table.get(key)),
            Step::Index(index) => list.and_then(|list| list.get(index)),
        };
        let Some(value) = value else { break };
        span = value.span();
        (table, list) = match value.get_ref() {
            DeValue::Table(table) => (Some(table), None),
            DeValue::Array(list) => (None, Some(list)),
            _ => (None, None),
        };
    }
    span
}

/// The path of what stands at `span`: exactly there, or else closest around its start.
fn field_at(root: &DeTable<'_>, span: &Range<usize>) -> String {
    struct Search<'s> {
        span: &'s Range<usize>,
        /// Length of what was found, and its path. Of equals the last, which is the innermost.
        best: Option<(usize, String)>,
    }
    impl Search<'_> {
        fn offer(&mut self, found: &Range<usize>, path: &str) {
            let around = found.start <= self.span.start && self.span.end <= found.end;
            if around && self.best.as_ref().is_none_or(|(best, _)| found.len() <= *best) {
                self.best = Some((found.len(), path.to_owned()));
            }
        }
        fn table(&mut self, table: &DeTable<'_>, path: &str) {
            for (key, value) in table {
                let path = joined(path, key.get_ref());
                self.offer(&key.span(), &path);
                self.value(value, &path);
            }
        }
        fn value(&mut self, value: &Spanned<DeValue<'_>>, path: &str) {
            self.offer(&value.span(), path);
            match value.get_ref() {
                DeValue::Table(table) => self.table(table, path),
                DeValue::Array(list) => {
                    for (index, item) in list.iter().enumerate() {
                        self.value(item, &format!("{path}[{index}]"));
                    }
                }
                _ => {}
            }
        }
    }
    let mut search = Search { span, best: None };
    search.table(root, "");
    search.best.map(|(_, path)| path).unwrap_or_default()
}

/// Entries of a table in the order of the file.
pub(super) fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<Entry<'t, 'i>> {
    let mut entries: Vec<Entry<'t, 'i>> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// The text of the file at `path`, at most 64 MiB of it.
///
/// # Errors
/// If it is unreadable or larger.
pub fn read_text(path: &Path) -> Result<String, ScenarioError> {
    const MOST: u64 = 64 << 20;
    let failed = |source| ScenarioError::Read { file: path.display().to_string(), source };
    let Some(bytes) = read_at_most(path, MOST).map_err(failed)? else {
        return Err(ScenarioError::invalid("file", path.display(), "at most 64 MiB"));
    };
    let no_text = |error| failed(std::io::Error::new(std::io::ErrorKind::InvalidData, error));
    String::from_utf8(bytes).map_err(no_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
runs = 3
pages = [\"a\",
    \"b\"]
measure.from = \"1s\"
[transport]
ecn = true
[[networks]]
name = \"n\"
paths = [{ name = \"q\", down = { rate = \"1mbit\", delay = \"2ms\" } }]
[[networks]]
name = \"m\"
";

    #[test]
    fn a_field_is_found_where_it_stands_or_else_what_is_around_it() {
        let document = Document::new(TEXT, "a.toml");
        let at = |field: &str| {
            let spot = document.locate(field);
            (spot.line, spot.column)
        };
        assert_eq!(at("runs"), (1, 8));
        assert_eq!(at("pages[1]"), (3, 5));
        assert_eq!(at("pages[7]"), (2, 9));
        assert_eq!(at("measure.from"), (4, 16));
        assert_eq!(at("transport.ecn"), (6, 7));
        assert_eq!(at("transport.pacing"), (5, 1));
        assert_eq!(at("networks[0].paths[0].down.delay"), (9, 57));
        assert_eq!(at("networks[0].paths[0].down.loss"), (9, 31));
        assert_eq!(at("networks[0].paths[0].down.rate.deeper"), (9, 40));
        assert_eq!(at("networks[1].paths"), (10, 1));
        assert_eq!(at("session"), (1, 1));
        assert_eq!(at(""), (1, 1));
    }

    #[test]
    fn what_the_reader_refuses_has_the_path_of_its_field() {
        let document = Document::new(TEXT, "a.toml");
        let root = document.parse().unwrap();
        let field = |text: &str| {
            let start = TEXT.find(text).unwrap();
            field_at(root.get_ref(), &(start..start + text.len()))
        };
        assert_eq!(field("\"2ms\""), "networks[0].paths[0].down.delay");
        assert_eq!(field("rate"), "networks[0].paths[0].down.rate");
        assert_eq!(field("true"), "transport.ecn");
        assert_eq!(field("[transport]"), "transport");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_without_an_end_is_refused() {
        let error = read_text(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "file is /dev/zero; expected at most 64 MiB");
    }

    #[test]
    fn each_line_that_is_no_toml_is_told() {
        let document = Document::new("a = = 3\nb = 2\nc\n", "a.toml");
        let told: Vec<String> =
            document.parse().unwrap_err().iter().map(Finding::to_string).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("a.toml:1:5: extra `=`"), "{told:?}");
        assert!(told[1].starts_with("a.toml:3:"), "{told:?}");
    }
}
