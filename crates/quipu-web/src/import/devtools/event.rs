//! The events of a trace that tell of requests and page loads.
//!
//! Chromium writes those of requests with the category `devtools.timeline`, the marks of a load with that and
//! `blink.user_timing`, and the frames with `disabled-by-default-devtools.timeline`. Their arguments are not specified;
//! they are those of version 156.

use std::sync::Arc;

use serde::Deserialize;

use crate::phases::Timing;
use crate::trace::lenient;
use crate::trace::read::Traced;

/// An event with its time on the trace's clock, in ms.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) at: f64,
    pub(super) what: What,
    pub(super) data: Data,
}

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    ContentLoad,
    /// The frames that are there when tracing begins.
    Frames,
    /// A frame has a document.
    FrameCommitted,
    Finish,
    Load,
    NavigationStart,
    Priority,
    Received,
    Response,
    Send,
    WillSend,
}

/// An event as it is written.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Written {
    #[serde(deserialize_with = "lenient::text")]
    name: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::number")]
    ts: Option<f64>,
    #[serde(deserialize_with = "lenient::object")]
    args: Arguments,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Arguments {
    #[serde(deserialize_with = "lenient::object")]
    data: Data,
    /// Marks of a load have it here.
    #[serde(deserialize_with = "lenient::text")]
    frame: Option<Arc<str>>,
}

/// What is told of a request, a frame or a load.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Data {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) request_id: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) url: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) frame: Option<Arc<str>>,
    /// The frame that a frame is in.
    #[serde(deserialize_with = "lenient::text")]
    pub(super) parent: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::objects")]
    pub(super) frames: Vec<Frame>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) request_method: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) resource_type: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) priority: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) render_blocking: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::flag")]
    pub(super) is_link_preload: bool,
    #[serde(deserialize_with = "lenient::object")]
    pub(super) initiator: Initiator,
    /// The functions that asked, the innermost first.
    #[serde(deserialize_with = "lenient::objects")]
    pub(super) stack_trace: Vec<CallFrame>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) status_code: Option<f64>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) mime_type: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) protocol: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) connection_id: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::flag")]
    pub(super) from_cache: bool,
    #[serde(deserialize_with = "lenient::objects")]
    pub(super) headers: Vec<Header>,
    #[serde(deserialize_with = "lenient::object")]
    pub(super) timing: Timing,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) response_time: Option<f64>,
    /// Of a response its header, of its end all; of data what was decoded.
    #[serde(deserialize_with = "lenient::number")]
    pub(super) encoded_data_length: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) decoded_body_length: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) finish_time: Option<f64>,
    #[serde(deserialize_with = "lenient::flag")]
    pub(super) did_fail: bool,
    #[serde(deserialize_with = "lenient::flag")]
    pub(super) is_loading_main_frame: bool,
    #[serde(rename = "documentLoaderURL", deserialize_with = "lenient::text")]
    pub(super) document_loader_url: Option<Arc<str>>,
}

/// A frame of a page.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Frame {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) frame: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) parent: Option<Arc<str>>,
}

/// Who asked for a request, and where in it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Initiator {
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub(super) kind: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) url: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) line_number: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) column_number: Option<f64>,
}

/// A function in a script.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CallFrame {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) url: Option<Arc<str>>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) line_number: Option<f64>,
    #[serde(deserialize_with = "lenient::number")]
    pub(super) column_number: Option<f64>,
}

/// A header of a response.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) name: Option<Arc<str>>,
}

impl Traced for Event {
    type Written = Written;

    fn from_written(written: Written) -> Option<Event> {
        let what = match &*written.name? {
            "MarkDOMContent" | "domContentLoadedEventEnd" => What::ContentLoad,
            "TracingStartedInBrowser" => What::Frames,
            "FrameCommittedInBrowser" => What::FrameCommitted,
            "ResourceFinish" => What::Finish,
            "MarkLoad" | "loadEventStart" => What::Load,
            "navigationStart" => What::NavigationStart,
            "ResourceChangePriority" => What::Priority,
            "ResourceReceivedData" => What::Received,
            "ResourceReceiveResponse" => What::Response,
            "ResourceSendRequest" => What::Send,
            "ResourceWillSendRequest" => What::WillSend,
            _ => return None,
        };
        let mut data = written.args.data;
        data.frame = data.frame.or(written.args.frame);
        Some(Event { at: written.ts? / 1e3, what, data })
    }
}
