//! What text is printed on: how wide it is, and whether it shows colours.

/// What text is printed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Columns; `None` does not limit lines.
    pub width: Option<usize>,
    /// Whether it shows colours (ANSI escape sequences).
    pub colour: bool,
}

/// What a piece of text says, for those who see colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing beyond its words.
    #[default]
    Plain,
    /// A head or a name.
    Strong,
    /// Less important than what is around it.
    Faint,
    /// Better than what it is compared with.
    Good,
    /// Worse than what it is compared with.
    Bad,
    /// Colours without a meaning of their own, to tell kinds apart.
    Blue,
    /// The same.
    Cyan,
    /// The same.
    Magenta,
    /// The same.
    Yellow,
}

impl Tone {
    /// Number of the ANSI attribute or colour.
    fn code(self) -> Option<u8> {
        match self {
            Tone::Plain => None,
            Tone::Strong => Some(1),
            Tone::Faint => Some(2),
            Tone::Good => Some(32),
            Tone::Bad => Some(31),
            Tone::Yellow => Some(33),
            Tone::Blue => Some(34),
            Tone::Magenta => Some(35),
            Tone::Cyan => Some(36),
        }
    }
}

impl Screen {
    /// No limit and no colours, as for files.
    pub const ANY: Screen = Screen { width: None, colour: false };

    /// `text` in the tone, if there are colours.
    pub fn toned(self, text: &str, tone: Tone) -> String {
        match tone.code().filter(|_| self.colour && !text.trim().is_empty()) {
            Some(code) => format!("\x1b[{code}m{text}\x1b[0m"),
            None => text.to_owned(),
        }
    }

    /// Prose with lines that fit: those that are too long are broken at spaces, and go on below the indent of their first line
    /// and two columns more. A word that is too long for a line of its own is broken anywhere.
    pub fn fold(self, text: &str) -> String {
        let Some(width) = self.width else { return text.to_owned() };
        let mut folded = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let (line, end) = match line.strip_suffix('\n') {
                Some(line) => (line, "\n"),
                None => (line, ""),
            };
            if visible(line) <= width {
                folded.push_str(line);
            } else {
                let first = line.trim_start_matches(' ');
                let indent = (line.len() - first.len()).min(width / 2);
                let hang = (indent + 2).min(width / 2);
                let parts = broken(first, width.saturating_sub(indent), width.saturating_sub(hang));
                for (index, part) in parts.iter().enumerate() {
                    if index > 0 {
                        folded.push('\n');
                    }
                    folded.push_str(&" ".repeat(if index == 0 { indent } else { hang }));
                    folded.push_str(part);
                }
            }
            folded.push_str(end);
        }
        folded
    }
}

/// Columns that a line takes: escape sequences of colours take none.
pub(super) fn visible(line: &str) -> usize {
    let mut columns = 0;
    let mut escaped = false;
    for sign in line.chars() {
        match sign {
            '\x1b' => escaped = true,
            'm' if escaped => escaped = false,
            _ if escaped => {}
            _ => columns += 1,
        }
    }
    columns
}

/// `text` in parts of at most `first` columns, then `rest`.
pub(super) fn broken(text: &str, first: usize, rest: usize) -> Vec<String> {
    let (first, rest) = (first.max(1), rest.max(1));
    let mut parts: Vec<String> = Vec::new();
    let mut part = String::new();
    for word in text.split(' ') {
        let mut word = word;
        loop {
            let width = if parts.is_empty() { first } else { rest };
            let (taken, gap) = (visible(&part), usize::from(!part.is_empty()));
            let length = visible(word);
            if taken + gap + length <= width {
                if gap == 1 {
                    part.push(' ');
                }
                part.push_str(word);
                break;
            }
            if !part.is_empty() {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            let cut = word.char_indices().nth(width).map_or(word.len(), |(at, _)| at);
            parts.push(word[..cut].to_owned());
            word = &word[cut..];
        }
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NARROW: Screen = Screen { width: Some(20), colour: false };

    #[test]
    fn long_lines_are_broken_at_spaces_and_indented() {
        let text = "short\n  one two three four five six\n";
        assert_eq!(NARROW.fold(text), "short\n  one two three four\n    five six\n");
        assert_eq!(NARROW.fold("abcdefghijklmnopqrstuvwxyz"), "abcdefghijklmnopqrst\n  uvwxyz");
        assert_eq!(Screen::ANY.fold(text), text);
    }

    #[test]
    fn colours_take_no_columns_and_are_off_without_a_terminal() {
        let screen = Screen { width: Some(20), colour: true };
        let green = screen.toned("0.93", Tone::Good);
        assert_eq!(green, "\x1b[32m0.93\x1b[0m");
        assert_eq!(visible(&green), 4);
        assert_eq!(NARROW.toned("0.93", Tone::Good), "0.93");
        assert_eq!(screen.toned("  ", Tone::Strong), "  ");
    }

    proptest! {
        #[test]
        fn no_line_is_too_long_and_no_word_is_lost(
            text in "[a-zµ ]{0,30}(\n {0,30}[a-zµ]{0,40}[a-z ]{0,40}){0,4}",
            width in 1..60_usize,
        ) {
            let folded = Screen { width: Some(width), colour: false }.fold(&text);
            prop_assert!(folded.lines().all(|line| visible(line) <= width.max(2)), "{folded:?}");
            let signs = |text: &str| text.chars().filter(|sign| !sign.is_whitespace()).collect::<String>();
            prop_assert_eq!(signs(&folded), signs(&text));
        }
    }
}
