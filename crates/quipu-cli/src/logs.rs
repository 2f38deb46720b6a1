//! qlog files, as options and the variable `QLOGDIR` ask for them.

use std::path::{Path, PathBuf};

use quipu_lab::plan::Plan;
use quipu_lab::run::logs::{Form, Logs, QlogFolder};

use crate::args::{LiveLogOptions, LogOptions};
use crate::failure::Failure;

/// Files above which a sweep that would write them says so; our choice.
const MANY: usize = 1_000;

/// The folder by option, else by the variable that the qlog drafts name.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-quic-qlog-main-schema-14>
fn folder(
    option: Option<&Path>,
    version: Option<&str>,
) -> Result<Option<(PathBuf, Form)>, Failure> {
    let variable = || std::env::var_os("QLOGDIR").filter(|value| !value.is_empty());
    let folder = option.map(Path::to_owned).or_else(|| variable().map(PathBuf::from));
    match (folder, version) {
        (Some(folder), None) => Ok(Some((folder, Form::default()))),
        (Some(folder), Some(version)) => {
            let form = version
                .parse()
                .map_err(|error| Failure::Usage(format!("--qlog-version: {error}")))?;
            Ok(Some((folder, form)))
        }
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Failure::Usage(
            "--qlog-version: expected --qlog DIR, or a folder in the variable QLOGDIR".to_owned(),
        )),
    }
}

/// The logs of one run, if it is to be logged.
pub(crate) fn of_one(options: &LogOptions) -> Result<Option<Logs>, Failure> {
    let folder = folder(options.qlog.as_deref(), options.qlog_version.as_deref())?;
    let logs = folder.map(|(folder, form)| Logs::of_one(&folder, form));
    logs.transpose().map_err(Failure::usage)
}

/// The client's logs of loads in real time by `command`, with options that simulated loads have, too.
///
/// # Errors
/// As [`of_sockets`].
pub(crate) fn of_real_time(
    options: &LogOptions,
    command: &str,
) -> Result<Option<QlogFolder>, Failure> {
    let LogOptions { qlog, qlog_version } = options;
    let (qlog, qlog_version) = (qlog.clone(), qlog_version.clone());
    of_sockets(&LiveLogOptions { qlog, qlog_version }, command)
}

/// The folder of connections over sockets, if they are to be logged. `title` is that of every file.
pub(crate) fn of_sockets(
    options: &LiveLogOptions,
    title: &str,
) -> Result<Option<QlogFolder>, Failure> {
    let folder = folder(options.qlog.as_deref(), options.qlog_version.as_deref())?;
    let logs = folder.map(|(folder, form)| QlogFolder::create(&folder, form, title));
    logs.transpose().map_err(Failure::usage)
}

/// The logs of the first `runs` of each combination of `plan`, if they are to be logged.
pub(crate) fn of_many(
    plan: &Plan,
    options: &LogOptions,
    runs: Option<u32>,
) -> Result<Option<Logs>, Failure> {
    let folder = folder(options.qlog.as_deref(), options.qlog_version.as_deref())?;
    let Some((folder, form)) = folder else {
        return match runs {
            Some(_) => Err(Failure::Usage(
                "--qlog-runs: expected --qlog DIR, or a folder in the variable QLOGDIR".to_owned(),
            )),
            None => Ok(None),
        };
    };
    let logs = Logs::of_many(&folder, form, runs).map_err(Failure::usage)?;
    let files = logs.files(plan);
    if files > MANY {
        eprintln!(
            "warning: {files} qlog files will be written to {}; --qlog-runs N logs fewer",
            folder.display()
        );
    }
    Ok(Some(logs))
}

/// Makes sure that all logs were written.
pub(crate) fn finish(logs: Option<&Logs>) -> Result<(), Failure> {
    match logs {
        Some(logs) => logs.finish().map(drop).map_err(Failure::run),
        None => Ok(()),
    }
}
