//! Curves of rates over time, in one line each.

use quipu_base::{Bytes, Duration, Instant, Rate};
use quipu_link::Capacity;

use super::{Signs, link};
use quipu_scenario::{LinkSpec, Network, OwnLinks};

/// Signs of a curve; our choice, so that lines with names and bounds fit a page.
const WIDTH: u32 = 60;

const UNICODE: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 9] = [' ', '_', '.', ',', '-', '=', '+', '*', '#'];

/// A curve for each link whose rate changes.
pub(super) fn curves(network: &Network, signs: Signs) -> String {
    let mut text = String::new();
    for path in &network.paths {
        let own = path.own_links().into_iter().flat_map(|OwnLinks { down, up }| {
            let up = (up != down || down.is_recorded()).then_some(("up", up));
            std::iter::once(("down", down)).chain(up)
        });
        for (way, link) in own.chain(path.access.iter().map(|access| ("access", access))) {
            if let Some(end) = horizon(link) {
                let (curve, most) = curve(link, end, signs);
                let (most, end) = (link::rate(most), link::time(end));
                let wall = if signs == Signs::Ascii { '|' } else { '│' };
                let name = format!("{} {way}", path.name);
                text.push_str(&format!("{name}: 0 to {most}, over {end}\n{wall}{curve}{wall}\n"));
            }
        }
    }
    text
}

/// How much time a curve shows: a third more than to the last change; `None` if nothing changes.
fn horizon(link: &LinkSpec) -> Option<Duration> {
    if let Some(length) = link.recorded_length() {
        return Some(length);
    }
    let changes = link.steps.iter().filter(|step| step.rate.is_some());
    let last = changes.map(|step| step.at + step.over).max()?;
    // Whole seconds read better, where there are some.
    let end = last.as_nanos().saturating_add(last.as_nanos() / 3).max(1_000);
    const SECOND: u64 = 1_000_000_000;
    Some(Duration::from_nanos(if end > SECOND { end.div_ceil(SECOND) * SECOND } else { end }))
}

/// The mean rates of equal parts of the time up to `end`, and the highest of them.
fn curve(link: &LinkSpec, end: Duration, signs: Signs) -> (String, Rate) {
    let signs = match signs {
        Signs::Unicode => &UNICODE,
        Signs::Ascii => &ASCII,
    };
    let at = |part: u32| {
        let nanos = u128::from(end.as_nanos()) * u128::from(part) / u128::from(WIDTH);
        Instant::ZERO + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    };
    // A start that is drawn counts as the recording's.
    let capacity = Capacity::of(&LinkSpec { from: None, ..link.clone() }.config(Bytes::ZERO));
    let rates = (0..WIDTH).map(|part| {
        let (from, until) = (at(part), at(part + 1));
        let nanos = (until - from).as_nanos().max(1);
        let bits = u128::from(capacity.between(from, until).0) * 8 * 1_000_000_000;
        u64::try_from(bits / u128::from(nanos)).unwrap_or(u64::MAX)
    });
    let rates: Vec<u64> = rates.collect();
    let most = rates.iter().copied().max().unwrap_or(0).max(1);
    let sign = |rate: u64| {
        // Nothing is nothing, and anything more is seen.
        let level = (u128::from(rate) * 8).div_ceil(u128::from(most));
        usize::try_from(level).ok().and_then(|level| signs.get(level)).copied().unwrap_or(' ')
    };
    (rates.into_iter().map(sign).collect(), Rate::from_bits_per_sec(most))
}
