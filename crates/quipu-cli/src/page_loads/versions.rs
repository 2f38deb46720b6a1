//! How a page is asked for: HTTP/3, or HTTP/2 over QUIC with the browser's dependency tree or by urgencies.

use quipu_lab::plan::{Cell, Plan};
use quipu_live::Http2Tree;
use quipu_scenario::{HttpVersion, Priorities};
use quipu_tokio::Connection;
use quipu_tokio::http3::{ALPN, HTTP2_ALPN, Http2ClientConfig, Http3Client, Http3Error};

/// How the page of `cell` is carried.
pub(super) fn of(plan: &Plan, cell: Cell) -> HttpVersion {
    plan.networks[cell.network].policies[cell.policy].http
}

/// Its name in TLS.
pub(super) fn alpn(version: HttpVersion) -> &'static [u8] {
    match version {
        HttpVersion::H2 => HTTP2_ALPN,
        // Others are refused.
        HttpVersion::H3 | HttpVersion::H2Tcp | HttpVersion::Raw => ALPN,
    }
}

/// A client of the page of `cell` over `connection`, which has sent nothing yet.
///
/// # Errors
/// If the connection is over.
pub(super) fn client(
    connection: Connection,
    (plan, cell): (&Plan, Cell),
) -> Result<quipu_live::Client, Http3Error> {
    if of(plan, cell) != HttpVersion::H2 {
        return Ok((&Http3Client::new(connection, Default::default())?).into());
    }
    let tree = plan.scenario.priorities == Priorities::Tree;
    let client = Http3Client::http2(connection, Http2ClientConfig { tree, ..Default::default() })?;
    match tree {
        true => Ok((&Http2Tree::new(client, &plan.browser)?).into()),
        false => Ok((&client).into()),
    }
}
