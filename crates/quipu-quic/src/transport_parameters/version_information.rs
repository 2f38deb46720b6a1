//! `version_information`: what keeps the negotiation of the version honest.
//! <https://www.rfc-editor.org/rfc/rfc9368#section-3>

use quipu_base::Role;
use smallvec::SmallVec;

use super::ParameterError;
use crate::wire::{NoSpace, Reader, Version, Writer};

/// The most versions of a peer that are kept: our choice, so that a long list costs nothing. Of those
/// behind them, only the chosen one and those that we speak are kept.
const MAX_VERSIONS: usize = 32;

/// The versions of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionInformation {
    /// The version of the connection: at a client that of its first flight, at a server the one
    /// that was negotiated.
    pub chosen: Version,
    /// From a client: the versions in which a server may go on, most wanted first, with the chosen
    /// one. From a server: those that it speaks, in any order.
    pub available: SmallVec<[Version; 4]>,
}

impl VersionInformation {
    /// Bytes on the wire.
    pub(super) fn size(&self) -> usize {
        4 + 4 * self.available.len()
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        writer.put_u32(self.chosen.0)?;
        self.available.iter().try_for_each(|version| writer.put_u32(version.0))
    }

    /// Reads what an end of role `from` sent.
    /// <https://www.rfc-editor.org/rfc/rfc9368#section-4>
    pub(super) fn read(value: &mut Reader<'_>, from: Role) -> Result<Self, ParameterError> {
        let wrong = |reason| Err(ParameterError::VersionInformation(reason));
        // https://www.rfc-editor.org/rfc/rfc9368#section-4
        //# If that leads to a parsing failure (for example, if it is too short or if its length is
        //# not divisible by four), then the endpoint MUST close the connection; if the connection
        //# was using QUIC version 1, that connection closure MUST use a transport error of type
        //# TRANSPORT_PARAMETER_ERROR.
        if value.remaining() < 4 || !value.remaining().is_multiple_of(4) {
            return wrong("expected a length that is a multiple of 4 above 0");
        }
        let chosen = Version(value.u32()?);
        let mut available = SmallVec::<[Version; 4]>::new();
        while !value.is_empty() {
            let version = Version(value.u32()?);
            // https://www.rfc-editor.org/rfc/rfc9368#section-4
            //# If an endpoint receives a Chosen Version equal to zero, or any Available Version
            //# equal to zero, it MUST treat it as a parsing failure.
            if version == Version::NEGOTIATION {
                return wrong("an available version is 0");
            }
            let matters = version == chosen || version.is_known();
            if available.len() < MAX_VERSIONS || matters && !available.contains(&version) {
                available.push(version);
            }
        }
        if chosen == Version::NEGOTIATION {
            return wrong("the chosen version is 0");
        }
        // https://www.rfc-editor.org/rfc/rfc9368#section-4
        //# If a server receives Version Information where the Chosen Version is not included in
        //# Available Versions, it MUST treat it as a parsing failure.
        if from.is_client() && !available.contains(&chosen) {
            return wrong("the client's chosen version is not among those available");
        }
        Ok(VersionInformation { chosen, available })
    }
}
