//! Transfers over paths that fail.
