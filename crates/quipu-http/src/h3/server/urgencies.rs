//! Urgencies of RFC 9218: what the client states, and what the server makes of it.

use quipu_base::StreamId;
use quipu_policy::PriorityEdit;

use super::super::ConnectionError;
use super::super::client::is_request;
use super::Server;
use crate::field::FieldList;
use crate::priority::PriorityField;
use crate::transport::StreamTransport;

impl Server {
    /// A request came: the urgency of its response is what an update said before, else what the fields
    /// say, else the default. <https://www.rfc-editor.org/rfc/rfc9218#section-7>
    pub(super) fn state_urgency<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        fields: &FieldList,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        exchange.stated = exchange.stated.or_else(|| PriorityField::of(fields));
        set(transport, stream, exchange.stated.unwrap_or_default());
    }

    /// A response goes out: what its fields state overrides what the client stated.
    pub(super) fn merge_urgency<T: StreamTransport>(
        transport: &mut T,
        stream: StreamId,
        stated: Option<PriorityField>,
        fields: &FieldList,
    ) {
        if let Some(response) = PriorityField::of(fields).filter(|field| !field.is_empty()) {
            set(transport, stream, stated.unwrap_or_default().merged(response));
        }
    }

    /// A PRIORITY_UPDATE frame. One whose value is malformed states the defaults.
    /// <https://www.rfc-editor.org/rfc/rfc9218#section-7.2>
    pub(super) fn on_priority_update<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        is_push: bool,
        id: u64,
        value: &[u8],
    ) -> Result<(), ConnectionError> {
        let wrong = |problem| Err(ConnectionError::Id { frame: "PRIORITY_UPDATE", id, problem });
        let stream = StreamId(id);
        // https://www.rfc-editor.org/rfc/rfc9218#section-7.2
        //# If a server receives a PRIORITY_UPDATE (type=0xF0701) with a push ID that is greater
        //# than the maximum push ID or that has not yet been promised, this MUST be treated as a
        //# connection error of type H3_ID_ERROR.
        if is_push {
            return wrong("names a push, and nothing was promised");
        }
        // https://www.rfc-editor.org/rfc/rfc9218#section-7.2
        //# If a server receives a PRIORITY_UPDATE (type=0xF0700) for a stream ID that is not a
        //# request stream, this MUST be treated as a connection error of type H3_ID_ERROR.
        if !is_request(stream) {
            return wrong("is no request's");
        }
        // https://www.rfc-editor.org/rfc/rfc9218#section-7.2
        //# If a server receives a PRIORITY_UPDATE (type=0xF0700) with a stream ID that is beyond
        //# the stream limits, this SHOULD be treated as a connection error of type H3_ID_ERROR.
        if !transport.may_be_open(stream) {
            return wrong("is beyond the limit of streams");
        }
        let field = PriorityField::parse(value).unwrap_or_default();
        if let Some(exchange) = self.exchanges.get_mut(&stream) {
            exchange.stated = Some(field);
            set(transport, stream, field);
        } else if !self.seen.contains(stream.index()) {
            // The limit of streams bounds them.
            self.updates.insert(stream, field);
        }
        Ok(())
    }
}

fn set<T: StreamTransport>(transport: &mut T, stream: StreamId, field: PriorityField) {
    let urgency = field.resolved();
    transport.edit_priority(PriorityEdit::Urgency {
        stream,
        urgency: urgency.level,
        incremental: urgency.incremental,
    });
}
