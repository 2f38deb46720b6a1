//! Whose a request is: that of a page load, of another page, or of the browser itself.

use super::super::load::Load;
use super::event::Names;
use super::requests::{Requests, UrlRequest};

/// Whose a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Of the load of this number, from 0.
    Load(usize),
    /// Of the browser, or of an extension.
    Browser,
    /// Of a page whose load is not in the log.
    Other,
}

/// A load by the request for its document.
struct Document {
    request: u64,
    url: String,
    start: f64,
    /// The site of its last hop.
    site: Option<String>,
}

/// The loads of a log, in order.
pub(super) struct Owners {
    documents: Vec<Document>,
}

impl Owners {
    pub(super) fn of(requests: &Requests, names: &Names) -> Owners {
        let mut documents: Vec<Document> = requests
            .begun()
            .filter(|request| is_main_frame(request, names))
            .map(|request| Document {
                request: request.id,
                url: url(request).to_owned(),
                start: request.asked,
                site: request
                    .hops
                    .last()
                    .and_then(|hop| site(hop.params.network_isolation_key.as_deref())),
            })
            .collect();
        documents.sort_by(|a, b| a.start.total_cmp(&b.start));
        Owners { documents }
    }

    /// The loads, without requests.
    pub(super) fn loads(&self) -> Vec<Load> {
        let load = |document: &Document| Load {
            url: document.url.clone(),
            start: document.start,
            ..Load::default()
        };
        self.documents.iter().map(load).collect()
    }

    pub(super) fn owner(&self, request: &UrlRequest) -> Owner {
        if let Some(own) = self.documents.iter().position(|it| it.request == request.id) {
            return Owner::Load(own);
        }
        let Some(hop) = request.hops.first() else { return Owner::Browser };
        let params = &hop.params;
        let of_page = match params.initiator.as_deref() {
            // An origin; that of a sandboxed frame begins with null.
            Some(origin) => ["http://", "https://", "null"].iter().any(|it| origin.starts_with(it)),
            // Versions before 80 tell nothing.
            None => true,
        };
        let is_frame = params.request_type.as_deref() == Some("subframe");
        if !of_page && !is_frame {
            return Owner::Browser;
        }
        let site = site(params.network_isolation_key.as_deref());
        let begun = self.documents.partition_point(|document| document.start <= request.asked);
        let fits = |document: &Document| match (&site, &document.site) {
            (Some(site), Some(own)) => site == own,
            _ => true,
        };
        match self.documents.iter().take(begun).rposition(fits) {
            Some(number) => Owner::Load(number),
            None => Owner::Other,
        }
    }
}

/// Whether it is for the document of a main frame, by HTTP.
fn is_main_frame(request: &UrlRequest, names: &Names) -> bool {
    let Some(hop) = request.hops.first() else { return false };
    let params = &hop.params;
    let is_http = ["http://", "https://"].iter().any(|scheme| url(request).starts_with(scheme));
    let is_main = match params.request_type.as_deref() {
        Some(kind) => kind == "main frame",
        None => {
            let flags = params.load_flags.unwrap_or(0.0) as i64;
            names.main_frame.is_some_and(|bit| flags & bit != 0)
        }
    };
    // What failed before it had an answer showed an error of the browser instead.
    is_http && is_main && request.hops.iter().any(|hop| hop.answered.is_some() || hop.from_cache)
}

fn url(request: &UrlRequest) -> &str {
    request.hops.first().and_then(|hop| hop.params.url.as_deref()).unwrap_or_default()
}

/// The site of the top frame.
fn site(key: Option<&str>) -> Option<String> {
    let site = key?.split_whitespace().next()?;
    site.contains("://").then(|| site.to_owned())
}
