//! What views show: values that the engine's side changes while Python holds the object.
//!
//! All are atomics, so that reading an attribute is a load, and no borrow has to be counted. Whoever reads or writes them is
//! attached to the interpreter, which orders the accesses; relaxed ones are enough.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::prelude::*;

use crate::error::ExpiredViewError;

/// A number.
#[derive(Default)]
pub(super) struct Number(AtomicU64);

impl Number {
    #[inline]
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// A number below 2⁶⁴ - 1 that may be missing.
#[derive(Default)]
pub(super) struct Perhaps(Number);

impl Perhaps {
    const NONE: u64 = u64::MAX;

    #[inline]
    pub(super) fn get(&self) -> Option<u64> {
        let value = self.0.get();
        (value != Self::NONE).then_some(value)
    }

    #[inline]
    pub(super) fn set(&self, value: Option<u64>) {
        self.0.set(value.map_or(Self::NONE, |value| value.min(Self::NONE - 1)));
    }
}

/// Whether something holds.
#[derive(Default)]
pub(super) struct Flag(AtomicBool);

impl Flag {
    #[inline]
    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn set(&self, value: bool) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Whether an object may be read: until the call that got it is over.
#[derive(Default)]
pub(super) struct Life(Flag);

impl Life {
    /// A call begins that gets the object.
    #[inline]
    pub(super) fn begin(&self) {
        self.0.set(true);
    }

    /// It is over.
    pub(super) fn end(&self) {
        self.0.set(false);
    }

    /// Whether it lasts.
    #[inline]
    pub(super) fn lasts(&self) -> bool {
        self.0.get()
    }

    /// # Errors
    /// When it is over.
    #[inline]
    pub(super) fn check(&self) -> PyResult<()> {
        if self.lasts() { Ok(()) } else { Err(expired()) }
    }
}

#[cold]
fn expired() -> PyErr {
    ExpiredViewError::new_err(
        "this view was valid during the call that got it; copy the numbers that are to be kept",
    )
}
