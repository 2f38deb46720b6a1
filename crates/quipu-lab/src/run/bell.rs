//! A sign from hosts that there is something to take stock of.

use std::cell::Cell;
use std::rc::Rc;

/// Rung by a host when a page is there or will never be; heard by who takes stock, which so need not
/// look at every host after every event.
#[derive(Clone, Default)]
pub(super) struct Bell(Rc<Cell<bool>>);

impl Bell {
    pub(super) fn ring(&self) {
        self.0.set(true);
    }

    /// True if it was rung since it was last heard.
    pub(super) fn hear(&self) -> bool {
        self.0.replace(false)
    }
}
