//! `quipu page show`.

use quipu_lab::pages::LoadedPage;

use crate::failure::Failure;

pub(crate) fn show(name: &str, all: bool) -> Result<(), Failure> {
    let page = LoadedPage::load(name).map_err(Failure::usage)?;
    let report = &page.report;
    crate::print(&if all { format!("{report:#}\n") } else { format!("{report}\n") })
}
