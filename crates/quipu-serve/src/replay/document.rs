//! Documents that request objects, each at its byte.

use quipu_web::page::{Blocking, ObjectKind};

use super::content::Content;
use super::plan::{Loaded, Parsed, Plan};
use super::script;

/// The HTML of `document`, with at least `length` bytes: elements and scripts stand as near to their recorded bytes
/// as those before and behind them leave room, and comments stand between.
pub(super) fn html(plan: &Plan<'_>, document: usize, length: u64) -> Content {
    let pieces = pieces(plan, document);
    let mut left: u64 = pieces.iter().map(|(_, text)| text.len() as u64).sum();
    let mut content = Content::default();
    let head = "<!doctype html>".to_owned();
    let icon = if document == plan.main { icon(plan) } else { String::new() };
    let is_needed = plan.icon.is_some();
    // What is not needed is left out of a document that has no room for it.
    for (text, is_needed) in [(head, false), (icon, is_needed)] {
        if is_needed || content.length() + left + text.len() as u64 <= length {
            content.push(text);
        }
    }
    for (offset, text) in pieces {
        let latest = length.saturating_sub(left);
        left -= text.len() as u64;
        content.comment_to(offset.min(latest));
        content.push(text);
    }
    content.comment_to(length);
    content
}

/// Browsers look for an icon if none is named.
fn icon(plan: &Plan<'_>) -> String {
    let url = plan.icon.map(|icon| plan.reference(icon));
    format!("<link rel=icon href={}>", quoted(url.as_deref().unwrap_or("data:,")))
}

/// What stands in the document, in order, with the byte where it would begin.
fn pieces(plan: &Plan<'_>, document: usize) -> Vec<(u64, String)> {
    let parsed = &plan.parsed[document];
    let mut pieces = Vec::new();
    // Scripts that follow each other are one, so that they share their computing.
    for group in parsed.chunk_by(|one, other| one.inline && other.inline) {
        let Parsed { offset, object, inline } = group[0];
        let text = match inline {
            true => {
                let objects: Vec<usize> = group.iter().map(|parsed| parsed.object).collect();
                format!("<script>{}</script>", script::program(plan, &objects))
            }
            false => element(plan, document, object),
        };
        pieces.push((offset, text));
    }
    pieces
}

/// The element that requests `object`.
fn element(plan: &Plan<'_>, document: usize, object: usize) -> String {
    let url = quoted(&plan.reference(object));
    let found = &plan.page.objects()[object];
    let handler = handler(plan, object);
    if plan.is_preloaded(object) {
        let (kind, cors) = match found.kind {
            ObjectKind::Font => ("font", " crossorigin"),
            ObjectKind::Image => ("image", ""),
            ObjectKind::Script => ("script", ""),
            ObjectKind::Stylesheet => ("style", ""),
            _ => ("fetch", " crossorigin"),
        };
        return format!("<link rel=preload as={kind}{cors} href={url}{handler}>");
    }
    // What blocks is recorded for main documents alone.
    let is_asynchronous = found.blocking == Blocking::None && document == plan.main;
    match found.kind {
        ObjectKind::Document => format!("<iframe src={url}></iframe>"),
        ObjectKind::Stylesheet => {
            let id = if plan.has_box(object) { format!("id=c{object} ") } else { String::new() };
            let media = if is_asynchronous { " media=print" } else { "" };
            let mut text = format!("<link {id}rel=stylesheet{media} href={url}{handler}>");
            for sheet in plan.imported_boxes(object) {
                text.push_str(&format!("<meta id=c{sheet}>"));
            }
            text
        }
        ObjectKind::Script if is_asynchronous => format!("<script async src={url}></script>"),
        ObjectKind::Script => format!("<script src={url}></script>"),
        ObjectKind::Font => format!("<link rel=preload as=font crossorigin href={url}{handler}>"),
        ObjectKind::Media => format!("<video preload=auto muted src={url}></video>"),
        ObjectKind::Manifest => format!("<link rel=manifest href={url}>"),
        ObjectKind::Prefetch => format!("<link rel=prefetch href={url}{handler}>"),
        _ => format!("<img src={url}{handler}>"),
    }
}

/// The attributes that run what is requested once `object` is there, or has failed.
fn handler(plan: &Plan<'_>, object: usize) -> String {
    let is_printed = plan.kind(object) == ObjectKind::Stylesheet
        && matches!(plan.loaded[object], Loaded::Sheet { .. })
        && plan.page.objects()[object].blocking == Blocking::None
        && plan.documents[object] == plan.main;
    let program = script::program(plan, &plan.after[object]);
    if program.is_empty() && !is_printed {
        return String::new();
    }
    let media = if is_printed { "onload=null;media=\"all\";" } else { "" };
    let code = format!("{media}{program}").replace('&', "&amp;").replace('\'', "&#39;");
    let failed = if program.is_empty() { "" } else { " onerror=onload()" };
    format!(" onload='{code}'{failed}")
}

/// The value of an attribute, in quotes.
fn quoted(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    format!("\"{text}\"")
}
