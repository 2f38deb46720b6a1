//! The page of the docs: what became of the papers' claims. Beside it, in a folder of its name, lie the verdicts
//! that it is made of (`verdicts.json`), all rules as a table, and a picture for each figure. Texts beside the page
//! may show tables of results.
//!
//! Everything but `verdicts.json` is written from it, so some ids can be run again and all else stays, and whoever
//! has the page can tell, without a run, whether it was changed by hand and which ids are not those of the
//! program.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::kept::{Kept, experiment_hash};
use super::{by_chance, figure, picture, result_table, text};
use quipu_record::verdict::Judged;
use quipu_record::write_whole;
use quipu_scenario::experiment::Case;

/// What the page is made of.
const STORE: &str = "verdicts.json";
/// All rules.
const RULES: &str = "verdicts.csv";

/// What the page says, id by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    kept: Vec<Kept>,
}

impl Page {
    /// A page of these ids, of which those in `cases` say what they are of.
    pub fn new(all: &[Judged], cases: &[Case]) -> Page {
        Page { kept: all.iter().map(|judged| Kept::new(judged, cases)).collect() }
    }

    /// The page in `file`, by what lies beside it.
    ///
    /// # Errors
    /// If that cannot be read.
    pub fn read(file: &Path) -> Result<Page, String> {
        let store = folder(file).join(STORE);
        let failed = |reason: &dyn std::fmt::Display| format!("{}: {reason}", store.display());
        let text = fs::read_to_string(&store).map_err(|error| failed(&error))?;
        let kept = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        Ok(Page { kept })
    }

    /// The same with what was found for some ids in place of what was there, in the order of `cases`. Ids that
    /// are none of these are left out.
    #[must_use]
    pub fn with(self, found: &[Judged], cases: &[Case]) -> Page {
        let new = Page::new(found, cases).kept;
        let of = |case: &Case| {
            let mut all = new.iter().chain(&self.kept);
            all.find(|kept| kept.judged.id == case.id).cloned()
        };
        Page { kept: cases.iter().filter_map(of).collect() }
    }

    /// Writes the page into `file`, and what belongs to it into the folder beside.
    ///
    /// # Errors
    /// The file that cannot be written, and why; and a text that names a table that is not there.
    pub fn write(&self, file: &Path) -> Result<(), (PathBuf, io::Error)> {
        let folder = folder(file);
        fs::create_dir_all(&folder).map_err(|source| (folder.clone(), source))?;
        for (path, content) in self.files(file) {
            write_whole(&path, content).map_err(|source| (path, source))?;
        }
        for path in self.foreign(file) {
            fs::remove_file(&path).map_err(|source| (path, source))?;
        }
        for (path, text) in texts(file) {
            let invalid =
                |reason| (path.clone(), io::Error::new(io::ErrorKind::InvalidData, reason));
            let renewed = result_table::renewed(&text, &self.all()).map_err(invalid)?;
            write_whole(&path, renewed).map_err(|source| (path, source))?;
        }
        Ok(())
    }

    fn all(&self) -> Vec<&Judged> {
        self.kept.iter().map(|kept| &kept.judged).collect()
    }

    /// Pictures in the folder that are none of the page.
    fn foreign(&self, file: &Path) -> Vec<PathBuf> {
        let own = self.files(file);
        let entries = fs::read_dir(folder(file)).into_iter().flatten().flatten();
        let mut all: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "svg"))
            .filter(|path| !own.contains_key(path))
            .collect();
        all.sort();
        all
    }

    /// Everything that is written, by its path.
    fn files(&self, file: &Path) -> BTreeMap<PathBuf, String> {
        let folder = folder(file);
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let figures = figure::figures(&self.kept);
        let mut files = BTreeMap::new();
        for figure in &figures {
            for (kind, drawn) in picture::all(figure) {
                files.insert(folder.join(format!("{}{kind}.svg", figure.name)), drawn);
            }
        }
        let all = self.all();
        files.insert(file.to_owned(), text::page(&all, &figures, Some(&name)));
        files.insert(folder.join(RULES), super::rules_table(&all));
        files.insert(folder.join(STORE), self.store());
        files
    }

    /// The page as Markdown, without pictures.
    pub(super) fn text(&self) -> String {
        let all = self.all();
        text::page(&all, &figure::figures(&self.kept), None)
    }

    /// A line for each id, so that differences are those of ids.
    fn store(&self) -> String {
        let line = |kept: &Kept| serde_json::to_string(kept).unwrap_or_default();
        let lines: Vec<String> = self.kept.iter().map(line).collect();
        format!("[\n{}\n]\n", lines.join(",\n"))
    }

    /// Checks, without a run, that `file` is this page, and that it has all of `cases`, each as it is now.
    ///
    /// # Errors
    /// What was changed by hand, or which ids are to be run again.
    pub fn check(&self, file: &Path, cases: &[Case]) -> Result<(), String> {
        for (path, content) in self.files(file) {
            // The store was read just now.
            let same =
                path.ends_with(STORE) || fs::read_to_string(&path).is_ok_and(|it| it == content);
            if !same {
                return Err(format!("{} was changed by hand", path.display()));
            }
        }
        if let Some(path) = self.foreign(file).first() {
            return Err(format!("{} is no picture of the page", path.display()));
        }
        for (path, text) in texts(file) {
            let path = path.display();
            let renewed = result_table::renewed(&text, &self.all());
            if renewed.map_err(|reason| format!("{path}: {reason}"))? != text {
                return Err(format!("{path}: its tables were changed by hand"));
            }
        }
        let is_stale = |case: &&Case| {
            let kept = self.kept.iter().find(|kept| kept.judged.id == case.id);
            kept.is_none_or(|kept| kept.experiment != experiment_hash(case))
        };
        let stale: Vec<&str> = cases.iter().filter(is_stale).map(|case| case.id.as_str()).collect();
        if !stale.is_empty() {
            let ids = stale.join(" ");
            return Err(format!(
                "not of the experiments as they are; run `quipu reproduce {ids} --docs FILE`"
            ));
        }
        let known = |kept: &&Kept| cases.iter().any(|case| case.id == kept.judged.id);
        match self.kept.iter().find(|kept| !known(kept)) {
            None => Ok(()),
            Some(kept) => Err(format!(
                "{} is no experiment any more; run any id with `quipu reproduce ID --docs FILE`",
                kept.judged.id
            )),
        }
    }

    /// Checks that each claim of a paper was held against chance, and that those that hold all the same say why.
    ///
    /// # Errors
    /// The claims that were not, or do not.
    pub fn check_by_chance(&self) -> Result<(), String> {
        let untried = by_chance::untried(self.all());
        if !untried.is_empty() {
            let names = untried.join(", ");
            return Err(format!("not held against chance, with --shuffles 40: {names}"));
        }
        match by_chance::unexplained(self.all()).as_slice() {
            [] => Ok(()),
            names => {
                let names = names.join(", ");
                Err(format!(
                    "hold also with policies exchanged by chance, without `by_chance`: {names}"
                ))
            }
        }
    }

    /// Checks that each number in the sentences on a paper stands in what the page has on it.
    ///
    /// # Errors
    /// The numbers that do not.
    pub fn check_summaries(&self) -> Result<(), String> {
        text::unfounded(&figure::figures(&self.kept))
    }
}

/// Where what belongs to the page in `file` lies.
fn folder(file: &Path) -> PathBuf {
    file.with_extension("")
}

/// Texts beside the page in `file` that show tables of results.
fn texts(file: &Path) -> BTreeMap<PathBuf, String> {
    let entries = file.parent().map(|folder| match folder.as_os_str().is_empty() {
        true => fs::read_dir("."),
        false => fs::read_dir(folder),
    });
    let paths = entries.into_iter().flatten().flatten().flatten().map(|entry| entry.path());
    let paths =
        paths.filter(|path| path.extension().is_some_and(|ext| ext == "md") && path != file);
    let text = |path: PathBuf| Some((fs::read_to_string(&path).ok()?, path));
    let all = paths.filter_map(text).filter(|(text, _)| result_table::has_any(text));
    all.map(|(text, path)| (path, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::docs::tests::judged;
    use quipu_scenario::experiment::cases;

    /// The file of the id `id`, whose threshold is `value`.
    fn case(id: &str, value: &str) -> Case {
        let text = format!(
            "[experiment]\nid = \"{id}\"\npaper = \"ns3\"\ntitle = \"t\"\n[[experiment.rules]]\n\
             name = \"r\"\nclaim = \"c\"\nmetric = \"page\"\nvalue = \"{value}\""
        );
        cases(&text, &format!("ns3/{id}.toml")).unwrap().remove(0)
    }

    fn found(id: &str, here: &str) -> Judged {
        let mut judged = Judged { id: id.to_owned(), file: format!("ns3/{id}.toml"), ..judged() };
        judged.rules[0].here = here.to_owned();
        judged
    }

    #[test]
    fn one_id_is_written_anew_and_all_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.md");
        let all = ["one", "two", "three"].map(|id| case(id, "> 1s"));
        let before = ["one", "two", "three"].map(|id| found(id, "2.000 ms"));
        let page = Page::new(&before, &all);
        page.write(&file).unwrap();
        page.check(&file, &all).unwrap();
        assert_eq!(Page::read(&file).unwrap().files(&file), page.files(&file));
        // Another threshold of one, and an id more.
        let mut changed = all.to_vec();
        changed[1] = case("two", "> 2s");
        changed.insert(1, case("four", "> 1s"));
        let wrong = page.check(&file, &changed).unwrap_err();
        assert!(wrong.contains("run `quipu reproduce four two --docs"), "{wrong}");
        let news = [found("four", "4.000 ms"), found("two", "3.000 ms")];
        let after = Page::read(&file).unwrap().with(&news, &changed);
        after.write(&file).unwrap();
        after.check(&file, &changed).unwrap();
        let whole = [&before[0], &news[0], &news[1], &before[2]].map(Clone::clone);
        assert_eq!(after.text(), Page::new(&whole, &changed).text());
        // One less.
        changed.remove(0);
        let wrong = after.check(&file, &changed).unwrap_err();
        assert!(wrong.contains("one is no experiment any more"), "{wrong}");
        let less = after.with(&[], &changed);
        less.write(&file).unwrap();
        less.check(&file, &changed).unwrap();
        assert!(!folder.path().join("page/one.svg").exists());
    }

    #[test]
    fn what_was_changed_by_hand_is_found_out_wherever() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.md");
        let all = [case("one", "> 1s"), case("two", "> 1s")];
        let page = Page::new(&[found("one", "2.000 ms"), found("two", "3.000 ms")], &all);
        page.write(&file).unwrap();
        page.check(&file, &all).unwrap();
        let names: Vec<PathBuf> = page.files(&file).into_keys().collect();
        assert!(names.len() > 3, "{names:?}");
        for path in names {
            let text = fs::read_to_string(&path).unwrap();
            let changed = text.replacen('2', "3", 1);
            assert_ne!(changed, text, "{}", path.display());
            fs::write(&path, changed).unwrap();
            let wrong = Page::read(&file).and_then(|page| page.check(&file, &all));
            assert!(wrong.is_err(), "{}", path.display());
            fs::write(&path, text).unwrap();
            Page::read(&file).unwrap().check(&file, &all).unwrap();
        }
        fs::write(folder.path().join("page/other.svg"), "").unwrap();
        let wrong = page.check(&file, &all).unwrap_err();
        assert!(wrong.contains("other.svg is no picture of the page"), "{wrong}");
    }
}
