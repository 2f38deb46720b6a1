//! How evenly something is shared.

use serde::Serialize;

use crate::loads::Runs;
use crate::sharing::Spread;

/// How evenly the clients of each run were served: Jain's index, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fairness {
    /// Clients of a run.
    pub clients: usize,
    /// Of their page times; of sessions, of the sums of all pages.
    pub page_time: Spread,
    /// Of their rates: bytes of bodies by page time, pages that take none left out.
    pub goodput: Spread,
}

/// Jain's index of what each got, in millionths: `(Σx)² ÷ (n · Σx²)`, one million if all got the same.
/// `None` of fewer than two, or if none got anything.
/// Jain, Chiu, Hawe: A Quantitative Measure of Fairness and Discrimination, 1984, equation 2.
pub fn jain(amounts: &[u64]) -> Option<u64> {
    if amounts.len() < 2 {
        return None;
    }
    // Shares of the largest in 2^32 parts, so that squares and sums of them fit.
    let most = u128::from(*amounts.iter().max()?);
    let parts = |amount: &u64| (u128::from(*amount) << 32).checked_div(most);
    let parts = amounts.iter().map(parts).collect::<Option<Vec<u128>>>()?;
    let sum: u128 = parts.iter().sum();
    let squares: u128 = parts.iter().map(|part| part * part).sum();
    // At most (1000 · 2^32)^2 · 10^6, below 2^128.
    let index = (sum * sum * 1_000_000).checked_div(squares * parts.len() as u128)?;
    u64::try_from(index).ok()
}

/// Over `runs`, which come run by run and client by client; `None` if they have one client each.
pub fn between_clients(runs: &Runs<'_>) -> Option<Fairness> {
    let clients = runs.iter().map(|(_, record)| record.client as usize + 1).max()?;
    let mut indices = (Vec::new(), Vec::new());
    for run in runs.chunk_by(|(one, _), (next, _)| one.0 == next.0) {
        let mut times = vec![0_u64; clients];
        let mut bytes = vec![0_u64; clients];
        for (_, record) in run {
            let client = record.client as usize;
            times[client] = times[client].saturating_add(record.page_time.as_nanos());
            let body: u64 = record.objects.iter().map(|object| object.body.0).sum();
            bytes[client] = bytes[client].saturating_add(body);
        }
        let rate = |(bytes, time): (&u64, &u64)| {
            // Bytes per second.
            let rate = u128::from(*bytes) * 1_000_000_000;
            u64::try_from(rate.checked_div(u128::from(*time))?).ok()
        };
        let rates: Vec<u64> = bytes.iter().zip(&times).filter_map(rate).collect();
        indices.0.extend(jain(&times));
        indices.1.extend(jain(&rates));
    }
    Some(Fairness { clients, page_time: Spread::of(indices.0)?, goodput: Spread::of(indices.1)? })
}

#[cfg(test)]
mod tests {
    use quipu_base::Duration;

    use super::*;
    use crate::run::RunRecord;

    #[test]
    fn jains_index_is_one_for_equals_and_one_over_n_for_a_winner() {
        assert_eq!(jain(&[5, 5, 5]), Some(1_000_000));
        assert_eq!(jain(&[u64::MAX; 1_000]), Some(1_000_000));
        assert_eq!(jain(&[0, 7, 0, 0]), Some(250_000));
        // (1 + 3)^2 / (2 * (1 + 9)).
        assert!(jain(&[1, 3]).unwrap().abs_diff(800_000) <= 1);
        assert_eq!((jain(&[]), jain(&[5]), jain(&[0, 0])), (None, None, None));
    }

    #[test]
    fn clients_are_compared_within_their_run() {
        let record = |client, seconds| RunRecord {
            client,
            page_time: Duration::from_secs(seconds),
            objects: vec![crate::run::ObjectRecord {
                body: quipu_base::Bytes(6_000),
                ..Default::default()
            }],
            ..RunRecord::default()
        };
        let records = [record(0, 1), record(1, 3), record(0, 2), record(1, 2)];
        let keys = [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0)];
        let runs: Runs<'_> = keys.into_iter().zip(&records).collect();
        let fairness = between_clients(&runs).unwrap();
        assert_eq!(fairness.clients, 2);
        let Spread { least, most, .. } = fairness.page_time;
        assert!(least.abs_diff(800_000) <= 1 && most == 1_000_000, "{fairness:?}");
        // 6,000 and 2,000 bytes per second are as uneven.
        assert!(fairness.goodput.least.abs_diff(800_000) <= 1, "{fairness:?}");
        assert_eq!(between_clients(&vec![(keys[0], &records[0])]), None);
    }
}
