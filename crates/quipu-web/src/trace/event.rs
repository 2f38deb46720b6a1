//! The events of a trace, as far as a load is told by them.
//!
//! Format: Trace Event Format,
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>. Which events Chromium writes with
//! which arguments is not specified; they are those of versions 60 to 156 as far as recordings of them are at hand.

use std::sync::Arc;

use quipu_base::Duration;
use serde::Deserialize;

use super::WorkKind;
use super::lenient;

/// A process and a thread in it.
pub(super) type Thread = (i64, i64);

/// How an event stands in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Begin,
    End,
    /// Begin and end in one.
    Complete(Duration),
    Instant,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    Work(WorkKind, Option<Arc<str>>),
    TimerFire {
        frame: Option<Arc<str>>,
        timer: i64,
    },
    TimerInstall(Install),
    WillSend {
        id: Arc<str>,
    },
    Send {
        id: Arc<str>,
        url: Arc<str>,
    },
    Response {
        id: Arc<str>,
    },
    Data {
        id: Arc<str>,
        bytes: u64,
    },
    Finish {
        id: Arc<str>,
        at: Option<Duration>,
    },
    RendererMain,
    /// The document of a main frame is loaded.
    MainDocument,
}

impl What {
    /// Whether `end` ends what this begins, as far as can be told: arguments stand at the begin alone.
    pub(super) fn begins(&self, end: &What) -> bool {
        match (self, end) {
            (What::Work(kind, _), What::Work(ended, _)) => kind == ended,
            (What::TimerFire { .. }, What::TimerFire { .. }) => true,
            _ => false,
        }
    }
}

/// A timer that is set.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Install {
    pub(super) frame: Option<Arc<str>>,
    pub(super) timer: i64,
    pub(super) timeout: Option<Duration>,
    pub(super) repeats: bool,
}

/// One event. Its time is the reading of the trace's clock.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) thread: Thread,
    pub(super) at: Duration,
    pub(super) phase: Phase,
    pub(super) what: What,
}

/// An event as it is written.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Written {
    #[serde(deserialize_with = "lenient::text")]
    name: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    ph: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::number")]
    ts: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    dur: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    pid: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    tid: Option<f64>,
    #[serde(deserialize_with = "lenient::object")]
    args: Arguments,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Arguments {
    #[serde(deserialize_with = "lenient::object")]
    data: Data,
    #[serde(deserialize_with = "lenient::object")]
    begin_data: Data,
    #[serde(deserialize_with = "lenient::text")]
    name: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    file_name: Option<Arc<str>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Data {
    #[serde(deserialize_with = "lenient::text")]
    url: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    frame: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    request_id: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::number")]
    encoded_data_length: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    finish_time: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    timer_id: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    timeout: Option<f64>,
    #[serde(deserialize_with = "lenient::flag")]
    single_shot: bool,
    #[serde(deserialize_with = "lenient::flag")]
    is_main_frame: bool,
    #[serde(deserialize_with = "lenient::flag")]
    is_loading_main_frame: bool,
    #[serde(rename = "documentLoaderURL", deserialize_with = "lenient::text")]
    document_loader_url: Option<Arc<str>>,
}

impl Written {
    /// The event, if a load is told by it and it has a time.
    pub(super) fn event(self) -> Option<Event> {
        let name = self.name?;
        let data = self.args.data;
        let thread = (self.pid.unwrap_or(0.0) as i64, self.tid.unwrap_or(0.0) as i64);
        let at = micros(self.ts.unwrap_or(0.0));
        let phase = match self.ph.as_deref()? {
            "B" => Phase::Begin,
            "E" => Phase::End,
            "X" => Phase::Complete(micros(self.dur.unwrap_or(0.0))),
            _ => Phase::Instant,
        };
        let what = match &*name {
            "thread_name" if self.args.name.as_deref() == Some("CrRendererMain") => {
                What::RendererMain
            }
            "TimerInstall" => What::TimerInstall(Install {
                frame: data.frame,
                timer: data.timer_id? as i64,
                timeout: data.timeout.map(|ms| micros(ms * 1e3)),
                repeats: !data.single_shot,
            }),
            "TimerFire" => What::TimerFire {
                frame: data.frame,
                timer: data.timer_id.map_or(i64::MIN, |id| id as i64),
            },
            "ResourceWillSendRequest" => What::WillSend { id: data.request_id? },
            "ResourceSendRequest" => What::Send { id: data.request_id?, url: data.url? },
            "ResourceReceiveResponse" => What::Response { id: data.request_id? },
            "ResourceReceivedData" => What::Data {
                id: data.request_id?,
                bytes: data.encoded_data_length.unwrap_or(0.0).max(0.0) as u64,
            },
            "ResourceFinish" => What::Finish {
                id: data.request_id?,
                at: data.finish_time.filter(|&time| time > 0.0).map(|secs| micros(secs * 1e6)),
            },
            "navigationStart" | "CommitLoad" => {
                let url = data.document_loader_url.or(data.url)?;
                let main = data.is_main_frame || data.is_loading_main_frame;
                if !main || &*url == "about:blank" {
                    return None;
                }
                What::MainDocument
            }
            name => {
                let url = data.url.or(self.args.begin_data.url).or(self.args.file_name);
                What::Work(work_kind(name)?, url)
            }
        };
        // Whatever else is an instant takes no time.
        let takes_time = matches!(what, What::Work(..) | What::TimerFire { .. });
        (!takes_time || phase != Phase::Instant).then_some(Event { thread, at, phase, what })
    }
}

/// Names of events that are read beside those of work.
const OTHERS: [&str; 10] = [
    "thread_name",
    "TimerInstall",
    "TimerFire",
    "ResourceWillSendRequest",
    "ResourceSendRequest",
    "ResourceReceiveResponse",
    "ResourceReceivedData",
    "ResourceFinish",
    "navigationStart",
    "CommitLoad",
];

/// The fields of `args.data` and `args.beginData` that are read; of `args` itself there are `name` and `fileName`.
pub const ARGUMENTS: [&str; 11] = [
    "url",
    "frame",
    "requestId",
    "encodedDataLength",
    "finishTime",
    "timerId",
    "timeout",
    "singleShot",
    "isMainFrame",
    "isLoadingMainFrame",
    "documentLoaderURL",
];

/// Whether events of this name are read: a trace without all others tells the same.
pub fn is_read(name: &str) -> bool {
    work_kind(name).is_some() || OTHERS.contains(&name)
}

/// What the main thread does in events of this name, if they are looked at.
fn work_kind(name: &str) -> Option<WorkKind> {
    Some(match name {
        "ParseHTML" | "ParseAuthorStyleSheet" => WorkKind::Parse,
        "EvaluateScript" | "FunctionCall" | "v8.compile" | "v8.compileModule"
        | "v8.evaluateModule" | "v8.run" | "RunMicrotasks" | "FireAnimationFrame"
        | "FireIdleCallback" | "EventDispatch" => WorkKind::Script,
        "UpdateLayoutTree" | "RecalculateStyles" => WorkKind::Style,
        "Layout" => WorkKind::Layout,
        "Paint" | "PrePaint" | "Layerize" | "Commit" | "UpdateLayer" | "CompositeLayers" => {
            WorkKind::Paint
        }
        "RunTask"
        | "ThreadControllerImpl::RunTask"
        | "TaskQueueManager::ProcessTaskFromWorkQueue" => WorkKind::Other,
        _ => return None,
    })
}

/// A time in microseconds; zero if it is negative.
pub(super) fn micros(time: f64) -> Duration {
    Duration::from_nanos((time * 1e3).round() as u64)
}
