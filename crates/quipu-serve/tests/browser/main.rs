//! Replayed pages in a real Chromium and a real Firefox, which find one server at the names of all hosts. Without a
//! browser its tests are skipped, unless the environment variable `QUIPU_CHROMIUM_REQUIRED` or `QUIPU_FIREFOX_REQUIRED`
//! is set.
//!
//! - `requests`: the browser requests what the page has, and receives it;
//! - `model`: the times of a page in a browser, beside those in the model of it;
//! - `priorities`: responses go in the order of their urgencies, or not, as the server's policy says;
//! - `relay` is a link between the browser and the server;
//! - `served` is the server, `chromium` and `firefox` are the browsers, with their `processes`; `pages` has the pages.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "a real browser is driven in real time")]
#![expect(clippy::panic, clippy::unwrap_used, reason = "in tests a panic is the message")]

mod chromium;
mod firefox;
mod model;
mod pages;
mod priorities;
mod processes;
mod relay;
mod requests;
mod served;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time has the machine.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
