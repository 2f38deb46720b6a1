//! What results say about a page.

use serde::Serialize;

/// What the table says about a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageNote {
    /// Its name.
    pub name: String,
    /// Its objects; the mean if it is another in each run.
    pub objects: usize,
    /// Those that the page's time waits for; `null` if it is another page in each run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<usize>,
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
    /// Which, such as `main_size`.
    pub quantity: String,
    /// Values drawn.
    pub count: u64,
    /// Their mean, in bytes, objects or seconds.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// The largest.
    pub most: f64,
    /// Mean of the natural logarithms of those above zero.
    pub log_mean: f64,
    /// Standard deviation of these.
    pub log_deviation: f64,
}
