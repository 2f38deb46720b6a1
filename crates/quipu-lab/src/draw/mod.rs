//! Networks drawn as text: hosts, paths and their links, where links are shared, and what runs over
//! them.
//!
//! [`draw`] puts together a picture of boxes and arrows, a table of each path's round trip, product
//! of rate and round trip, and queue, lines for what a picture has no room for, and curves of rates
//! that change.

mod curve;
mod link;
mod picture;
mod traffic;

use std::fmt::Write;

use crate::table::{Align, Grid, Screen};
use quipu_scenario::{Direction, LinkError, Network, Scenario};

/// Which signs a drawing is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    /// Lines, arrows and blocks of Unicode.
    Unicode,
    /// ASCII alone.
    Ascii,
}

/// The drawing of `network`, one of those of `scenario`, with the traffic of the scenario.
///
/// # Errors
/// If a path names a bottleneck that is none.
pub fn draw(
    scenario: &Scenario,
    network: &Network,
    signs: Signs,
    screen: Screen,
) -> Result<String, LinkError> {
    let mut text = network.name.clone();
    if !network.about.is_empty() {
        let _ = write!(text, ": {}", network.about);
    }
    text.push_str("\n\n");
    let mut text = screen.fold(&text);
    let picture = picture::picture(network, signs)?;
    let widest = picture.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    match screen.width {
        Some(width) if widest > width => {
            for path in &network.paths {
                text.push_str(&screen.fold(&format!("{}\n", path.summary())));
            }
            let hint = format!("the drawing takes {widest} columns; --wide draws it\n");
            text.push_str(&screen.fold(&hint));
        }
        _ => text.push_str(&picture),
    }
    text.push('\n');
    text.push_str(&table(network)?.on(screen));
    let notes = link::notes(network);
    if !notes.is_empty() {
        let _ = write!(text, "\n{}", screen.fold(&notes));
    }
    let curves = curve::curves(network, signs);
    if !curves.is_empty() {
        let _ = write!(text, "\n{curves}");
    }
    let traffic = traffic::traffic(scenario);
    if !traffic.is_empty() {
        let _ = write!(text, "\n{}", screen.fold(&traffic));
    }
    Ok(match signs {
        Signs::Unicode => text,
        Signs::Ascii => text.chars().map(ascii).collect(),
    })
}

/// The nearest sign of ASCII, for names and abouts too.
fn ascii(sign: char) -> char {
    match sign {
        sign if sign.is_ascii() => sign,
        '–' | '—' | '─' => '-',
        '±' => '~',
        'µ' => 'u',
        _ => '?',
    }
}

/// Per path and direction what the scenario does not say: round trip, product, queue.
fn table(network: &Network) -> Result<Grid, LinkError> {
    let mut grid = Grid::new([
        ("path", Align::Left),
        ("direction", Align::Left),
        ("rate", Align::Right),
        ("one-way delay", Align::Right),
        ("round trip", Align::Right),
        ("BDP", Align::Right),
        ("queue", Align::Right),
        ("queue (bytes)", Align::Right),
        ("queue (time)", Align::Right),
    ])
    .optional([(5, 0), (7, 1), (4, 2)]);
    for (index, path) in network.paths.iter().enumerate() {
        let owner = network.bottleneck(index)?;
        let Some(links) = network.paths.get(owner).and_then(|path| path.own_links()) else {
            continue;
        };
        let round_trip = network.round_trip(index)?;
        for (way, own) in [("down", &links.down), ("up", &links.up)] {
            let direction = if way == "up" { Direction::Up } else { Direction::Down };
            let one_way = network.one_way(index, direction);
            // The queue of a shared link counts its longest path, as the run does.
            let shares = |user| network.bottleneck(user).is_ok_and(|of| of == owner);
            let queue = own.queue_size(network.longest_way(direction, shares));
            let rate = link::narrowest(own, path.access.as_ref());
            grid.row([
                path.name.clone(),
                way.to_owned(),
                link::rate(rate),
                link::time(one_way),
                link::time(round_trip),
                link::size(rate.bytes_in(round_trip)),
                link::queue_text(own),
                queue.map_or_else(|| "no limit".to_owned(), link::size),
                queue.map_or_else(String::new, |queue| link::drain(queue, own)),
            ]);
        }
    }
    Ok(grid)
}

#[cfg(test)]
mod tests;
