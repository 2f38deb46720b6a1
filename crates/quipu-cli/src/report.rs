//! `quipu report`.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

use quipu_record::write_whole;
use quipu_report::document::Document;
use quipu_report::page::{inline, page};
use quipu_report::{Options, report};
use quipu_study::replay::Replayer;

use crate::args::ReportOptions;
use crate::failure::Failure;
use crate::own::Own;

/// The name of the file in the folder of the results.
const FILE: &str = "report.html";

/// What the first bytes of a report have.
const BEGINNING: &str = "<!doctype html>";

pub(crate) fn run(options: &ReportOptions, own: &Own<'_>) -> Result<(), Failure> {
    let loads = options.load.iter().map(|name| name.parse()).collect::<Result<Vec<_>, String>>();
    let loads = loads.map_err(|reason| Failure::Usage(format!("--load: {reason}")))?;
    let file = options.out.clone().unwrap_or_else(|| options.folder.join(FILE));
    check(&file, options.force)?;
    let document = report(&options.folder, &Options { loads }, &Replayer(own.registry))
        .map_err(Failure::usage)?;
    for notice in &document.notices {
        eprintln!("note: {notice}");
    }
    let html = page(&document);
    write(&file, &html)?;
    let figures: usize = document.sections.iter().map(|section| section.figures.len()).sum();
    let mut line = format!("{}: {}, {figures} figures", file.display(), size(html.len()));
    if let Some(folder) = &options.specs {
        specs(&document, folder)?;
        line.push_str(&format!("; their specifications are in {}", folder.display()));
    }
    match document.notices.len() {
        0 => {}
        1 => line.push_str("; 1 notice"),
        notices => line.push_str(&format!("; {notices} notices")),
    }
    own.terminal.print(&format!("{line}\n"))
}

/// Makes sure, before anything is read, that `file` may be written: it is new, or a report.
fn check(file: &Path, force: bool) -> Result<(), Failure> {
    if file.is_dir() {
        return Err(Failure::Usage(format!(
            "--out: {} is a folder; expected a file such as {}",
            file.display(),
            file.join(FILE).display()
        )));
    }
    let mut beginning = [0; BEGINNING.len()];
    let found = match fs::File::open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::Run(format!("cannot read {}: {error}", file.display()))),
        Ok(mut there) => there.read_exact(&mut beginning).is_ok(),
    };
    if force || (found && beginning.eq_ignore_ascii_case(BEGINNING.as_bytes())) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} is there and is no report; --force replaces it",
        file.display()
    )))
}

fn write(file: &Path, content: &str) -> Result<(), Failure> {
    let made = match file.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => fs::create_dir_all(parent),
        None => Ok(()),
    };
    made.and_then(|()| write_whole(file, content))
        .map_err(|error| Failure::Run(format!("cannot write {}: {error}", file.display())))
}

/// Writes each figure of `document` as a specification of its own into `folder`.
fn specs(document: &Document, folder: &Path) -> Result<(), Failure> {
    for figure in document.sections.iter().flat_map(|section| &section.figures) {
        let spec = serde_json::to_string(&inline(document, figure)).map_err(Failure::run)?;
        write(&folder.join(format!("{}.vl.json", figure.id)), &format!("{spec}\n"))?;
    }
    Ok(())
}

/// Bytes in words.
fn size(bytes: usize) -> String {
    match bytes as f64 {
        bytes if bytes >= 1e6 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.0} kB", bytes / 1e3),
    }
}
