//! Progress bars, and texts that are drawn again: on standard error, and only on a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

/// A bar for `runs` runs.
pub(crate) fn bar(runs: u64) -> ProgressBar {
    styled(runs, style())
}

/// The same with the rate.
pub(crate) fn rated_bar(runs: u64) -> ProgressBar {
    styled(runs, rated_style())
}

/// A bar for `pages` pages.
pub(crate) fn pages(pages: u64) -> ProgressBar {
    styled(pages, pages_style())
}

/// A text of one or more lines, its message, that stays unless it is cleared.
pub(crate) fn text() -> ProgressBar {
    styled(0, text_style()).with_finish(ProgressFinish::AndLeave)
}

fn styled(runs: u64, style: Result<ProgressStyle, indicatif::style::TemplateError>) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(runs), target);
    // The template is constant and a test reads it; the default bar would do as well.
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn style() -> Result<ProgressStyle, indicatif::style::TemplateError> {
    ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} left")
}

fn rated_style() -> Result<ProgressStyle, indicatif::style::TemplateError> {
    ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {per_sec}, {eta} left")
}

fn pages_style() -> Result<ProgressStyle, indicatif::style::TemplateError> {
    ProgressStyle::with_template("{bar:30} {pos}/{len} pages, {eta} left")
}

fn text_style() -> Result<ProgressStyle, indicatif::style::TemplateError> {
    ProgressStyle::with_template("{msg}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_template_is_one() {
        use super::{pages_style, rated_style, style, text_style};
        for style in [style(), rated_style(), pages_style(), text_style()] {
            assert!(style.is_ok());
        }
    }
}
