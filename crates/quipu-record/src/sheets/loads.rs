//! The tables of loads: runs, their objects, paths, connections and raw streams.

use crate::metric::Metric;
use crate::run::Bounds;
use crate::sheets::sheet;

/// A bound, unless there is none.
fn known(bounds: Bounds) -> Option<Bounds> {
    (!bounds.tight.is_zero()).then_some(bounds)
}

sheet! {
    RUNS = "runs", true, Yes,
    |_, record| {
        for it in [record]
    }
    /// time from the client's first packet to the end of the handshake, on its first connection
    connect_time_ns: Whole = Metric::ConnectTime.of(it),
    /// from the first request to the last byte of the last object that the load waits for
    page_time_ns: Whole = Metric::PageTime.of(it),
    /// the part of `page_time_ns` above the time that the page would take on an infinitely fast network, which is the
    /// part that a network can change; empty for pages that take no time there
    page_above_floor_ns: Whole = Metric::PageAboveFloor.of(it),
    /// mean over the objects of the time to their completion
    object_index_ns: Whole = Metric::ObjectIndex.of(it),
    /// integral over time of the share of body bytes that is missing
    byte_index_ns: Whole = Metric::ByteIndex.of(it),
    /// completion of the document, blocking style sheets and blocking scripts
    critical_time_ns: Whole = Metric::CriticalTime.of(it),
    /// when everything that the load waits for had arrived: the end of the run, or of the visit
    ended_at_ns: Whole = it.ended_at,
    /// objects of the page
    objects: Whole = it.objects.len(),
    /// packets sent by the sender of the page, which is the server unless `raw.sender` is set otherwise
    packets_sent: Whole = it.sender_packets(),
    /// bytes of UDP payload that it sent
    bytes_sent: Whole = it.sender_total(|path| path.bytes_sent),
    /// stream bytes that it retransmitted after a loss
    bytes_resent: Whole = Metric::BytesResent.of(it),
    /// stream bytes that it sent as copies of bytes in flight
    bytes_copies: Whole = Metric::BytesCopies.of(it),
    /// bytes of its packets that counted as lost
    bytes_lost: Whole = it.sender_total(|path| path.bytes_lost),
    /// bytes of such packets that arrived nevertheless
    bytes_spurious: Whole = it.sender_total(|path| path.bytes_spurious),
    /// number of times that consecutive packets used different paths
    path_switches: Whole = it.path_switches,
    /// answers of its policy that the engine rejected; 0 for a correct policy
    refused: Whole = it.refused,
    /// decisions that the engine made instead of its policy; 0 for a correct policy
    overridden: Whole = it.overridden,
    /// lower bound of `page_time_ns` from capacity, delays and discovery alone ([bound.md](bound.md)); empty if there
    /// is no bound
    page_fluid_bound_ns: Whole = known(it.page_bound).map(|bounds| bounds.fluid),
    /// lower bound that also includes the handshake and the initial windows
    page_bound_ns: Whole = known(it.page_bound).map(|bounds| bounds.tight),
    /// `page_fluid_bound_ns` for `critical_time_ns`
    critical_fluid_bound_ns: Whole = known(it.critical_bound).map(|bounds| bounds.fluid),
    /// `page_bound_ns` for `critical_time_ns`
    critical_bound_ns: Whole = known(it.critical_bound).map(|bounds| bounds.tight),
}

sheet! {
    OBJECTS = "objects", true, Yes,
    |names, record| {
        let page = if record.objects.is_empty() {
            return Ok(());
        } else {
            names.objects(record.client, record.visit)?
        };
        for object in &record.objects
    }
    /// position in the page, from 0
    object: Whole = object.object,
    /// number of the connection that carried it; 0 unless each origin has its own
    connection: Whole = object.connection,
    /// address
    url: Text = page.url(object.object),
    /// length of the body
    body_bytes: Whole = object.body,
    /// whether the page time includes it
    held: Flag = object.held,
    /// whether the server pushed it
    pushed: Flag = object.pushed,
    /// number of the raw stream that carried it; empty with HTTP
    stream: Whole = object.stream,
    /// when it was requested, from the start of the run; for a pushed object, when its promise arrived
    requested_at_ns: Whole = object.requested_at,
    /// when the first byte of its body, or the head of a response without a body, had arrived
    first_byte_at_ns: Whole = object.first_byte_at,
    /// when it was complete
    completed_at_ns: Whole = object.completed_at,
    /// from the start of the page to its completion
    since_page_start_ns: Whole = object.since_page_start,
    /// from its request, or its promise, to its completion
    since_request_ns: Whole = object.since_request,
    /// lower bound of `since_page_start_ns`, as in `runs.csv`
    fluid_bound_ns: Whole = known(object.bound).map(|bounds| bounds.fluid),
    /// lower bound that also includes the handshake and the initial windows
    bound_ns: Whole = known(object.bound).map(|bounds| bounds.tight),
}

sheet! {
    PATHS = "paths", true, Yes,
    |names, record| {
        for path in &record.paths
    }
    /// number of the connection; 0 unless each origin has one
    connection: Whole = path.connection,
    /// `server` or `client`: who counted
    end: Text = path.end.name(),
    /// position of the path in the network, from 0
    path: Whole = path.path,
    /// its name in the network
    name: Text = names.path(path.path),
    /// packets that this end sent
    packets_sent: Whole = path.packets_sent,
    /// datagrams that this end received
    datagrams_received: Whole = path.datagrams_received,
    /// as in `runs.csv`, of this path
    bytes_sent: Whole = path.bytes_sent,
    /// as in `runs.csv`, of this path
    bytes_resent: Whole = path.bytes_resent,
    /// as in `runs.csv`, of this path
    bytes_copies: Whole = path.bytes_copies,
    /// as in `runs.csv`, of this path
    bytes_lost: Whole = path.bytes_lost,
    /// as in `runs.csv`, of this path
    bytes_spurious: Whole = path.bytes_spurious,
    /// packets that counted as lost
    packets_lost: Whole = path.packets_lost,
    /// sum over them of the time from sending a packet to counting it as lost
    loss_detection_ns: Whole = path.loss_detection,
}

sheet! {
    RADIOS = "radios", true, No,
    |names, record| {
        for radio in &record.radios
    }
    /// position of the path in the network
    path: Whole = radio.path,
    /// its name
    name: Text = names.path(radio.path),
    /// bytes that came to the client, with `link_overhead` for each datagram
    bytes_down: Whole = radio.bytes_down,
    /// bytes that the client sent, in the same way
    bytes_up: Whole = radio.bytes_up,
    /// time in which the path carried something: gaps of up to 100 ms included
    active_ns: Whole = radio.active,
    /// times that the radio woke up; 0 without `energy`
    wakeups: Whole = radio.wakeups,
    /// time in tails, that after the last datagram in full; 0 without `energy`
    tail_ns: Whole = radio.tail,
    /// energy of the radio in microjoules; empty without `energy`
    energy_uj: Whole = radio.energy,
    /// millionths of the unit of `price`; empty without a price
    cost_millionths: Whole = radio.cost,
}

sheet! {
    CONNECTIONS = "connections", true, No,
    |_, record| {
        for connection in &record.connections
    }
    /// number among those of the client, in the order of the page's first objects
    connection: Whole = connection.connection,
    /// scheme and authority, such as `https://example.com`
    origin: Text = &connection.origin,
    /// when the client opened it: with the first request for an object of it, but as `transport.start`
    /// says for the first
    opened_at_ns: Whole = connection.opened_at,
    /// when the client's handshake ended; empty if it had not when the page was there
    connected_at_ns: Whole = connection.connected_at,
    /// objects that came over it
    objects: Whole = connection.objects,
    /// bytes of their bodies
    body_bytes: Whole = connection.body,
}

sheet! {
    STREAMS = "streams", true, No,
    |_, record| {
        for stream in &record.streams
    }
    /// number of the raw stream in the scenario, from 0
    stream: Whole = stream.stream,
    /// from writing to deadline, if it has one of its own
    latency_ns: Whole = stream.latency,
    /// objects written to it
    objects: Whole = stream.objects,
    /// their bytes
    bytes: Whole = stream.bytes,
    /// when its first byte had arrived
    first_byte_at_ns: Whole = stream.first_byte_at,
    /// when its last byte had arrived, and all before
    completed_at_ns: Whole = stream.completed_at,
    /// from the start of the page to that
    since_page_start_ns: Whole = stream.since_page_start,
}
