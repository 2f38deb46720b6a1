//! `quipu scenario check`.

use std::path::{Path, PathBuf};

use quipu_lab::policies::Registry;
use quipu_scenario::{Document, Finding};
use quipu_study::check::{check, summary};

use crate::args::FindingFormat;
use crate::failure::Failure;
use crate::own::Own;

/// Checks `files` and prints what is wrong with them.
pub(crate) fn run(files: &[PathBuf], format: FindingFormat, own: &Own<'_>) -> Result<(), Failure> {
    let mut all = Vec::new();
    let mut bad = Vec::new();
    for file in files {
        let findings = match of_file(file, own.registry) {
            Ok(fine) => {
                if format == FindingFormat::Text {
                    own.terminal.print(&format!("{}: fine: {fine}\n", file.display()))?;
                }
                continue;
            }
            Err(findings) => findings,
        };
        bad.push(file.display().to_string());
        if format == FindingFormat::Text {
            let texts = findings.iter().map(|finding| format!("{finding}\n{}", finding.excerpt()));
            own.terminal.print(&texts.collect::<String>())?;
        }
        all.extend(findings);
    }
    if format == FindingFormat::Json {
        crate::print(&quipu_scenario::findings_json(&all))?;
    }
    match bad.as_slice() {
        [] => Ok(()),
        bad => {
            let count = match all.len() {
                1 => "1 fault".to_owned(),
                more => format!("{more} faults"),
            };
            Err(Failure::Usage(format!("{count} in {}", bad.join(", "))))
        }
    }
}

/// What the scenario in `file` amounts to.
fn of_file(file: &Path, registry: &Registry) -> Result<String, Vec<Finding>> {
    let document = Document::read(file).map_err(|error| error.findings())?;
    match check(&document, registry) {
        Ok(plans) => Ok(summary(&plans)),
        Err(findings) => Err(findings.into_vec()),
    }
}
