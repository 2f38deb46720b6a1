//! The tables of flows, links and cross traffic.

use crate::sheets::sheet;

sheet! {
    FLOWS = "flows", false, WithTraffic,
    |names, record| {
        let window = record.traffic.until - record.traffic.from;
        let traffic = &record.traffic;
        for (index, flow, names) in names
            .flows()
            .iter()
            .enumerate()
            .filter_map(|(index, names)| Some((index, traffic.flow(index)?, names)))
    }
    /// position in the scenario, from 0
    flow: Whole = index,
    /// its name
    name: Text = names.name,
    /// `down` or `up`
    direction: Text = names.direction.name(),
    /// its congestion controller, with parameters
    congestion: Text = &names.congestion,
    /// when its client opened the connection, from the start of the run
    started_at_ns: Whole = flow.started_at,
    /// when its last byte had come or it was stopped; empty if it went on to the end of the run
    ended_at_ns: Whole = flow.ended_at,
    /// how much of the window it lived; all that follows is of this time
    lived_ns: Whole = flow.lived,
    /// what its receiver read, in order on each stream
    bytes: Whole = flow.bytes,
    /// the same by `lived_ns`
    goodput_bit_per_s: Whole = flow.goodput(),
    /// mean of the round trips that its sender measured; empty if it measured none
    rtt_mean_ns: Whole = flow.rtt_mean,
    /// 95th percentile of these, to 1.6 %
    rtt_p95_ns: Whole = flow.rtt_p95,
    /// packets that its sender sent
    packets_sent: Whole = flow.packets_sent,
    /// those of them that counted as lost
    packets_lost: Whole = flow.packets_lost,
    /// their bytes
    bytes_lost: Whole = flow.bytes_lost,
    /// the window as far as the run went, for shares and utilisation
    window_ns: Whole = window,
}

sheet! {
    FLOW_PATHS = "flow_paths", false, WithTraffic,
    |names, record| {
        for (index, path) in record
            .traffic
            .flows
            .iter()
            .flat_map(|flow| flow.paths.iter().map(move |path| (flow.flow, path)))
    }
    /// position of the flow in the scenario, from 0
    flow: Whole = index,
    /// position of the path in the network
    path: Whole = path.path,
    /// its name
    name: Text = names.path(path.path),
    /// UDP payload that the flow's receiver got on the path
    bytes_received: Whole = path.bytes,
}

sheet! {
    LINKS = "links", false, WithTraffic,
    |names, record| {
        // A page without traffic beside it has links too, which nobody shares.
        for link in record.traffic.links.iter().filter(|_| names.has_traffic())
    }
    /// position of the path whose own link it is; access links are not there
    path: Whole = link.path,
    /// its name
    name: Text = names.path(link.path),
    /// `down` or `up`
    direction: Text = link.direction.name(),
    /// what left it for the other end, headers included
    bytes_delivered: Whole = link.delivered,
    /// what its rate allowed
    bytes_capacity: Whole = link.capacity,
    /// datagrams that did not arrive
    datagrams_dropped: Whole = link.dropped,
}

sheet! {
    CROSS = "cross", false, WithTraffic,
    |names, record| {
        let traffic = &record.traffic;
        for (names, cross) in names
            .cross()
            .iter()
            .enumerate()
            .filter_map(|(index, names)| Some((names, traffic.cross(index)?)))
    }
    /// its name
    name: Text = names.name,
    /// `down` or `up`
    direction: Text = names.direction.name(),
    /// what it sent, headers included
    bytes_sent: Whole = cross.sent,
    /// what arrived of it, headers included
    bytes_received: Whole = cross.received,
}
