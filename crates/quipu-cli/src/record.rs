//! `quipu page record`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quipu_record::write_whole;
use quipu_recorder::{
    Network, OptionError, Options, Progress, RecordError, parse_host, parse_time, parse_viewport,
};

use crate::args::RecordOptions;
use crate::failure::Failure;
use crate::stop;

pub(crate) fn run(given: &RecordOptions) -> Result<(), Failure> {
    let options = options(given).map_err(Failure::usage)?;
    let file = given.out.clone().unwrap_or_else(|| options.default_file());
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) || file.is_dir() {
        let message = format!("--out: {}; expected a file in a folder that exists", file.display());
        return Err(Failure::Usage(message));
    }
    let stopped = Arc::new(AtomicBool::new(false));
    stop::on_request(&stopped)?;

    let outcome = quipu_recorder::record(&options, &stopped, &mut |progress| match progress {
        Progress::Navigates => {}
        told => eprintln!("{told}"),
    });
    if !outcome.loads.is_empty() {
        let compress = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz"));
        let bytes = quipu_recorder::file(&outcome.loads, env!("CARGO_PKG_VERSION"), compress);
        write(&file, &bytes)?;
        let loads = outcome.loads.len();
        eprintln!("{loads} loads in {}, {} kB", file.display(), bytes.len().div_ceil(1_000));
    }
    outcome.ended.map_err(|error| match error {
        RecordError::Interrupted => Failure::Interrupted,
        error if error.is_usage() => Failure::usage(error),
        error => Failure::run(error),
    })
}

fn options(given: &RecordOptions) -> Result<Options, OptionError> {
    let mut options = Options::new(&given.url)?;
    options.networks = Network::parse_list(&given.at, given.rtt.as_deref())?;
    options.repeat = given.repeat;
    options.chromium.clone_from(&given.chromium);
    options.timeout = parse_time("--timeout", &given.timeout)?;
    options.settle = parse_time("--settle", &given.settle)?;
    options.viewport = parse_viewport(&given.viewport)?;
    options.hosts = given.hosts.iter().map(|text| parse_host(text)).collect::<Result<_, _>>()?;
    options.insecure = given.insecure;
    options.shaper.clone_from(&given.shaper);
    Ok(options)
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(file, bytes)
        .map_err(|error| Failure::Run(format!("cannot write {}: {error}", file.display())))
}
