//! The experiments that come with the project: every figure and table of the papers has its id, and every
//! file is of the form that `quipu reproduce` reads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use quipu_lab::plan::Plan;
use quipu_record::verdict::Paper;
use quipu_scenario::experiment::{Case, cases};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

/// All ids of all files.
fn all() -> Vec<Case> {
    let mut all = Vec::new();
    let papers = std::fs::read_dir(folder()).unwrap().map(|paper| paper.unwrap().path());
    let mut files: Vec<PathBuf> = papers
        .filter(|paper| paper.is_dir())
        .flat_map(|paper| std::fs::read_dir(paper).unwrap().map(|file| file.unwrap().path()))
        .filter(|file| file.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        all.extend(cases(&text, &file.display().to_string()).unwrap());
    }
    all
}

#[test]
fn every_figure_and_table_of_the_papers_has_its_id() {
    let ids: BTreeSet<String> = all().into_iter().map(|case| case.id).collect();
    let mut wanted: Vec<String> = [
        "fw-tab1",
        "fw-tab2",
        "mh-fig2",
        "mh-fig3a",
        "mh-fig3b",
        "mh-fig4",
        "mh-fig5a",
        "mh-fig5b",
        "mh-fig6",
        "pp-fig6",
        "pp-fig7",
        "pp-fig8",
        "pp-fig9",
        "pp-fig10",
        "pp-fig12",
        "pp-fig13",
        "ns3-fig2",
        "ns3-fig3a",
        "ns3-fig3b",
        "ns3-fig4",
        "ns3-fig6",
        "ns3-tab1",
        "ns3-edf",
        "mobility",
        "fw-clients",
        "fw-servers",
    ]
    .map(str::to_owned)
    .to_vec();
    for browser in ["chrome", "firefox", "safari"] {
        wanted.push(format!("fw-fig7-{browser}"));
        for page in ["google", "youtube", "amazon"] {
            for level in ["low-a", "low-b", "medium", "high"] {
                wanted.push(format!("fw-fig6-{page}-{browser}-{level}"));
            }
        }
    }
    let missing: Vec<&String> = wanted.iter().filter(|id| !ids.contains(*id)).collect();
    assert!(missing.is_empty(), "missing: {missing:?}");
}

#[test]
fn ids_are_unlike_and_their_scenarios_run() {
    let mut ids = BTreeSet::new();
    for case in all() {
        assert!(ids.insert(case.id.clone()), "{} is there twice", case.id);
        let plan = Plan::new(case.scenario.clone());
        let Err(error) = plan else { continue };
        panic!("{}: {error}", case.id);
    }
}

#[test]
fn papers_runs_are_thirty_at_least() {
    for case in all() {
        // What chance does not decide needs one run.
        let random = case.scenario.networks.iter().any(|network| case.scenario.is_random(network));
        let flows = case.scenario.pages.is_empty();
        let input = case.id.starts_with("fw-tab");
        let own = case.experiment.paper == Paper::Quipu;
        let enough = case.scenario.runs >= 30 || !random || flows || input || own;
        assert!(enough, "{}: {} runs", case.id, case.scenario.runs);
    }
}
