//! `quipu page show` and `quipu page model`.

use quipu_lab::base::Seed;
use quipu_lab::pages::{LoadedPage, draw_sample};
use quipu_lab::table;

use crate::failure::Failure;

/// What the model of Pries et al. yields in `pages` pages, beside what it was fitted to.
pub(crate) fn model(name: &str, pages: u64, seed: u64) -> Result<(), Failure> {
    let sample = draw_sample(name, Seed::new(seed), pages).map_err(Failure::usage)?;
    crate::print(&format!(
        "{name}: {pages} pages of seed {seed}, beside Table 1 of the ns-3 QUIC paper\n{}",
        table::model(&sample)
    ))
}

pub(crate) fn show(name: &str, all: bool, seed: u64) -> Result<(), Failure> {
    let page = LoadedPage::load_or_draw(name, Seed::new(seed)).map_err(Failure::usage)?;
    let report = &page.report;
    crate::print(&if all { format!("{report:#}\n") } else { format!("{report}\n") })
}
