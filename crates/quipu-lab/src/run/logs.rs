//! qlog files of runs.

use std::path::{Path, PathBuf};

pub use quipu_qlog::{Form, QlogError, QlogFolder};
use quipu_quic::recorder::RecorderFactory;

use crate::plan::{Cell, Plan};

/// Where the connections of runs are logged. Logging changes no result.
#[derive(Clone, Debug)]
pub struct Logs {
    folder: QlogFolder,
    of_many: bool,
    runs: Option<u32>,
}

impl Logs {
    /// Logs of one run go straight into `folder`, which is created if it is missing.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn of_one(folder: &Path, form: Form) -> Result<Logs, QlogError> {
        let folder = QlogFolder::create(folder, form, "")?;
        Ok(Logs { folder, of_many: false, runs: None })
    }

    /// Logs of many runs: each has a folder of its own in `folder`, named after page, network,
    /// policies and number. Of each combination the first `runs` are logged; `None`: all.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn of_many(folder: &Path, form: Form, runs: Option<u32>) -> Result<Logs, QlogError> {
        Ok(Logs { of_many: true, runs, ..Logs::of_one(folder, form)? })
    }

    /// How many files the runs of `plan` come to, if every path is opened.
    pub fn files(&self, plan: &Plan) -> usize {
        let of_run = |cell: Cell| {
            let network = plan.run_network(cell);
            let origins = plan.pages.get(cell.page).map(|page| page.origins(&plan.scenario));
            // Pages that could not be read are in no plan.
            let origins = origins.and_then(Result::ok).unwrap_or(0);
            let clients = usize::try_from(plan.scenario.clients.count).unwrap_or(usize::MAX);
            let page = std::iter::repeat_n(network.network.paths.len(), clients * origins);
            let flows = network.flow_paths.iter().filter(|paths| !paths.is_empty());
            let connections = page.chain(flows.map(Vec::len));
            let traces = connections.map(|paths| match self.folder.form() {
                Form::Current => 1,
                Form::Version03 => paths,
            });
            2 * traces.sum::<usize>()
        };
        plan.cells().filter(|cell| self.includes(*cell)).map(of_run).sum()
    }

    fn includes(&self, cell: Cell) -> bool {
        self.runs.is_none_or(|runs| cell.run < runs)
    }

    /// The recorders of a run, if it is logged.
    pub(crate) fn recorders(&self, plan: &Plan, cell: Cell) -> Option<RecorderFactory> {
        if !self.includes(cell) {
            return None;
        }
        let title = plan.name_of(cell);
        let inner = if self.of_many { folder_name(&title) } else { String::new() };
        Some(self.folder.within(&inner, &title).recorders())
    }

    /// The files of the runs that have ended, in order of name.
    ///
    /// # Errors
    /// The first that could not be written.
    pub fn finish(&self) -> Result<Vec<PathBuf>, QlogError> {
        self.folder.finish()
    }
}

/// The name of a run as one of a folder: blanks become `_`, and what file systems have other uses
/// for is written in hexadecimal digits, so that different names stay different.
fn folder_name(title: &str) -> String {
    let mut name = String::with_capacity(title.len());
    for character in title.chars() {
        match character {
            ' ' => name.push('_'),
            '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' | '%' | '_' => {
                name.push_str(&format!("%{:02x}", u32::from(character)));
            }
            other if other.is_control() => name.push_str(&format!("%{:02x}", u32::from(other))),
            other => name.push(other),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_runs_have_different_folders() {
        let names = ["a b, run 1", "a_b, run 1", "a/b, run 1", "a%2fb, run 1", "a:b, run 1"];
        let folders = names.map(folder_name);
        assert_eq!(folders[0], "a_b,_run_1");
        assert_eq!(folders[2], "a%2fb,_run_1");
        for (index, name) in folders.iter().enumerate() {
            assert!(!folders[..index].contains(name), "{name}");
            assert!(Path::new(name).components().count() == 1);
        }
    }
}
