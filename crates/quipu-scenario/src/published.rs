//! Pages of the docs whose end is written from the code.

use std::path::{Path, PathBuf};

/// The project's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Holds what stands behind `mark` in `page` of the docs to `text`, or writes it if `QUIPU_RENEW` is set.
#[track_caller]
pub(crate) fn hold(page: &str, mark: &str, text: &str) {
    let file = root().join("docs").join(page);
    let before = std::fs::read_to_string(&file).expect("the page is there");
    let (head, _) = before.split_once(mark).expect("the page has the mark");
    let ours = format!("{head}{mark}{text}");
    if std::env::var_os("QUIPU_RENEW").is_some() {
        std::fs::write(&file, &ours).expect("the page can be written");
    }
    let published = std::fs::read_to_string(&file).expect("the page is there");
    let renew = "renew it: QUIPU_RENEW=1 cargo test -p quipu-scenario --lib published";
    assert!(published == ours, "docs/{page} is not of this code; {renew}");
}
