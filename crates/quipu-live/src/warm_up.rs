//! Small objects that warm a connection up before a page is asked for.

use http::Request;
use http::uri::{Authority, Scheme, Uri};
use quipu_policy::Urgency;
use quipu_web::page::ObjectKind;
use quipu_web::scheme::{BrowserScheme, RequestFacts};
use tokio::sync::watch;

use crate::client::Client;
use crate::error::ExchangeError;
use crate::head;
use crate::tree::Nodes;

/// Asks the server at `authority` for `objects` objects at `path` that belong to no page, all at once and with the priority
/// that `browser` gives to what it does not know, and waits until they are there.
///
/// # Errors
/// If a request or a response fails, or the status of a response is no success.
pub async fn warm_up(
    client: impl Into<Client>,
    browser: &BrowserScheme,
    (authority, path): (&Authority, &'static str),
    objects: u32,
) -> Result<(), ExchangeError> {
    let client = client.into();
    let nodes = client.tree().map_or_else(Nodes::default, |tree| tree.nodes());
    let mut scheme = browser.session();
    let mut exchanges = Vec::new();
    for _ in 0..objects {
        let node = nodes.next();
        let signal = scheme.priority_for(&RequestFacts::of_kind(ObjectKind::Other), node);
        let mut uri = Uri::from_static(path).into_parts();
        (uri.scheme, uri.authority) = (Some(Scheme::HTTPS), Some(authority.clone()));
        let mut request = Request::new(());
        // All its parts are there.
        *request.uri_mut() = Uri::from_parts(uri).unwrap_or_default();
        head::tell(&mut request, signal, client.tree().is_some());
        exchanges.push(client.request(request, 0, head::urgency(signal)).await?);
    }
    let (_changes, mut unchanged) = watch::channel::<Option<Urgency>>(None);
    for mut exchange in exchanges {
        let status = exchange.response(0, &mut unchanged).await?;
        if !(200..300).contains(&status) {
            return Err(ExchangeError::WarmUp { path, status });
        }
        while exchange.data().await?.is_some() {}
    }
    Ok(())
}
