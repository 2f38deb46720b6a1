//! A zip archive, gzip or neither: what is unpacked is no more than is read, and a trace in it may go into the recording.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_web::{archive, har, recording, trace};

fuzz_target!(|input: (Option<u8>, &[u8])| {
    let (run, file) = input;
    let Ok(unpacked) = archive::read(file, run.map(usize::from)) else { return };
    assert!(unpacked.har.len() <= har::MAX_FILE_BYTES.max(file.len()));
    assert!(unpacked.trace.as_ref().is_none_or(|trace| trace.len() <= trace::MAX_FILE_BYTES));
    if let Some(trace) = &unpacked.trace
        && let Ok(traced) = recording::with_trace(&unpacked.har, trace)
    {
        let _ = trace::read_recordings(&traced);
    }
    assert!(unpacked.runs.is_empty() || unpacked.runs.contains(&unpacked.run));
});
