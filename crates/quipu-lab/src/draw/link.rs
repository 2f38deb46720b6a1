//! What there is to say of one link.

use quipu_base::{Bytes, Duration, Rate};

use quipu_scenario::units::Unit;
use quipu_scenario::{LinkSpec, LossSpec, Network, OwnLinks, SharedLinks, StepSpec};

/// Steps that are told one by one.
const FEW: usize = 4;

/// In a box: rate and delay, and what makes datagrams late or lost.
pub(super) fn label(link: &LinkSpec) -> String {
    let mut text = rate_label(link);
    if let Some(trace) = &link.delay_trace {
        text.push_str(&format!(" delay {}", trace.short_name()));
    }
    if link.delay_trace.is_none() || !link.delay.is_zero() {
        let plus = if link.delay_trace.is_some() { "+" } else { "" };
        text.push_str(&format!(" {plus}{}", link.delay.print()));
    }
    if !link.jitter.is_zero() {
        text.push_str(&format!(" ±{}", link.jitter.print()));
    }
    if let Some(trace) = &link.loss_trace {
        text.push_str(&format!(" loss {}", trace.short_name()));
    } else if link.loss != LossSpec::NONE {
        text.push_str(&format!(" loss {}", link.loss.print()));
    }
    let queue = queue_text(link);
    if queue != "default" {
        text.push_str(&format!(" queue {queue}"));
    }
    text
}

fn rate_label(link: &LinkSpec) -> String {
    let first = match (&link.rate, &link.trace) {
        (_, Some(trace)) => format!("trace {}", trace.short_name()),
        (Some(rate), None) => rate.print(),
        (None, None) => String::new(),
    };
    match link.steps.len() {
        0 => first,
        1 => format!("{first}, 1 step,"),
        many => format!("{first}, {many} steps,"),
    }
}

/// The rate at the start; of a recording the mean.
fn first_rate(link: &LinkSpec) -> Rate {
    link.usual_rate().unwrap_or(Rate::ZERO)
}

/// The least of the rates at the start of the links of a path.
pub(super) fn narrowest(own: &LinkSpec, access: Option<&LinkSpec>) -> Rate {
    access.map_or(first_rate(own), |access| first_rate(access).min(first_rate(own)))
}

/// The limit of the queue, as it is written.
pub(super) fn queue_text(link: &LinkSpec) -> String {
    link.queue.summary()
}

/// How long a full queue takes to drain at the first rate.
pub(super) fn drain(queue: Bytes, link: &LinkSpec) -> String {
    time(first_rate(link).time_for(queue))
}

/// A rate with few digits.
pub(super) fn rate(rate: Rate) -> String {
    let bits = rate.bits_per_sec() as f64;
    rounded(bits, &[("bit", 1.0), ("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)])
}

/// A time with few digits.
pub(super) fn time(time: Duration) -> String {
    rounded(time.as_nanos() as f64, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)])
}

/// A size with few digits.
pub(super) fn size(bytes: Bytes) -> String {
    rounded(bytes.0 as f64, &[("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)])
}

/// `value` in the largest unit that it reaches, of units in ascending order, with four digits at
/// most.
fn rounded(value: f64, units: &[(&str, f64)]) -> String {
    let reached = units.iter().rev().find(|(_, scale)| value >= *scale).or(units.first());
    let (name, scale) = reached.copied().unwrap_or(("", 1.0));
    let amount = value / scale;
    let decimals = match amount {
        amount if amount >= 1_000.0 => 0,
        amount if amount >= 100.0 => 1,
        _ => 2,
    };
    let text = format!("{amount:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{name}")
}

/// Each link that has more than a box can say, a line each; before them links that several paths
/// name, and what the radio has.
pub(super) fn notes(network: &Network) -> String {
    let mut text = String::new();
    for SharedLinks { name, links: OwnLinks { down, up } } in &network.links {
        let users = network.paths.iter().filter(|path| path.via.contains(name));
        let users: Vec<&str> = users.map(|path| path.name.as_str()).collect();
        let up = if up == down { String::new() } else { format!(", up {}", label(up)) };
        let users = users.join(", ");
        text.push_str(&format!("links {name}: {}{up}; shared by {users}\n", label(down)));
    }
    if let Some(radio) = &network.radio {
        let points = radio.access_points.iter().map(|point| {
            let [east, north] = point.position;
            format!("{} on channel {} at {east} m, {north} m", point.name, point.channel)
        });
        let points = points.collect::<Vec<_>>().join("; ");
        let stations = match radio.stations.len() {
            1 => "1 station".to_owned(),
            several => format!("{several} stations"),
        };
        text.push_str(&format!("radio: {points}; {stations}\n"));
    }
    for path in &network.paths {
        let own = path.own_links().into_iter().flat_map(|OwnLinks { down, up }| {
            let up = (up != down).then_some(("up", up));
            let way = if up.is_some() { "down" } else { "both ways" };
            std::iter::once((way, down)).chain(up)
        });
        for (way, link) in own.chain(path.access.iter().map(|access| ("access", access))) {
            let more = more(link);
            if !more.is_empty() {
                text.push_str(&format!("{} {way}: {}\n", path.name, more.join("; ")));
            }
        }
    }
    text
}

fn more(link: &LinkSpec) -> Vec<String> {
    let mut more = Vec::new();
    if !link.steps.is_empty() && link.steps.len() <= FEW {
        let steps: Vec<String> = link.steps.iter().map(step).collect();
        more.push(steps.join(", "));
    }
    for (what, trace) in link.recordings() {
        more.push(format!("{what} as recorded in {}", trace.short_name()));
    }
    if let Some(from) = link.from.filter(|_| link.is_recorded()) {
        let end = link.at_end.unwrap_or_default();
        more.push(format!("recordings from {}, at their end {end}", from.print()));
    }
    if !link.jitter_correlation.is_zero() {
        more.push(format!("jitter correlated by {}", link.jitter_correlation.print()));
    }
    if link.jitter_reorders {
        more.push("jitter reorders".to_owned());
    }
    if link.mark.is_some() {
        more.push(format!("marks above {}", link.mark.print()));
    }
    if !link.reorder.share.is_zero() {
        let (share, extra) = (link.reorder.share.print(), link.reorder.extra.print());
        more.push(format!("{share} late by {extra}"));
    }
    if !link.duplicate.share.is_zero() {
        let (share, after) = (link.duplicate.share.print(), link.duplicate.after.print());
        more.push(format!("{share} twice, {after} apart"));
    }
    for outage in &link.outages {
        more.push(format!("down from {} until {}", outage.from.print(), outage.until.print()));
    }
    more
}

/// A change in words.
fn step(step: &StepSpec) -> String {
    let rate = step.rate.map(|rate| match rate {
        None => "nothing".to_owned(),
        Some(rate) => rate.print(),
    });
    let delay = step.delay.map(|delay| delay.print());
    let loss = step.loss.map(|loss| format!("loss {}", loss.print()));
    let parts: Vec<String> = [rate, delay, loss].into_iter().flatten().collect();
    let mut text = format!("{} from {}", parts.join(" "), step.at.print());
    if !step.over.is_zero() {
        text.push_str(&format!(" over {}", step.over.print()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_few_digits_and_the_unit_that_fits() {
        assert_eq!(size(Bytes(412_500)), "412.5kB");
        assert_eq!(size(Bytes(999)), "999B");
        assert_eq!(size(Bytes(0)), "0B");
        assert_eq!(time(Duration::from_micros(180_020)), "180ms");
        assert_eq!(time(Duration::from_micros(1_500)), "1.5ms");
        assert_eq!(rate(Rate::from_mbit_per_sec(57)), "57mbit");
        assert_eq!(rate(Rate::from_bits_per_sec(57_400_000)), "57.4mbit");
        assert_eq!(rate(Rate::from_mbit_per_sec(1_000_000)), "1000gbit");
    }
}
