//! The progress bar: on standard error, and only on a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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

#[cfg(test)]
mod tests {
    #[test]
    fn the_template_is_one() {
        assert!(
            super::style().is_ok() && super::rated_style().is_ok() && super::pages_style().is_ok()
        );
    }
}
