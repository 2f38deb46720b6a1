//! What results say about a page.

use quipu_record::{PageNote, QuantityNote};
use quipu_web::page::{Page, PageReport, Skipped};
use quipu_web::synthetic::{Moments, Quantity};

/// About `page`, which is the same in every run.
pub(super) fn of_page(page: &Page, name: String, hash: String) -> PageNote {
    PageNote {
        name,
        objects: page.objects().len(),
        held: Some(page.objects().iter().filter(|object| object.not_held.is_none()).count()),
        bytes: page.body_bytes().0,
        hosts: page.hosts(),
        hash,
        drawn: None,
    }
}

/// What whoever loads the page of a file should know of it, a line each.
pub(super) fn notices(report: &PageReport) -> Vec<String> {
    let count = |objects: usize| match objects {
        1 => "1 entry".to_owned(),
        several => format!("{several} entries"),
    };
    let skipped = |why| report.left_out.iter().filter(|entry| entry.reason == why).count();
    let mut notices = Vec::new();
    for (why, word) in [
        (Skipped::Failed, "blocked, cancelled or failed"),
        (Skipped::Broken, "broken, without a URL"),
    ] {
        if let number @ 1.. = skipped(why) {
            let entries = count(number);
            notices.push(format!("{entries} left out: {word}; `quipu page show` lists them"));
        }
    }
    notices
}

/// About `quantity` of the model, drawn so often.
pub(crate) fn of_quantity(quantity: Quantity, moments: &Moments) -> QuantityNote {
    QuantityNote {
        quantity: quantity.key().to_owned(),
        count: moments.count,
        mean: moments.mean,
        deviation: moments.deviation(),
        most: moments.most,
        log_mean: moments.log_mean,
        log_deviation: moments.log_deviation(),
    }
}
