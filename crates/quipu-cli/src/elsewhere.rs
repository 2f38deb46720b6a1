//! Emulated links on systems that have none.

use std::path::Path;
use std::sync::Arc;

use quipu_lab::plan::{Cell, MakeError, Maker, Plan};
use quipu_lab::run::logs::QlogFolder;
use quipu_record::RunRecord;

use crate::args::PriorityOption;
use crate::failure::Failure;

/// There is none.
#[derive(Debug)]
pub(crate) enum Emulator {}

impl Emulator {
    /// # Errors
    /// Always.
    pub(crate) fn new(_: PriorityOption, _: Option<QlogFolder>) -> Result<Arc<Emulator>, Failure> {
        Err(Failure::Usage("links are emulated on Linux alone".to_owned()))
    }

    pub(crate) fn start(&self, _: &Plan) -> Result<(), Failure> {
        match *self {}
    }

    pub(crate) fn forget(&self) {
        match *self {}
    }

    pub(crate) fn logged(&self) -> Result<(), Failure> {
        match *self {}
    }

    pub(crate) fn write(&self, _: &Path) -> Result<(), Failure> {
        match *self {}
    }
}

impl Maker for Emulator {
    fn make(&self, _: &Plan, _: Cell) -> Result<Vec<RunRecord>, MakeError> {
        match *self {}
    }
}
