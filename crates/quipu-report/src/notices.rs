//! What could not be read, or is not as it should be: one line each.

/// Notices in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notices(Vec<String>);

/// Notices that are kept; what goes beyond is counted.
const MOST: usize = 50;

/// Characters of a name or value that are shown.
const LONGEST: usize = 200;

impl Notices {
    /// Adds a line. One that is there already is not said twice.
    pub fn add(&mut self, line: impl AsRef<str>) {
        let line = one_line(line.as_ref());
        if !self.0.contains(&line) {
            self.0.push(line);
        }
    }

    /// All lines; of too many the first, and how many more there are.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.0.iter().take(MOST).cloned().collect();
        let more = self.0.len() - lines.len();
        if more > 0 {
            lines.push(format!("{more} more notices of the same kinds."));
        }
        lines
    }
}

/// `text` without line breaks and other control characters.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect()
}

/// A name or value from a file: on one line, and not longer than a reader would read.
pub(crate) fn clean(text: &str) -> String {
    let mut signs = text.chars();
    let mut kept = one_line(&signs.by_ref().take(LONGEST).collect::<String>());
    if signs.next().is_some() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_single_and_bounded() {
        let mut notices = Notices::default();
        notices.add("a\nb");
        notices.add("a b");
        assert_eq!(notices.lines(), ["a b"]);
        (0..100).for_each(|index| notices.add(format!("line {index}")));
        assert_eq!(notices.lines().len(), MOST + 1);
        assert_eq!(notices.lines()[MOST], "51 more notices of the same kinds.");
        assert_eq!(clean(&"é".repeat(300)).chars().count(), LONGEST + 1);
    }
}
