//! Patterns of text.

/// Whether `text` is `pattern`, in which each `*` stands for any text, none included.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        // The first place leaves most for what follows.
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text_and_all_else_for_itself() {
        for (pattern, text, expected) in [
            ("a.test", "a.test", true),
            ("a.test", "a.test:8443", false),
            ("*.test", "a.test", true),
            ("*.test", ".test", true),
            ("*.test", "a.test.org", false),
            ("https://*/b*", "https://a/b.css", true),
            ("cdn*", "cdn", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a*b*a", "aba", true),
            // No sign stands for two parts.
            ("a*a", "a", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
            ("", "a", false),
            ("**", "x", true),
            ("*ä*", "xäy", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
