//! What the policies were asked and answered: `quipu:scheduled`.

use quipu_base::{Instant, PathId};
use quipu_policy::{Ask, DecidedBy, Decision, Note, Refusal};
use quipu_quic::recorder::{Outcome, Scheduled};

use crate::Form;
use crate::json::Json;
use crate::recorder::QlogRecorder;

/// One answer. That nothing more goes into an open packet is not written: the packet shows it.
pub(crate) fn scheduled(log: &mut QlogRecorder, now: Instant, scheduled: &Scheduled<'_>) {
    let filled = matches!(scheduled.ask, Ask::Fill { .. });
    if log.form == Form::Version03 || filled && scheduled.outcome == Outcome::Rests {
        return;
    }
    let Some(file) = log.file(PathId::ZERO) else { return };
    let json = file.begin(now, "quipu:scheduled", PathId::ZERO);
    json.word("ask", if filled { "fill" } else { "packet" });
    json.word("decided_by", decided_by(scheduled));
    match scheduled.outcome {
        Outcome::Sends { path, stream, span, copy } => {
            json.word("outcome", if copy { "copy" } else { "send" });
            number!(json, "path_id", u64::from(path.0));
            number!(json, "stream_id", stream.0);
            number!(json, "offset", span.start.0);
            number!(json, "length", span.len().0);
        }
        Outcome::Probes { path } => {
            word!(json, "outcome", "probe");
            number!(json, "path_id", u64::from(path.0));
        }
        Outcome::Rests => rests(json, now, scheduled.decision),
        Outcome::Refused(refusal) => {
            word!(json, "outcome", "refused");
            refused(json, scheduled.decision, refusal);
        }
    }
    if !scheduled.candidates.is_empty() {
        candidates(json, scheduled.candidates);
    }
    file.end();
}

fn decided_by(scheduled: &Scheduled<'_>) -> &'static str {
    if scheduled.decision.is_none() {
        return "engine";
    }
    match scheduled.decided_by {
        DecidedBy::Policy => "policy",
        DecidedBy::Plan => "plan",
        DecidedBy::Lost => "lost",
        DecidedBy::Skipped => "skipped",
        DecidedBy::Reinjection => "reinjection",
    }
}

fn rests(json: &mut Json, now: Instant, decision: Option<Decision>) {
    match decision {
        Some(Decision::Wait { until, on }) => {
            word!(json, "outcome", "wait");
            json.millis("wait", until - now);
            if let Some(on) = on {
                number!(json, "path_id", u64::from(on.id.0));
            }
        }
        _ => word!(json, "outcome", "idle"),
    }
}

fn refused(json: &mut Json, decision: Option<Decision>, refusal: Refusal) {
    match decision {
        Some(Decision::Send { path, stream, .. } | Decision::Copy { path, stream, .. }) => {
            number!(json, "path_id", u64::from(path.id.0));
            number!(json, "stream_id", stream.id.0);
        }
        Some(Decision::Probe { path }) => number!(json, "path_id", u64::from(path.id.0)),
        _ => {}
    }
    json.word(
        "refusal",
        match refusal {
            Refusal::PathClosed(_) => "path_closed",
            Refusal::OtherPath(_) => "other_path",
            Refusal::NoStream(_) => "no_stream",
            Refusal::NotPending(..) => "not_pending",
            Refusal::NotInFlight(..) => "not_in_flight",
            Refusal::NothingLeft(_) => "nothing_left",
            Refusal::MustNotWait => "must_not_wait",
            Refusal::MustNotProbe(_) => "must_not_probe",
            _ => "other",
        },
    );
}

fn candidates(json: &mut Json, notes: &[Note]) {
    begin_list!(json, "candidates");
    for note in notes {
        json.begin_item();
        json.word("label", note.label);
        if let Some(path) = note.path {
            number!(json, "path_id", u64::from(path.id.0));
        }
        if let Some(stream) = note.stream {
            number!(json, "stream_id", stream.id.0);
        }
        json.float("score", note.score);
        json.end();
    }
    json.end_list();
}
