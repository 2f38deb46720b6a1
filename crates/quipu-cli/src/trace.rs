//! `quipu trace`.

use quipu_scenario::{
    Columns, ConvertFileError, Selection, TraceDirection, TraceForm, TraceFormat, convert_trace,
};

use crate::args::{ConvertOptions, WrittenDirection, WrittenFormat};
use crate::failure::Failure;
use crate::terminal::Terminal;

/// Writes a recording in another format, and tells what came of it.
pub(crate) fn convert(options: &ConvertOptions, terminal: Terminal) -> Result<(), Failure> {
    let columns = match &options.columns {
        None => Columns::default(),
        Some(_) if options.from != TraceFormat::Csv => {
            let message = "--columns: only files of --from csv have columns to be named";
            return Err(Failure::Usage(message.to_owned()));
        }
        Some(text) => {
            text.parse().map_err(|error| Failure::Usage(format!("--columns: {error}")))?
        }
    };
    let form = match (options.to, options.direction) {
        (WrittenFormat::Csv, _) => TraceForm::Csv,
        (WrittenFormat::Mahimahi, WrittenDirection::Down) => {
            TraceForm::Mahimahi(TraceDirection::Down)
        }
        (WrittenFormat::Mahimahi, WrittenDirection::Up) => TraceForm::Mahimahi(TraceDirection::Up),
    };
    let selection = Selection { columns, only: options.only.clone() };
    let (files, out) = (&options.files, &options.out);
    let note = convert_trace(files, options.from, &selection, form, out, options.force);
    let note = note.map_err(|error| match error {
        ConvertFileError::Write { .. } => Failure::run(error),
        _ => Failure::usage(error),
    })?;
    let what = if form == TraceForm::Csv { "rows" } else { "opportunities" };
    let seconds = note.length.as_nanos() as f64 / 1e9;
    let mut text = format!("{}: {} {what} over {seconds:.1} s\n", out.display(), note.rows);
    for (column, mean) in note.rates {
        let mbit = mean.bits_per_sec() as f64 / 1e6;
        text.push_str(&format!("mean of {column}: {mbit:.2} Mbit/s\n"));
    }
    if let Some((pings, lost)) = note.pings {
        text.push_str(&format!("round trips: {pings}, {lost} of them lost\n"));
    }
    for (why, count) in note.left_out {
        text.push_str(&format!("left out: {count} ({why})\n"));
    }
    terminal.print(&text)
}
