//! Boxes and arrows: the client at the left, the server at the right, paths between them.

use super::{Signs, link};
use quipu_scenario::{LinkError, LinkSpec, Network, PathSpec};

/// Lines, corners and arrows.
struct Pen {
    line: char,
    wall: char,
    corners: [char; 4],
    left: char,
    right: char,
}

const UNICODE: Pen =
    Pen {
        line: '─', wall: '│', corners: ['┌', '┐', '└', '┘'], left: '◀', right: '▶'
    };
const ASCII: Pen =
    Pen { line: '-', wall: '|', corners: ['+', '+', '+', '+'], left: '<', right: '>' };

const CLIENT: &str = " client ";
const SERVER: &str = " server ";

/// Links that some paths have between their access links, with these paths.
struct Shared<'n> {
    owner: usize,
    users: Vec<usize>,
    down: &'n LinkSpec,
    up: &'n LinkSpec,
}

/// One line of the picture between the hosts.
struct Row {
    text: String,
    /// Name of a path, behind the server.
    name: String,
}

/// The picture of `network`.
pub(super) fn picture(network: &Network, signs: Signs) -> Result<String, LinkError> {
    let pen = match signs {
        Signs::Unicode => &UNICODE,
        Signs::Ascii => &ASCII,
    };
    let groups = groups(network)?;
    let widest = |label: fn(&PathSpec) -> String| {
        let widths = network.paths.iter().map(|path| width(&label(path)));
        widths.max().filter(|widest| *widest > 0).map_or(0, |widest| widest + 4)
    };
    let sides = [widest(client_side), widest(server_side)];
    let inner = groups.iter().map(|group| {
        let texts = [title(network, group), link::label(group.down), link::label(group.up)];
        texts.iter().map(|text| width(text)).max().unwrap_or(0)
    });
    let inner = inner.max().unwrap_or(0) + 4;
    let mut rows: Vec<Row> = Vec::new();
    for group in &groups {
        if !rows.is_empty() {
            let [left, right] = sides;
            rows.push(Row { text: " ".repeat(left + right + inner + 6), name: String::new() });
        }
        draw_group(network, group, pen, sides, inner, &mut rows);
    }
    Ok(between_hosts(&rows, pen))
}

/// Paths by the links that they share, each group where its first path is.
fn groups(network: &Network) -> Result<Vec<Shared<'_>>, LinkError> {
    let mut groups: Vec<Shared<'_>> = Vec::new();
    for index in 0..network.paths.len() {
        let owner = network.bottleneck(index)?;
        if let Some(group) = groups.iter_mut().find(|group| group.owner == owner) {
            group.users.push(index);
        } else if let Some(links) = network.paths.get(owner).and_then(|path| path.own_links()) {
            groups.push(Shared { owner, users: vec![index], down: &links.down, up: &links.up });
        }
    }
    Ok(groups)
}

fn title(network: &Network, group: &Shared<'_>) -> String {
    let name = network.paths.get(group.owner).map_or("", |path| path.name.as_str());
    match group.users.len() {
        1 => name.to_owned(),
        several => format!("{name}, shared by {several} paths"),
    }
}

/// What is between the client and the path's own links.
fn client_side(path: &PathSpec) -> String {
    match (&path.radio, &path.access) {
        (Some(name), _) => format!("( radio {name} )"),
        (None, Some(access)) => format!("[ {} ]", link::label(access)),
        (None, None) => String::new(),
    }
}

/// What is between the path's own links and the server.
fn server_side(path: &PathSpec) -> String {
    let via = path.via.iter().rev().map(|name| format!("[ {name} ]"));
    let access = path.access.iter().map(|access| format!("[ {} ]", link::label(access)));
    via.chain(access).collect::<Vec<_>>().join(" ")
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn draw_group(
    network: &Network,
    group: &Shared<'_>,
    pen: &Pen,
    [left, right]: [usize; 2],
    inner: usize,
    rows: &mut Vec<Row>,
) {
    let [before, after] = [left, right].map(|side| " ".repeat(side + 2));
    let mut push = |text: String, name: &str| rows.push(Row { text, name: name.to_owned() });
    let [top_left, top_right, low_left, low_right] = pen.corners;
    let title = format!("{0} {1} ", pen.line, title(network, group));
    push(format!("{before}{top_left}{}{top_right}{after}", lined(&title, inner, pen)), "");
    for (position, &user) in group.users.iter().enumerate() {
        let Some(path) = network.paths.get(user) else { continue };
        if position > 0 {
            push(format!("{before}{0}{1}{0}{after}", pen.wall, " ".repeat(inner)), "");
        }
        let texts = match position {
            0 => [link::label(group.down), link::label(group.up)],
            // The same links once more.
            _ => [String::new(), String::new()],
        };
        let [client, server] = [client_side(path), server_side(path)];
        let [down, up] = texts;
        let ends = [
            ending(&client, left, Some(pen.left), None, pen),
            ending(&server, right, None, None, pen),
        ];
        let box_text = arrow(&down, inner, Some(pen.left), None);
        push(format!("{1}{0}{box_text}{0}{2}", pen.wall, ends[0], ends[1]), &path.name);
        let ends = [
            ending(&client, left, None, None, pen),
            ending(&server, right, None, Some(pen.right), pen),
        ];
        let box_text = arrow(&up, inner, None, Some(pen.right));
        push(format!("{1}{0}{box_text}{0}{2}", pen.wall, ends[0], ends[1]), "");
    }
    push(format!("{before}{low_left}{}{low_right}{after}", lined("", inner, pen)), "");
}

/// `text`, and a line up to `width`.
fn lined(text: &str, width: usize, pen: &Pen) -> String {
    let rest = width.saturating_sub(self::width(text));
    let mut line = text.to_owned();
    line.extend(std::iter::repeat_n(pen.line, rest));
    line
}

/// What a box says of a direction, with its arrow.
fn arrow(text: &str, width: usize, left: Option<char>, right: Option<char>) -> String {
    let text = format!("{} {text}", left.unwrap_or(' '));
    let rest = width.saturating_sub(self::width(&text) + 1);
    format!("{text}{}{}", " ".repeat(rest), right.unwrap_or(' '))
}

/// A line between a host and a box, with what is between them and arrow heads at its ends.
fn ending(access: &str, side: usize, left: Option<char>, right: Option<char>, pen: &Pen) -> String {
    let mut line: String = std::iter::once(left.unwrap_or(pen.line)).collect();
    line.extend((!access.is_empty()).then_some(pen.line));
    line.push_str(access);
    line.extend(std::iter::repeat_n(pen.line, (side + 1).saturating_sub(width(&line))));
    line.push(right.unwrap_or(pen.line));
    line
}

/// The rows between two boxes.
fn between_hosts(rows: &[Row], pen: &Pen) -> String {
    let [top_left, top_right, low_left, low_right] = pen.corners;
    let host = |left: char, right: char| {
        let line: String = std::iter::repeat_n(pen.line, width(CLIENT)).collect();
        format!("{left}{line}{right}")
    };
    let space = " ".repeat(rows.first().map_or(0, |row| width(&row.text)));
    let middle = rows.len() / 2;
    let mut text = format!("{0}{space}{0}\n", host(top_left, top_right));
    for (number, row) in rows.iter().enumerate() {
        let inside = |name: &'static str| if number == middle { name } else { "        " };
        let (client, server) = (inside(CLIENT), inside(SERVER));
        let line = format!("{0}{client}{0}{1}{0}{server}{0}  {2}", pen.wall, row.text, row.name);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(&format!("{0}{space}{0}\n", host(low_left, low_right)));
    text
}
