//! The paths of a connection: addresses, validation, packet number space, controller.

mod addresses;
mod amplification;
mod data;
mod handle;
mod known;
mod mtu;
mod pings;
mod responses;
mod stage;
mod table;
mod validation;

pub(crate) use addresses::{Action, Addresses, Input, Leg, Purpose, State, Which};
use amplification::Amplification;
pub(crate) use data::{PathData, hosts};
pub(crate) use handle::{PathMut, PathRef};
use known::KnownRtts;
pub(crate) use mtu::PathMtu;
use pings::Pings;
pub(crate) use responses::Response;
pub(crate) use stage::{Stage, Step};
pub(crate) use table::PathTable;
pub(crate) use validation::Answered;
use validation::Validation;
