//! What is printed in the end.

use quipu_tokio::PathInfo;
use serde_json::{Value, json};

use super::Results;
use super::transfer::Fetched;
use crate::args::FetchOptions;
use crate::failure::Failure;

/// Prints heads or JSON to standard output, and a line for each URL to standard error.
///
/// # Errors
/// [`Failure::Told`] with the code of the first URL that failed.
pub(super) fn print(
    options: &FetchOptions,
    results: &Results,
    paths: &[(String, Vec<PathInfo>)],
) -> Result<(), Failure> {
    if options.json {
        let objects: Vec<Value> = results.iter().map(object).collect();
        let connections: Vec<Value> = paths.iter().map(connection).collect();
        let all = json!({ "world": "live", "objects": objects, "connections": connections });
        let text = serde_json::to_string_pretty(&all).map_err(Failure::run)?;
        crate::print(&format!("{text}\n"))?;
    } else {
        for head in results.iter().filter_map(|(_, result)| result.as_ref().ok()?.head.as_ref()) {
            crate::print(head)?;
        }
    }
    let mut code = None;
    for (url, result) in results {
        match result {
            Ok(fetched) if !options.quiet => {
                let Fetched { status, bytes, times, .. } = fetched;
                eprintln!("{url}: {status}, {bytes} bytes in {:.3} s", times.complete);
            }
            Ok(_) => {}
            Err(error) => {
                eprintln!("error: {url}: {error}");
                code.get_or_insert(error.code);
            }
        }
    }
    code.map_or(Ok(()), |code| Err(Failure::Told(code)))
}

fn object((url, result): &(String, Result<Fetched, super::FetchError>)) -> Value {
    match result {
        Ok(fetched) => json!({
            "url": url,
            "final_url": fetched.uri.to_string(),
            "redirects": fetched.redirects,
            "status": fetched.status.as_u16(),
            "stream": fetched.stream,
            "urgency": fetched.urgency.level,
            "incremental": fetched.urgency.incremental,
            "bytes": fetched.bytes,
            "resumed_at": fetched.resumed_at,
            "sha256": fetched.sha256,
            "seconds": {
                "resolved": fetched.times.resolved,
                "connected": fetched.times.connected,
                "sent": fetched.times.sent,
                "first_byte": fetched.times.first_byte,
                "complete": fetched.times.complete,
            },
        }),
        Err(error) => json!({ "url": url, "error": error.reason, "code": error.code }),
    }
}

fn connection((origin, paths): &(String, Vec<PathInfo>)) -> Value {
    let received: u64 = paths.iter().map(|path| path.sample.counters.bytes_received).sum();
    let path = |path: &PathInfo| {
        let counters = path.sample.counters;
        let share = counters.bytes_received as f64 / received.max(1) as f64;
        json!({
            "path": path.id.0,
            "interface": path.interface,
            "local": path.sample.route.local.to_string(),
            "remote": path.sample.route.remote.to_string(),
            "udp_bytes_received": counters.bytes_received,
            "share": share,
            "udp_bytes_sent": counters.bytes_sent,
            "packets_lost": counters.packets_lost,
            "srtt_ms": path.sample.srtt.map(|srtt| srtt.as_nanos() as f64 / 1e6),
        })
    };
    json!({ "origin": origin, "paths": paths.iter().map(path).collect::<Vec<_>>() })
}
