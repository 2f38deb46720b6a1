//! Results as a table and as JSON.

use quipu_lab::table::{Align, Grid, bytes};
use quipu_tokio::PathInfo;
use quipu_tokio::perf::{Direction, Outcome};
use serde_json::{Value, json};

use crate::values::{carried, local_name, millis, rate};

/// A path at the end of a measurement, and what it carried meanwhile.
struct Carried<'o> {
    path: &'o PathInfo,
    bytes: u64,
    /// Packets declared lost that this end sent.
    lost: u64,
}

fn carried_by_paths(direction: Direction, outcome: &Outcome) -> impl Iterator<Item = Carried<'_>> {
    outcome.after.iter().map(move |path| {
        let before = outcome.before.iter().find(|before| before.id == path.id);
        let bytes = before.map_or(0, |before| carried(direction, before));
        let lost = before.map_or(0, |before| before.sample.counters.packets_lost);
        Carried {
            path,
            bytes: carried(direction, path) - bytes,
            lost: path.sample.counters.packets_lost - lost,
        }
    })
}

pub(super) fn grid(results: &[(Direction, &'static str, Outcome)]) -> Grid {
    let mut columns = vec![
        ("way", Align::Left),
        ("path", Align::Left),
        ("bytes", Align::Right),
        ("time", Align::Right),
        ("rate", Align::Right),
        ("rtt", Align::Right),
        ("lost", Align::Right),
    ];
    if results.iter().any(|(.., outcome)| outcome.datagrams.is_some()) {
        let of_datagrams = ["datagrams", "late", "jitter"];
        columns.extend(of_datagrams.map(|title| (title, Align::Right)));
    }
    let mut grid = Grid::new(columns).optional([(3, 0), (6, 2), (8, 1)]);
    for (direction, name, outcome) in results {
        let seconds = outcome.elapsed.as_secs_f64();
        let time = format!("{seconds:.2} s");
        let (all, rates) = (bytes(outcome.bytes), rate(outcome.bytes, seconds));
        let mut row = vec![(*name).to_owned(), "all".to_owned(), all, time, rates];
        if let Some(flow) = &outcome.datagrams {
            let received = &flow.received;
            let lost = flow.lost();
            let share = 100.0 * lost as f64 / flow.sent.max(1) as f64;
            row.extend([
                String::new(),
                format!("{lost} ({share:.1}%)"),
                flow.sent.to_string(),
                received.reordered.to_string(),
                millis(received.jitter.as_secs_f64()),
            ]);
        }
        grid.row(row);
        for Carried { path, bytes: carried, lost } in carried_by_paths(*direction, outcome) {
            let srtt = path.sample.srtt.map(|srtt| millis(srtt.as_secs_f64()));
            // Whoever receives does not know what was lost.
            let lost = (*direction == Direction::Up).then(|| lost.to_string());
            grid.row([
                (*name).to_owned(),
                local_name(path),
                bytes(carried),
                String::new(),
                rate(carried, seconds),
                srtt.unwrap_or_default(),
                lost.unwrap_or_default(),
            ]);
        }
    }
    grid
}

pub(super) fn json_of(direction: Direction, outcome: &Outcome) -> Value {
    let seconds = outcome.elapsed.as_secs_f64();
    let paths = carried_by_paths(direction, outcome).map(|Carried { path, bytes, lost }| {
        json!({
            "id": path.id.0,
            "local": path.route.local.to_string(),
            "remote": path.route.remote.to_string(),
            "interface": path.interface,
            "udp_bytes": bytes,
            "bits_per_second": bytes as f64 * 8.0 / seconds.max(1e-9),
            "srtt_ms": path.sample.srtt.map(|srtt| srtt.as_secs_f64() * 1e3),
            "packets_lost": (direction == Direction::Up).then_some(lost),
            "datagram_size": path.sample.datagram_size,
        })
    });
    let mut value = json!({
        "bytes": outcome.bytes,
        "seconds": seconds,
        "bits_per_second": outcome.goodput(),
        "paths": paths.collect::<Vec<_>>(),
    });
    if let Some(flow) = &outcome.datagrams {
        value["datagrams"] = json!({
            "sent": flow.sent,
            "received": flow.received.datagrams,
            "lost": flow.lost(),
            "reordered": flow.received.reordered,
            "jitter_ms": flow.received.jitter.as_secs_f64() * 1e3,
        });
    }
    value
}
