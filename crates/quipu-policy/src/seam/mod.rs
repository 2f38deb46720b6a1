//! The types that cross the seam between engine and policies.

pub mod decision;
pub mod event;
pub mod referee;
pub mod view;
