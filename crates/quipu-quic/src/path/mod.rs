//! The paths of a connection: addresses, validation, packet number space, controller.

mod amplification;
mod data;
mod handle;
mod mtu;
mod pings;
mod stage;
mod table;
mod validation;

use amplification::Amplification;
pub(crate) use data::PathData;
pub(crate) use handle::{PathMut, PathRef};
use mtu::PathMtu;
use pings::Pings;
pub(crate) use stage::{Stage, Step};
pub(crate) use table::PathTable;
use validation::Validation;
