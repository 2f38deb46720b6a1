//! What a page of a scenario is called: a recording, or a page that a model draws.

use super::error::ScenarioError;
use super::form::text::any;
use super::form::{Names, Numbers, Text};
use super::input::is_recording;

/// The name of the model of Pries et al.
pub const PRIES: &str = "pries";

/// A page as a scenario names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageName<'a> {
    /// A page of the model, another in each run.
    Drawn,
    /// The page of the model that run `n` would draw, in every run.
    DrawnAt(u64),
    /// A page that comes with the program, or a file.
    Recorded(&'a str),
}

impl<'a> PageName<'a> {
    /// Reads the name of a file that exists, `pries`, `pries:N`, or anything else as the name of a recording.
    ///
    /// # Errors
    /// If `N` is no number.
    pub fn parse(name: &'a str) -> Result<PageName<'a>, ScenarioError> {
        if PageName::is_file(name) {
            return Ok(PageName::Recorded(name));
        }
        let Some((PRIES, index)) = name.split_once(':') else {
            return Ok(if name == PRIES { PageName::Drawn } else { PageName::Recorded(name) });
        };
        let expected = "pries, or pries:N with a whole number N";
        let index = index.parse().map_err(|_| ScenarioError::invalid("page", name, expected))?;
        Ok(PageName::DrawnAt(index))
    }

    /// True if runs differ by chance in what they load.
    pub fn is_random(self) -> bool {
        self == PageName::Drawn
    }

    /// True if the recording called `name` is a file rather than one that comes with the program: if there is
    /// such a file, or it is named as only files are.
    pub fn is_file(name: &str) -> bool {
        is_recording(name)
    }
}

/// A page.
pub(crate) static PAGE: Text = Text {
    name: "page",
    expected: "the name of a page, a HAR file, pries, or pries:N",
    pattern: r"^(pries:\+?[0-9]{1,20}|(?!pries:).*\S.*)$",
    accepts: |text| any(text) && PageName::parse(text).is_ok(),
    numbers: Numbers::None,
    names: Names::Usual(|| {
        let recorded = quipu_web::pages::builtin().iter().map(|page| page.name);
        recorded.chain([PRIES]).map(str::to_owned).collect()
    }),
    examples: &["framework-youtube", "recordings/shop.har", "pries", "pries:3"],
    refused: &["", "pries:x"],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_model_and_its_pages_are_drawn() {
        let parse = |name| PageName::parse(name).map_err(|error| error.to_string());
        assert_eq!(parse("pries"), Ok(PageName::Drawn));
        assert_eq!(parse("pries:3"), Ok(PageName::DrawnAt(3)));
        assert_eq!(parse("wikipedia"), Ok(PageName::Recorded("wikipedia")));
        assert_eq!(parse("c:/pries.har"), Ok(PageName::Recorded("c:/pries.har")));
        let error = parse("pries:-1").unwrap_err();
        assert_eq!(error, "page is pries:-1; expected pries, or pries:N with a whole number N");
    }
}
