//! The table of networks: what each path can do, for plots over rates and delays.

use quipu_base::{Bytes, Duration, Rate};
use quipu_link::Loss;
use quipu_record::{FileError, NetworkPath, NetworksFile, Value};

use crate::plan::Plan;
use quipu_scenario::{Direction, LinkSpec, LossSpec, Network};

/// Adds a row for each path of each network of `plan`, which have the values `values` of the further
/// columns.
///
/// # Errors
/// If it cannot be written.
pub fn add_networks(
    table: &mut NetworksFile,
    plan: &Plan,
    values: &[Value<'_>],
) -> Result<(), FileError> {
    let both = [Direction::Down, Direction::Up];
    for planned in &plan.networks {
        let network = &planned.network;
        for (index, path) in (0_u32..).zip(&network.paths) {
            let at = index as usize;
            let row = NetworkPath {
                network: &network.name,
                path: index,
                name: &path.name,
                rates: both.map(|direction| rate(network, at, direction)),
                round_trip: network.round_trip(at).ok(),
                loss_ppm: both.map(|direction| loss_ppm(network, at, direction)),
                queues: both.map(|direction| queue(network, at, direction)),
            };
            table.add(&row, values)?;
        }
    }
    Ok(())
}

/// All links, without the radio, that a datagram on path `index` takes in one direction; each with the delays of the
/// longest way through it.
fn ways_of(
    network: &Network,
    index: usize,
    direction: Direction,
) -> Option<Vec<(&LinkSpec, Duration)>> {
    let owner = network.bottleneck(index).ok()?;
    let own = network.paths.get(owner)?.own_links()?.of(direction);
    let shares = |user: usize| network.bottleneck(user).is_ok_and(|other| other == owner);
    let mut ways = vec![(own, network.longest_way(direction, shares))];
    for place in network.via(index).ok()? {
        let link = network.links.get(place)?.links.of(direction);
        let passes = |user: usize| network.via(user).is_ok_and(|places| places.contains(&place));
        ways.push((link, network.longest_way(direction, passes)));
    }
    // Both hosts have one.
    if let Some(access) = network.paths.get(index).and_then(|path| path.access.as_ref()) {
        ways.extend([(access, network.one_way(index, direction)); 2]);
    }
    Some(ways)
}

fn links_of(
    network: &Network,
    index: usize,
    direction: Direction,
) -> Option<impl Iterator<Item = &LinkSpec>> {
    Some(ways_of(network, index, direction)?.into_iter().map(|(link, _)| link))
}

/// The least of the rates of its links; of recordings the mean.
fn rate(network: &Network, index: usize, direction: Direction) -> Option<Rate> {
    let links = links_of(network, index, direction)?;
    let rates = links.map(LinkSpec::usual_rate).collect::<Option<Vec<Rate>>>()?;
    rates.into_iter().min()
}

/// How many of a million datagrams are lost on any of its links on average; over the radio, and with
/// netem's correlated loss, that is not known.
fn loss_ppm(network: &Network, index: usize, direction: Direction) -> Option<u64> {
    if network.paths.get(index).is_some_and(|path| path.radio.is_some()) {
        return None;
    }
    let links = links_of(network, index, direction)?;
    let kept = links.map(|link| Some(1.0 - mean_loss(link)?));
    let kept = kept.collect::<Option<Vec<f64>>>()?.into_iter().product::<f64>();
    // At most a million.
    Some(((1.0 - kept) * 1e6 + 0.5) as u64)
}

/// What the queue of its slowest link holds; over the radio that is not known.
fn queue(network: &Network, index: usize, direction: Direction) -> Option<Bytes> {
    if network.paths.get(index).is_some_and(|path| path.radio.is_some()) {
        return None;
    }
    let ways = ways_of(network, index, direction)?.into_iter();
    // Links without a rate have no queue.
    let limited = ways.filter_map(|(link, one_way)| Some((link.usual_rate()?, link, one_way)));
    let (_, slowest, one_way) = limited.min_by_key(|(rate, ..)| *rate)?;
    slowest.queue_size(one_way)
}

fn mean_loss(link: &LinkSpec) -> Option<f64> {
    if link.loss_trace.is_none() {
        return mean_of(link.loss);
    }
    let losses = link.recorded_losses()?;
    let values: Vec<(u64, Loss)> =
        losses.values().map(|(from, loss)| (from.as_nanos(), loss)).collect();
    let ends = values.iter().skip(1).map(|(from, _)| *from);
    let ends = ends.chain([losses.length().as_nanos()]);
    let mut lost = 0.0;
    for ((from, loss), end) in values.iter().zip(ends) {
        let Loss::Independent(share) = loss else { return None };
        lost += share * end.saturating_sub(*from) as f64;
    }
    Some(lost / losses.length().as_nanos() as f64)
}

fn mean_of(loss: LossSpec) -> Option<f64> {
    match loss {
        LossSpec::Independent(share) | LossSpec::Bursts(share, _) => Some(share.as_f64()),
        LossSpec::Random(share, correlation) => {
            (share.is_zero() || correlation.is_zero()).then(|| share.as_f64())
        }
        LossSpec::GilbertElliott(numbers) => {
            let [to_bad, to_good, in_bad, in_good] = numbers.map(|share| share.as_f64());
            // It begins in the good state, and never leaves it if nothing turns bad.
            let bad = if to_bad == 0.0 { 0.0 } else { to_bad / (to_bad + to_good) };
            Some(bad * in_bad + (1.0 - bad) * in_good)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_scenario::Scenario;

    #[test]
    fn the_table_tells_what_each_path_can_do() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"
            pages = ["sitespeed"]
            networks = ["framework-high", { name = "n", paths = [
                { name = "near", down = { rate = "4mbit", delay = "10us", loss = "10%" },
                  up = { loss = "gemodel 1% 3% 50% 0%" },
                  access = { rate = "10mbit", delay = "45ms", loss = "10%" } },
                { name = "far", bottleneck = "near" },
                { name = "odd", down = { rate = "1mbit", delay = "1ms", loss = "random 1% 50%" } },
            ] }, "us-drive-08"]
        "#;
        let plan = Plan::new(Scenario::from_toml(text, "a.toml").unwrap()).unwrap();
        let mut table = NetworksFile::create(folder.path(), &[]).unwrap();
        add_networks(&mut table, &plan, &[]).unwrap();
        table.finish().unwrap();
        let text = std::fs::read_to_string(folder.path().join("networks.csv")).unwrap();
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(
            rows[1],
            "framework-high,0,lte,30000000,30000000,20000000,15000,15000,150000,150000"
        );
        assert_eq!(
            rows[2],
            "framework-high,1,wifi,55000000,55000000,30000000,30000,30000,412500,412500"
        );
        // A tenth is lost at each of three links.
        assert_eq!(rows[3], "n,0,near,4000000,4000000,180020000,271000,291250,180020,180020");
        assert_eq!(rows[4], "n,1,far,4000000,4000000,20000,100000,125000,180020,180020");
        assert_eq!(rows[5], "n,2,odd,1000000,1000000,2000000,,,75000,75000");
        assert!(rows[6].starts_with("us-drive-08,0,att,"), "{}", rows[6]);
        let numbers: Vec<u64> = rows[6].split(',').skip(3).map(|it| it.parse().unwrap()).collect();
        assert!(numbers[0] > 1_000_000 && numbers[2] > 10_000_000, "{numbers:?}");
    }
}
