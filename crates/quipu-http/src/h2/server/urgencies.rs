//! Urgencies of RFC 9218: what the client states, and what the server makes of it.

use quipu_base::StreamId;
use quipu_policy::PriorityEdit;

use super::super::{ConnectionError, FrameStreamId};
use super::Server;
use crate::field::FieldList;
use crate::priority::PriorityField;
use crate::transport::Transport;

impl Server {
    /// Whether places in the dependency tree are ignored, because either end said so.
    pub(super) fn ignores_tree(&self) -> bool {
        self.config.urgencies_only || self.control.peer_no_tree() == Some(true)
    }

    /// A request came: the urgency of its response is what an update said before, else what the fields
    /// say. If neither says anything, its place in the tree does, or the default.
    pub(super) fn state_urgency<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        fields: &FieldList,
    ) {
        let updated = self.updates.remove(&stream);
        // Requests come in order: those before this one never will.
        while self.updates.first_key_value().is_some_and(|(&other, _)| other < stream) {
            self.updates.pop_first();
        }
        // https://www.rfc-editor.org/rfc/rfc9218#section-7
        //# the most recently received PRIORITY_UPDATE frame can be considered
        //# as the most up-to-date information that overrides any other signal.
        let stated = updated.or_else(|| PriorityField::of(fields));
        if let Some(exchange) = self.exchanges.get_mut(&stream) {
            exchange.stated = stated;
        }
        if stated.is_some() || self.ignores_tree() {
            set(transport, stream, stated.unwrap_or_default());
        }
    }

    /// A response goes out: what its fields state overrides what the client stated.
    pub(super) fn merge_urgency<T: Transport>(
        transport: &mut T,
        stream: StreamId,
        stated: Option<PriorityField>,
        fields: &FieldList,
    ) {
        if let Some(response) = PriorityField::of(fields).filter(|field| !field.is_empty()) {
            set(transport, stream, stated.unwrap_or_default().merged(response));
        }
    }

    /// A PRIORITY_UPDATE frame. One whose value is malformed states the defaults: RFC 9218 leaves open
    /// whether it closes the connection. <https://www.rfc-editor.org/rfc/rfc9218#section-7.1>
    pub(super) fn on_priority_update<T: Transport>(
        &mut self,
        transport: &mut T,
        id: FrameStreamId,
        value: &[u8],
    ) -> Result<(), ConnectionError> {
        let problem = "which the client cannot open";
        let promised = id <= self.names.last_promised();
        if let Some(stream) = id.pushed(self.config.numbering).filter(|_| promised) {
            self.update(transport, stream, id, PriorityField::parse(value).unwrap_or_default());
            return Ok(());
        }
        let request = id.request(self.config.numbering);
        // https://www.rfc-editor.org/rfc/rfc9218#section-7.1
        //# Servers that receive a PRIORITY_UPDATE for a push stream in the "idle" state MUST
        //# respond with a connection error of type PROTOCOL_ERROR.
        let stream = request.ok_or(ConnectionError::WrongUpdate { stream: id, problem })?;
        let field = PriorityField::parse(value).unwrap_or_default();
        if id <= self.names.last_request() {
            self.update(transport, stream, id, field);
            return Ok(());
        }
        // https://www.rfc-editor.org/rfc/rfc9218#section-7
        //# Servers SHOULD buffer the most recently received PRIORITY_UPDATE frame and apply it
        //# once the referenced stream is opened.
        self.updates.insert(stream, field);
        // https://www.rfc-editor.org/rfc/rfc9218#section-7.1
        //# The number of streams that have been prioritized but remain in the "idle" state plus
        //# the number of active streams (those in the "open" state or in either of the
        //# "half-closed" states; see Section 5.1.2 of [HTTP/2]) MUST NOT exceed the value of the
        //# SETTINGS_MAX_CONCURRENT_STREAMS parameter. Servers that receive such a PRIORITY_UPDATE
        //# MUST respond with a connection error of type PROTOCOL_ERROR.
        if self.updates.len() + self.requests() > self.allowed() {
            let problem = "which is one too many at a time";
            return Err(ConnectionError::WrongUpdate { stream: id, problem });
        }
        Ok(())
    }

    /// Another urgency for a response that was asked for, or promised.
    fn update<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        id: FrameStreamId,
        field: PriorityField,
    ) {
        if let Some(exchange) = self.exchanges.get_mut(&stream) {
            exchange.stated = Some(field);
        }
        // Updates of streams that are closed are dropped.
        if self.names.is_live(id) {
            set(transport, stream, field);
        }
    }
}

pub(super) fn set<T: Transport>(transport: &mut T, stream: StreamId, field: PriorityField) {
    let urgency = field.resolved();
    transport.edit_priority(PriorityEdit::Urgency {
        stream,
        urgency: urgency.level,
        incremental: urgency.incremental,
    });
}
