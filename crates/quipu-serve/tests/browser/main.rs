//! Replayed pages in a real Chromium, which finds one server at the names of all hosts. Without Chromium the tests are
//! skipped, unless the environment variable `QUIPU_CHROMIUM_REQUIRED` is set.
//!
//! - `requests`: the browser requests what the page has;
//! - `model`: what Chromium takes for a page, beside what the model of it takes;
//! - `priorities`: responses go in the order of their urgencies, or not, as the server's policy says;
//! - `relay` is a link between the browser and the server;
//! - `served` is the server and `chromium` the browser; `pages` has the pages.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "a real browser is driven in real time")]
#![expect(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod chromium;
mod model;
mod pages;
mod priorities;
mod relay;
mod requests;
mod served;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time has the machine.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
