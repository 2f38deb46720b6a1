//! The experiments that come with the program, and the choice of some by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::error::ExperimentError;
use quipu_record::verdict::Paper;
use quipu_scenario::ScenarioError;
use quipu_scenario::experiment::{Case, cases};

/// Every file in `experiments/` and its text, sorted by path: written by the build script.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

const _: () = assert!(
    !FILES.is_empty(),
    "there is no experiment: `experiments/` does not lie beside `crates/`"
);

/// Where a case is from, for what lies beside its file.
#[derive(Clone, Debug)]
pub enum Origin {
    /// It comes with the program.
    Builtin,
    /// A folder.
    Folder(PathBuf),
}

impl Origin {
    /// The text of the file `name` that lies beside that of a case, which is `file`.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) fn text_beside(&self, file: &str, name: &str) -> Result<String, String> {
        match self {
            Origin::Builtin => {
                let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
                let path = format!("{folder}/{name}");
                let found = FILES.iter().find(|(known, _)| *known == path);
                let text = found.map(|(_, text)| (*text).to_owned());
                text.ok_or_else(|| "no such file comes with the program".to_owned())
            }
            Origin::Folder(folder) => {
                let text = quipu_scenario::read_text(&folder.join(name));
                text.map_err(|error| error.to_string())
            }
        }
    }
}

/// The ids that come with the program: by paper, then by file.
///
/// # Errors
/// If a file is not of the form wanted, or two have the same id.
pub fn builtin() -> Result<Vec<Case>, ScenarioError> {
    let mut all = Vec::new();
    for (path, text) in FILES.iter().filter(|(path, _)| path.ends_with(".toml")) {
        all.extend(cases(text, path)?);
    }
    unlike(all.iter())?;
    // Stable, so files and ids keep their order.
    all.sort_by_key(|case| case.experiment.paper);
    Ok(all)
}

fn unlike<'a>(all: impl Iterator<Item = &'a Case>) -> Result<(), ScenarioError> {
    let mut seen = BTreeMap::new();
    for case in all {
        if let Some(file) = seen.insert(case.id.as_str(), &case.file) {
            let value = format!("{} in {file} and {}", case.id, case.file);
            return Err(ScenarioError::invalid("experiment.id", value, "ids that are unlike"));
        }
    }
    Ok(())
}

/// The ids in the scenario file at `path`.
///
/// # Errors
/// If it is unreadable, no scenario, or without an experiment.
pub fn load(path: &Path) -> Result<Vec<(Case, Origin)>, ExperimentError> {
    let file = path.display().to_string();
    let text = quipu_scenario::read_text(path)?;
    let found = cases(&text, &file)?;
    if found.is_empty() {
        let expected = "a table [experiment], which `quipu reproduce` needs";
        return Err(ScenarioError::invalid(file, "without an experiment", expected).into());
    }
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    Ok(found.into_iter().map(|case| (case, Origin::Folder(folder.clone()))).collect())
}

/// The ids that `names` choose: ids, beginnings of ids, papers and files; all that come with the program
/// if there are none.
///
/// # Errors
/// If a name chooses nothing, or a file cannot be read.
pub fn choose(names: &[String]) -> Result<Vec<(Case, Origin)>, ExperimentError> {
    let builtin = builtin()?;
    let mut chosen: Vec<(Case, Origin)> = Vec::new();
    if names.is_empty() {
        chosen.extend(builtin.into_iter().map(|case| (case, Origin::Builtin)));
        return Ok(chosen);
    }
    for name in names {
        let found = if name.ends_with(".toml") {
            load(Path::new(name))?
        } else {
            let wanted = builtin.iter().filter(|case| is_meant(name, case));
            wanted.map(|case| (case.clone(), Origin::Builtin)).collect()
        };
        if found.is_empty() {
            let papers = Paper::ALL.iter().map(|paper| paper.name());
            let known = builtin.iter().map(|case| case.id.as_str()).chain(papers);
            return Err(ScenarioError::unknown("experiment", name, known).into());
        }
        for (case, origin) in found {
            if !chosen.iter().any(|(other, _)| other.id == case.id && other.file == case.file) {
                chosen.push((case, origin));
            }
        }
    }
    unlike(chosen.iter().map(|(case, _)| case))?;
    Ok(chosen)
}

/// True if `name` is the id, a beginning of it up to a `-`, or its paper.
fn is_meant(name: &str, case: &Case) -> bool {
    let rest = case.id.strip_prefix(name);
    case.experiment.paper.name() == name
        || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::reproduce::{Effort, Job};
    use quipu_lab::policies::Registry;

    #[test]
    fn every_file_of_the_folder_comes_with_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let mut open = vec![root.clone()];
        let mut found = Vec::new();
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|it| it == "toml" || it == "csv") {
                    let name = path.strip_prefix(&root).unwrap();
                    let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
                    found.push((parts.join("/"), std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
        found.sort();
        assert!(found.len() > 10);
        let listed: Vec<(String, String)> =
            FILES.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        assert_eq!(listed, found);
    }

    /// Every experiment can be planned, in full and quick: its policies, networks and pages exist, and so do
    /// the papers' numbers.
    #[test]
    fn every_experiment_is_sound() {
        for (case, origin) in choose(&[]).unwrap() {
            let id = case.id.clone();
            for effort in [Effort::WHOLE, Effort::QUICK] {
                let job = Job::new(
                    case.clone(),
                    &origin,
                    effort,
                    &Registry::builtin(),
                    &Arc::default(),
                    None,
                );
                let job = job.unwrap_or_else(|error| panic!("{id}: {error}"));
                assert!(job.runs() > 0, "{id}");
                assert_eq!(job.keys().unwrap().len(), job.runs(), "{id}");
            }
        }
    }

    #[test]
    fn names_choose_ids_papers_and_beginnings() {
        let text = "[experiment]\nid = \"fw-fig6-{page}\"\npaper = \"framework\"\ntitle = \"t\"\n\
                    [[experiment.rules]]\nname = \"r\"\nclaim = \"c\"\nmetric = \"page\"\n\
                    value = \"> 1s\"";
        let case = &cases(text, "a.toml").unwrap()[0];
        assert_eq!(case.id, "fw-fig6-framework-youtube");
        for (name, meant) in [
            ("framework", true),
            ("fw-fig6", true),
            ("fw-fig6-framework-youtube", true),
            ("fw", true),
            ("fw-fig", false),
            ("fw-fig6-framework-youtube-x", false),
            ("ns3", false),
        ] {
            assert_eq!(is_meant(name, case), meant, "{name}");
        }
        let error = choose(&["framewrk".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("did you mean `framework`?"), "{error}");
    }
}
