//! How well pages are inferred from recordings: pages whose truth is known are loaded, recorded, inferred and
//! loaded again over other links.
//!
//! The inference gets the bytes of a HAR file and nothing else: the truth and a recording are
//! types of their own, and only the second can be inferred from.

mod cases;
mod table;
mod world;

use std::sync::atomic::{AtomicBool, Ordering};

use quipu_base::Seed;
use quipu_lab::detail::DetailError;
use quipu_web::har::HarError;
use quipu_web::page::PageError;
use rayon::prelude::*;
use thiserror::Error;

use crate::one_path::LoadError;

pub use cases::{Case, Inference, Knowledge, METRICS};
pub use table::{Reach, Row, rows, table, to_csv};

/// How much is tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTest {
    /// Number of random pages.
    pub pages: u64,
    /// Seed that they are drawn from.
    pub seed: Seed,
    /// Rates at which they are recorded, Mbit/s, in increasing order.
    pub recorded_at: Vec<u64>,
    /// Rates at which they are loaded again, Mbit/s.
    pub replayed_at: Vec<u64>,
}

impl Default for SelfTest {
    /// 1,000 pages recorded at 2, 10 and 50 Mbit/s, loaded again there and at 1,000.
    fn default() -> Self {
        SelfTest {
            pages: 1_000,
            seed: Seed::new(1),
            recorded_at: vec![2, 10, 50],
            replayed_at: vec![2, 10, 50, 1_000],
        }
    }
}

/// Why the test could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SelfTestError {
    /// A page could not be made, or inferred from its recording.
    #[error(transparent)]
    Page(#[from] PageError),
    /// Recordings could not be joined.
    #[error(transparent)]
    Har(#[from] HarError),
    /// A rate that no path has.
    #[error("{rate} Mbit/s is no rate of a path: {source}")]
    Rate {
        /// The rate.
        rate: u64,
        /// Why.
        source: quipu_scenario::LinkError,
    },
    /// A load could not be made.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A load could not be recorded.
    #[error(transparent)]
    Recording(Box<DetailError>),
}

impl From<DetailError> for SelfTestError {
    fn from(error: DetailError) -> Self {
        SelfTestError::Recording(Box::new(error))
    }
}

impl SelfTest {
    /// Makes the test over all cores, until `stop`; `done` is called after each page. The cases of all finished pages,
    /// in their order.
    ///
    /// # Errors
    /// If a page cannot be loaded or inferred.
    pub fn run(
        &self,
        stop: &AtomicBool,
        done: impl Fn() + Sync,
    ) -> Result<Vec<Case>, SelfTestError> {
        let of_page = |index: u64| -> Result<Vec<Case>, SelfTestError> {
            if stop.load(Ordering::Relaxed) {
                return Ok(Vec::new());
            }
            let cases = cases::of_page(self, index)?;
            done();
            Ok(cases)
        };
        let all: Result<Vec<Vec<Case>>, SelfTestError> =
            (0..self.pages).into_par_iter().map(of_page).collect();
        Ok(all?.into_iter().flatten().collect())
    }
}
