//! The version of a connection: how it is negotiated, and whether that was done honestly.
//! <https://www.rfc-editor.org/rfc/rfc9368>

use crate::config::TransportConfig;
use crate::error::{ErrorCode, TransportError};
use crate::transport_parameters::{ReservedParameter, VersionInformation};
use crate::wire::Version;

/// What a connection tells of versions; `None` if it takes no part in their negotiation.
pub(super) fn information(
    config: &TransportConfig,
    chosen: Version,
    reserved: Option<ReservedParameter>,
) -> Option<VersionInformation> {
    // https://www.rfc-editor.org/rfc/rfc9368#section-10
    // A reserved version among them keeps peers used to versions that they do not know.
    let reserved = reserved.map(|reserved| Version(reserved.version));
    // https://www.rfc-editor.org/rfc/rfc9368#section-3
    //# Note that the version in the Chosen Version field MUST be included in this list to allow the
    //# client to communicate the Chosen Version's preference.
    config.negotiates_version().then(|| VersionInformation {
        chosen,
        available: config.versions.iter().copied().chain(reserved).collect(),
    })
}

/// The most wanted of our versions among `offered`.
pub(super) fn most_wanted(
    config: &TransportConfig,
    offered: impl Iterator<Item = Version> + Clone,
) -> Option<Version> {
    config.versions.iter().copied().find(|ours| offered.clone().any(|other| other == *ours))
}

/// The version of a connection, and how it came to it.
#[derive(Clone, Copy, Debug)]
pub(in crate::connection) struct VersionState {
    /// That of the client's first flight.
    original: Version,
    /// The one to speak.
    present: Version,
    /// The version of a client's attempt before this one, which a Version Negotiation packet ended.
    reacted: bool,
}

impl VersionState {
    pub(in crate::connection) fn new(original: Version) -> Self {
        VersionState { original, present: original, reacted: false }
    }

    /// A client begins again because of a Version Negotiation packet.
    pub(in crate::connection) fn after_negotiation(original: Version) -> Self {
        VersionState { reacted: true, ..Self::new(original) }
    }

    /// That of the client's first flight, of 0-RTT packets, and of a Retry.
    pub(in crate::connection) fn original(&self) -> Version {
        self.original
    }

    /// The one to speak.
    pub(in crate::connection) fn present(&self) -> Version {
        self.present
    }

    /// True if a Version Negotiation packet was acted on.
    pub(super) fn has_reacted(&self) -> bool {
        self.reacted
    }

    /// The connection goes on in that version.
    pub(super) fn change(&mut self, version: Version) {
        self.present = version;
    }

    /// Checks what a server says of its versions, once that is authentic.
    /// <https://www.rfc-editor.org/rfc/rfc9368#section-4>
    pub(super) fn check_server(
        &self,
        config: &TransportConfig,
        server: Option<&VersionInformation>,
    ) -> Result<(), TransportError> {
        let wrong = |reason| Err(TransportError::new(ErrorCode::VERSION_NEGOTIATION_ERROR, reason));
        let Some(server) = server else {
            // https://www.rfc-editor.org/rfc/rfc9368#section-8
            //# if a client is starting a QUIC version 1 connection in response to a received
            //# Version Negotiation packet and the version_information transport parameter is
            //# missing from the server's transport parameters, then the client SHALL proceed as if
            //# the server's transport parameters contained a version_information transport
            //# parameter with a Chosen Version set to 0x00000001 and an Available Version list
            //# containing exactly one version set to 0x00000001.
            // https://www.rfc-editor.org/rfc/rfc9368#section-4
            //# Clients MUST NOT complete the handshake if they are reacting to a Version
            //# Negotiation packet and the Version Information is missing, but MAY do so otherwise.
            // https://www.rfc-editor.org/rfc/rfc9368#section-4
            //# If a client has reacted to a Version Negotiation packet and the server's Version
            //# Information was missing, the client MUST close the connection with a version
            //# negotiation error.
            return if self.present == self.original
                && (!self.reacted || self.present == Version::V1)
            {
                Ok(())
            } else {
                wrong("the server says nothing of its versions")
            };
        };
        // Packets of a version that we did not offer are not read, so this one was offered.
        // https://www.rfc-editor.org/rfc/rfc9368#section-4
        //# If a client receives Version Information where the server's Chosen Version was not sent
        //# by the client as part of its Available Versions, the client MUST close the connection
        //# with a version negotiation error.
        // https://www.rfc-editor.org/rfc/rfc9368#section-4
        //# clients MUST validate that the server's Chosen Version is equal to the Negotiated
        //# Version; if they do not match, the client MUST close the connection with a version
        //# negotiation error.
        if server.chosen != self.present {
            return wrong("the server chose another version than that of its packets");
        }
        if !self.reacted {
            return Ok(());
        }
        // https://www.rfc-editor.org/rfc/rfc9368#section-4
        //# In particular, if the client reacted to a Version Negotiation packet and the server's
        //# Available Versions field is empty, the client MUST close the connection with a version
        //# negotiation error.
        if server.available.is_empty() {
            return wrong("the server lists no versions");
        }
        // A list of these must have made us begin again in the same version.
        // https://www.rfc-editor.org/rfc/rfc9368#section-4
        //# If the client received and acted on a Version Negotiation packet, the client MUST
        //# validate the server's Available Versions field.
        // https://www.rfc-editor.org/rfc/rfc9368#section-4
        //# If the client would have selected a different version, the client MUST close the
        //# connection with a version negotiation error.
        let listed = server.available.iter().copied().chain([self.present]);
        if most_wanted(config, listed) != Some(self.original) {
            return wrong("the server speaks a version that we want more");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(versions: &[Version]) -> TransportConfig {
        TransportConfig { versions: versions.to_vec(), ..TransportConfig::default() }
    }

    fn server(chosen: Version, available: &[Version]) -> VersionInformation {
        VersionInformation { chosen, available: available.into() }
    }

    fn changed(from: Version, to: Version) -> VersionState {
        let mut state = VersionState::new(from);
        state.change(to);
        state
    }

    const V1: Version = Version::V1;
    const V2: Version = Version::V2;

    #[test]
    fn a_server_that_says_nothing_is_taken_for_one_of_v1() {
        let config = config(&[V2, V1]);
        assert!(VersionState::new(V1).check_server(&config, None).is_ok());
        assert!(VersionState::after_negotiation(V1).check_server(&config, None).is_ok());
        assert!(VersionState::new(V2).check_server(&config, None).is_ok());
        for state in [VersionState::after_negotiation(V2), changed(V1, V2), changed(V2, V1)] {
            let error = state.check_server(&config, None).unwrap_err();
            assert_eq!(error.code, ErrorCode::VERSION_NEGOTIATION_ERROR);
        }
    }

    #[test]
    fn the_chosen_version_is_that_of_the_packets() {
        let config = config(&[V1, V2]);
        assert!(changed(V1, V2).check_server(&config, Some(&server(V2, &[V1]))).is_ok());
        assert!(VersionState::new(V1).check_server(&config, Some(&server(V1, &[]))).is_ok());
        let error = VersionState::new(V1).check_server(&config, Some(&server(V2, &[V1, V2])));
        assert_eq!(error.unwrap_err().code, ErrorCode::VERSION_NEGOTIATION_ERROR);
        assert!(changed(V1, V2).check_server(&config, Some(&server(V1, &[V1]))).is_err());
    }

    #[test]
    fn a_forged_version_negotiation_packet_is_found_out() {
        let config = config(&[V2, V1]);
        let reacted = VersionState::after_negotiation(V1);
        assert!(reacted.check_server(&config, Some(&server(V1, &[V1]))).is_ok());
        for available in [&[V1, V2][..], &[V2], &[]] {
            let error = reacted.check_server(&config, Some(&server(V1, available))).unwrap_err();
            assert_eq!(error.code, ErrorCode::VERSION_NEGOTIATION_ERROR, "{available:?}");
        }
        let mut changed = reacted;
        changed.change(V2);
        let check = changed.check_server(&config, Some(&server(V2, &[V1, V2])));
        assert!(check.is_err(), "v2 was spoken all along");
    }

    #[test]
    fn the_most_wanted_version_of_both_is_taken() {
        let config = config(&[V2, V1]);
        assert_eq!(most_wanted(&config, [V1, V2].into_iter()), Some(V2));
        assert_eq!(most_wanted(&config, [Version(7), V1].into_iter()), Some(V1));
        assert_eq!(most_wanted(&config, [Version(0x0a0a_0a0a)].into_iter()), None);
    }
}
