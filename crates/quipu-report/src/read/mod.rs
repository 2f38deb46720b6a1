//! Reads result folders: everything that can be read, and a notice for what cannot.

mod find;
mod networks;
mod places;
pub(crate) mod summary;
mod table;
pub(crate) mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quipu_record::verdict::Judged;

use self::summary::{Failure, Identical, Page, Sharing, Status, Summary, json, place};
use self::tables::Folder;
use crate::ReportError;
use crate::aggregate::ratios::fill;
use crate::document::Program;
use crate::notices::Notices;
use crate::results::{Place, Results};
use quipu_record::Metric;

pub(crate) use find::{Kind, Source, name_of};
pub(crate) use networks::{NetworkPath, Networks};

/// A folder as it was read.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    /// What it is.
    pub(crate) kind: Kind,
    /// Its name.
    pub(crate) name: String,
    /// Folders with tables.
    pub(crate) sources: Vec<Source>,
    /// What tables say.
    pub(crate) results: Results,
    /// Paths of networks.
    pub(crate) networks: Networks,
    /// Verdicts of ids.
    pub(crate) judged: Vec<Judged>,
    /// The programs that wrote the results, each with the number of folders.
    pub(crate) programs: BTreeMap<Program, u64>,
    /// The world that results are from.
    pub(crate) world: String,
    /// Seed of the first folder: intervals are drawn from it.
    pub(crate) seed: u64,
    /// Runs that ended well, and those planned, as far as summaries tell.
    pub(crate) runs: (u64, u64),
    /// Runs that failed, and where.
    pub(crate) failures: Vec<(Place, Failure)>,
    /// Policies that gave the same, and where.
    pub(crate) identical: Vec<(Place, Identical)>,
    /// How evenly flows share, and where.
    pub(crate) sharing: Vec<(Place, Sharing)>,
    /// Pages, by name.
    pub(crate) pages: Vec<Page>,
}

/// Reads `folder`.
///
/// # Errors
/// If it is not there, or holds no result.
pub(crate) fn read(folder: &Path, notices: &mut Notices) -> Result<Folders, ReportError> {
    let found = find::find(folder, notices)?;
    let mut read = Folders {
        kind: found.kind,
        name: name_of(folder),
        judged: found.judged,
        sources: found.sources,
        // That of scenarios that name none.
        seed: 1,
        ..Folders::default()
    };
    let sources = read.sources.clone();
    let folders: Vec<Folder<'_>> = sources.iter().map(Folder::of).collect();
    for folder in &folders {
        let fixed = folder.fixed.iter().map(|(name, _)| name.clone());
        for field in fixed.chain(tables::fields(folder, notices)) {
            if !read.results.fields.contains(&field) {
                read.results.fields.push(field);
            }
        }
    }
    for folder in &folders {
        tables::read(folder, &mut read.results, notices);
        read.networks.read(folder, &read.results, notices);
        read.told(folder, notices);
    }
    for scene in read.results.scenes.iter_mut().filter(|scene| scene.has_pages()) {
        fill(scene, Metric::PageTime, read.seed);
    }
    read.results.name_paths();
    read.check(notices);
    Ok(read)
}

impl Folders {
    /// Reads what the summary and the status of `folder` say.
    fn told(&mut self, folder: &Folder<'_>, notices: &mut Notices) {
        let called =
            if folder.label.is_empty() { self.name.clone() } else { folder.label.to_owned() };
        let summary: Option<Summary> = json(folder.path, folder.label, "summary.json", notices);
        let status: Option<Status> = json(folder.path, folder.label, "status.json", notices);
        if let Some(status) = &status {
            let Status { planned, done, failed, .. } = *status;
            if done.saturating_add(failed) < planned {
                notices.add(format!(
                    "{called} is unfinished: {done} of {planned} runs are done; the report shows these."
                ));
            }
            if summary.is_none() {
                let Status { version, commit, program, profile, .. } = &status;
                self.programs_add([version, commit, program, profile]);
            }
        }
        let Some(summary) = summary else {
            if status.is_none() {
                notices.add(format!("{called} has no summary that can be read."));
            }
            return;
        };
        summary.fill(folder, &mut self.results);
        let Summary { version, commit, program, profile, .. } = &summary;
        self.programs_add([version, commit, program, profile]);
        if self.world.is_empty() {
            (self.world, self.seed) = (crate::notices::clean(&summary.world), summary.seed);
        }
        self.runs.0 = self.runs.0.saturating_add(summary.runs_finished);
        self.runs.1 = self.runs.1.saturating_add(summary.runs_planned);
        let failed = summary.failures.len() as u64;
        if failed > 0 {
            let runs = if failed == 1 { "1 run".to_owned() } else { format!("{failed} runs") };
            notices.add(format!("{called}: {runs} failed; see the failures."));
        }
        let open =
            summary.runs_planned.saturating_sub(summary.runs_finished).saturating_sub(failed);
        if status.is_none() && summary.complete == Some(false) && open > 0 {
            notices.add(format!(
                "{called} is incomplete: {} of {} runs finished.",
                summary.runs_finished, summary.runs_planned
            ));
        }
        let results = &self.results;
        let at = |page: &str, network: &str, fields: &summary::Fields| {
            place(results, folder, page, network, fields)
        };
        for it in summary.failures {
            self.failures.push((at(&it.page, &it.network, &it.fields), it));
        }
        for it in summary.identical {
            self.identical.push((at(&it.page, &it.network, &it.fields), it));
        }
        for it in summary.sharing {
            self.sharing.push((at(&it.page, &it.network, &it.fields), it));
        }
        for page in summary.pages {
            if !self.pages.iter().any(|known| known.name == page.name) {
                self.pages.push(page);
            }
        }
    }

    fn programs_add(&mut self, said: [&String; 4]) {
        let [version, commit, program, profile] = said.map(|text| crate::notices::clean(text));
        let program = Program { version, commit, program, profile };
        *self.programs.entry(program).or_default() += 1;
    }

    /// Notes what is wrong with all folders together.
    fn check(&self, notices: &mut Notices) {
        // By content where it is known: it may be the same at two commits.
        let identity = |it: &Program| match it.program.as_str() {
            "" => (it.version.clone(), it.commit.clone()),
            program => (it.version.clone(), program.to_owned()),
        };
        let different: BTreeSet<_> = self.programs.keys().map(identity).collect();
        if different.len() > 1 {
            let short = |commit: &str| match commit.split_once('-') {
                Some((commit, mark)) => format!("{commit:.8}-{mark}"),
                None => format!("{commit:.8}"),
            };
            let each =
                self.programs.iter().take(4).map(|(Program { version, commit, .. }, folders)| {
                    let folders = if *folders == 1 {
                        "1 folder".to_owned()
                    } else {
                        format!("{folders} folders")
                    };
                    format!("{version} at {} ({folders})", short(commit))
                });
            notices.add(format!(
                "The results are of {} versions of the program, which may differ for that reason \
                 alone: {}.",
                different.len(),
                each.collect::<Vec<_>>().join(", ")
            ));
        }
        if self.results.scenes.is_empty() {
            notices.add("No row of runs.csv could be read.");
        }
    }
}

impl<'a> Folder<'a> {
    fn of(source: &'a Source) -> Folder<'a> {
        Folder { path: &source.path, label: &source.label, fixed: &source.fixed }
    }
}
