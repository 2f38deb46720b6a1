//! Several recordings of one page as one file.

use serde_json::{Value, json};

use crate::har::{Har, HarError};

/// A HAR file with the loads of all `files`, in their order, as loads of one page; a load's number becomes its id. What
/// the files say beside their pages and entries is taken from the first.
///
/// # Errors
/// If one of them is no HAR file.
pub fn join(files: &[&[u8]]) -> Result<Vec<u8>, HarError> {
    let mut pages = Vec::new();
    let mut entries = Vec::new();
    let mut whole = None;
    for file in files {
        // The reader knows best what is wrong with a file.
        Har::parse(file)?;
        let text = file.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(file);
        let mut document: Value = serde_json::from_slice(text).unwrap_or_default();
        let log = document.get_mut("log").map(Value::take).unwrap_or_default();
        add(&log, &mut pages, &mut entries);
        whole.get_or_insert(log);
    }
    let mut log = whole.unwrap_or_default();
    if let Some(fields) = log.as_object_mut() {
        fields.insert("pages".to_owned(), Value::Array(pages));
        fields.insert("entries".to_owned(), Value::Array(entries));
    }
    let mut text = format!("{:#}", json!({ "log": log }));
    text.push('\n');
    Ok(text.into_bytes())
}

/// Adds the loads of a file, numbered after those that are there.
fn add(log: &Value, pages: &mut Vec<Value>, entries: &mut Vec<Value>) {
    let list = |name: &str| log.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut own = list("pages");
    if own.is_empty() {
        own.push(json!({ "title": "" }));
    }
    let first = pages.len() + 1;
    let id = |number: usize| Value::from(format!("page_{number}"));
    let old: Vec<Value> =
        own.iter().map(|page| page.get("id").cloned().unwrap_or_default()).collect();
    for (number, mut page) in (first..).zip(own) {
        if let Some(fields) = page.as_object_mut() {
            fields.insert("id".to_owned(), id(number));
            // So the reader takes the loads together.
            fields.entry("_network").or_insert_with(|| "unknown".into());
            pages.push(page);
        }
    }
    for mut entry in list("entries") {
        let of = entry.get("pageref").and_then(|name| old.iter().position(|old| old == name));
        if let Some(fields) = entry.as_object_mut() {
            fields.insert("pageref".to_owned(), id(first + of.unwrap_or(0)));
            entries.push(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{ReadOptions, read};

    fn file(page: &str, path: &str) -> String {
        json!({ "log": {
            "pages": [{ "id": page, "startedDateTime": "2026-01-01T00:00:00Z" }],
            "entries": [{
                "pageref": page,
                "startedDateTime": "2026-01-01T00:00:00Z",
                "time": 10,
                "request": { "url": format!("https://a.test/{path}") },
                "response": { "status": 200, "bodySize": 10 },
            }],
        } })
        .to_string()
    }

    #[test]
    fn loads_keep_their_entries_and_get_numbers() {
        let (one, other) = (file("x", "one"), file("x", "other"));
        let joined = join(&[one.as_bytes(), other.as_bytes()]).unwrap();
        for (load, path) in [("1", "/one"), ("page_2", "/other")] {
            let options = ReadOptions { load: Some(load.to_owned()), ..ReadOptions::default() };
            let page = read("joined", &joined, &options).unwrap().page;
            assert_eq!(page.objects().len(), 1);
            assert_eq!(page.objects()[0].path(), path);
        }
    }

    #[test]
    fn a_file_that_is_none_is_named_for_what_it_is() {
        assert!(matches!(join(&[b"{}"]), Err(HarError::NoLog { .. })));
    }
}
