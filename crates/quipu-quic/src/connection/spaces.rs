//! The packet number spaces of a connection: those of the handshake, and one for each path.

use super::handshake::Handshake;
use super::{Connection, Space};
use crate::path::PathTable;
use crate::recovery::{PacketSpace, SpaceRecovery};

/// A space and the path that carries it.
pub(super) fn recovery_of<'c>(
    paths: &'c mut PathTable,
    handshake: &'c mut Handshake,
    space: Space,
) -> Option<SpaceRecovery<'c>> {
    let path = paths.at_mut(space.slot())?;
    match space {
        Space::Data(_) => Some(path.into_recovery()),
        _ => Some(path.into_recovery_of(&mut handshake.space_mut(space)?.sent)),
    }
}

impl Connection {
    /// What was sent and what came in a space; `None` without the space or its path.
    #[inline]
    pub(super) fn packets(&self, space: Space) -> Option<&PacketSpace> {
        match space {
            Space::Data(slot) => Some(&self.shared.paths.get(slot)?.packets),
            _ => self.handshake.space(space),
        }
    }

    /// The same, to change it.
    #[inline]
    pub(super) fn packets_mut(&mut self, space: Space) -> Option<&mut PacketSpace> {
        match space {
            Space::Data(slot) => Some(&mut self.shared.paths.get_mut(slot)?.packets),
            _ => self.handshake.space_mut(space),
        }
    }
}
