//! `quipu scenario new`.

use std::path::Path;

use quipu_record::write_whole;
use quipu_scenario::{PageName, Template};

use crate::args::NewOptions;
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Given;

pub(crate) fn run(options: &NewOptions, own: &Own<'_>) -> Result<(), Failure> {
    let mut given = Given::load(None)?;
    given.choose(&options.page, &options.network)?;
    let fields = [
        ("browser", "--browser", &options.browser),
        ("runs", "--runs", &options.runs),
        ("policies.stream", "--stream", &options.stream),
        ("policies.path", "--path", &options.path),
        ("policies.congestion", "--congestion", &options.congestion),
    ];
    for (field, option, value) in fields {
        given.set(field, option, value.as_deref())?;
    }
    let folder = options.file.as_deref().and_then(Path::parent);
    if folder.is_some_and(|folder| !folder.as_os_str().is_empty()) {
        // Names in the file count from its folder.
        for page in given.scenario.pages.iter_mut().filter(|page| PageName::is_file(page)) {
            if let Ok(path) = std::path::absolute(&*page) {
                *page = path.display().to_string();
            }
        }
    }
    let template = Template { networks: options.network.clone(), sweep: options.sweep };
    let text = template.text(&given.scenario).map_err(Failure::usage)?;
    // Whoever begins with a file wants one that runs.
    given.plan(own)?;
    let Some(file) = &options.file else { return crate::print(&text) };
    if file.exists() && !options.force {
        return Err(Failure::Usage(format!("{} exists; --force replaces it", file.display())));
    }
    write_whole(file, text)
        .map_err(|error| Failure::Run(format!("cannot write {}: {error}", file.display())))?;
    let run = if options.sweep { "sweep" } else { "run" };
    let name = file.display();
    crate::print(&format!("wrote {name}; `quipu {run} {name}` runs it\n"))
}
