//! Style sheets that request objects.

use std::fmt::Write as _;

use quipu_web::page::ObjectKind;

use super::plan::{Loaded, Plan};

/// The first of the characters that fonts are used for. Any would do: no font has them.
const FIRST_CHARACTER: u32 = 0x4e00;

impl Plan<'_> {
    /// True if the style sheet needs a box that its rules apply to: the box is the element that links it, which is
    /// displayed for that.
    pub(super) fn has_box(&self, sheet: usize) -> bool {
        let is_boxed = |&object: &usize| self.kind(object) != ObjectKind::Stylesheet;
        self.named[sheet].iter().any(is_boxed)
    }

    /// The style sheets imported by way of `link` that need a box, which are elements of their own.
    pub(super) fn imported_boxes(&self, link: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut open = vec![link];
        while let Some(sheet) = open.pop() {
            let is_sheet = |&object: &usize| matches!(self.loaded[object], Loaded::Sheet { .. });
            for object in self.named[sheet].iter().copied().filter(is_sheet) {
                if self.has_box(object) {
                    found.push(object);
                }
                open.push(object);
            }
        }
        found.sort_unstable();
        found
    }
}

/// The rules of a style sheet: it imports sheets, has pictures as the background of its box, and a character of
/// each font in it, whose only range is that character.
pub(super) fn rules(plan: &Plan<'_>, sheet: usize) -> String {
    let mut rules = String::new();
    let of_kind = |kind| {
        let named = plan.named[sheet].iter().copied();
        named.filter(move |&object| plan.kind(object) == kind)
    };
    // References in a style sheet are relative to the sheet.
    let url = |object: usize| text(&plan.addresses[object].from(&plan.addresses[sheet].authority));
    for object in of_kind(ObjectKind::Stylesheet) {
        let _ = write!(rules, "@import {};", url(object));
    }
    if plan.has_box(sheet) {
        let _ = write!(rules, "head,#c{sheet}{{display:block}}");
    }
    let pictures: Vec<String> =
        of_kind(ObjectKind::Image).map(|object| format!("url({})", url(object))).collect();
    if !pictures.is_empty() {
        let _ = write!(rules, "#c{sheet}{{background:{}}}", pictures.join(","));
    }
    let mut content = String::new();
    for (object, character) in of_kind(ObjectKind::Font).zip(FIRST_CHARACTER..) {
        let _ = write!(
            rules,
            "@font-face{{font-family:c{sheet};src:url({});unicode-range:U+{character:x}}}",
            url(object)
        );
        let _ = write!(content, "\\{character:x}");
    }
    if !content.is_empty() {
        let _ = write!(rules, "#c{sheet}::before{{font-family:c{sheet};content:\"{content}\"}}");
    }
    rules
}

/// A string of CSS.
fn text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' | '\\' => quoted.extend(['\\', sign]),
            sign if sign.is_control() => {
                let _ = write!(quoted, "\\{:x} ", u32::from(sign));
            }
            sign => quoted.push(sign),
        }
    }
    quoted.push('"');
    quoted
}
