//! What results say about a page.

use quipu_web::page::Page;
use quipu_web::synthetic::{Moments, Quantity};
use serde::Serialize;

/// What the table says about a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageNote {
    /// Its name.
    pub name: String,
    /// Its objects; the mean if it is another in each run.
    pub objects: usize,
    /// Bytes of their bodies; the mean if it is another in each run.
    pub bytes: u64,
    /// Hosts that were folded into one server.
    pub hosts: usize,
    /// Hash of what the page is made of, so that a changed file is noticed.
    pub hash: String,
    /// What was drawn, if runs or visits differ in what they load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drawn: Option<DrawnNote>,
}

/// What was drawn for the runs of an experiment, every page counted once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrawnNote {
    /// Pages.
    pub pages: u64,
    /// Objects of the page with the fewest and of that with the most.
    pub objects: (u64, u64),
    /// Bytes of bodies of the smallest page and of the largest.
    pub bytes: (u64, u64),
    /// The quantities of the model.
    pub quantities: Vec<QuantityNote>,
}

/// A quantity of the model as it was drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuantityNote {
    /// Which.
    pub quantity: Quantity,
    /// Values drawn.
    pub count: u64,
    /// Their mean, in bytes, objects or seconds.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// The largest.
    pub most: f64,
}

impl PageNote {
    /// About `page`, which is the same in every run.
    pub(crate) fn of(page: &Page, name: String, hash: String) -> PageNote {
        PageNote {
            name,
            objects: page.objects().len(),
            bytes: page.body_bytes().0,
            hosts: page.hosts(),
            hash,
            drawn: None,
        }
    }
}

impl QuantityNote {
    pub(crate) fn new(quantity: Quantity, moments: &Moments) -> QuantityNote {
        QuantityNote {
            quantity,
            count: moments.count,
            mean: moments.mean,
            deviation: moments.deviation(),
            most: moments.most,
        }
    }
}
