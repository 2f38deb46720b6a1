//! An end of a flow: one writes without pause, the other reads.

use std::ops::Range;

use quipu_base::{Bytes, Duration, Instant};
use quipu_quic::{Connection, ConnectionEvent, StreamError};

use super::application::Application;
use super::bulk::{Sink, Source};
use super::engine::ConnectionPlan;
use super::error::{RunError, SetupError};
use super::instruments::Setting;
use super::party::{Party, open_paths};
use quipu_record::End;
use quipu_record::stats::Histogram;
use quipu_scenario::{Direction, FlowSpec};

/// An end of a flow.
pub(super) struct FlowEnd {
    name: String,
    end: End,
    party: Party,
    work: Work,
    /// When it closes its connection.
    stop_at: Option<Instant>,
    /// When all bytes had come, or the connection was closed as planned.
    ended_at: Option<Instant>,
    round_trips: RoundTrips,
}

enum Work {
    Write(Source),
    Read(Sink),
}

impl FlowEnd {
    /// The end of the flow at `index` that opens the connection, or the one that takes it. Round
    /// trips are counted within `window`.
    pub(super) fn new(
        setting: Setting<'_>,
        index: usize,
        end: End,
        window: Range<Instant>,
    ) -> Result<FlowEnd, SetupError> {
        let flow = &setting.scenario().flows[index];
        let connection = ConnectionPlan::of_flow(setting, index);
        Ok(FlowEnd {
            name: flow.name.clone(),
            end,
            party: match end {
                End::Client => connection.client(Instant::ZERO + flow.start)?,
                End::Server => connection.server()?,
            },
            work: if end == sender_of(flow) {
                Work::Write(Source::new(flow))
            } else {
                Work::Read(Sink::new(flow))
            },
            stop_at: flow.stop.map(|stop| Instant::ZERO + stop),
            ended_at: None,
            round_trips: RoundTrips { window, histogram: Histogram::default(), last: Vec::new() },
        })
    }

    /// True once nothing more will come of it.
    pub(super) fn is_done(&self) -> bool {
        self.ended_at.is_some() || self.has_failed()
    }

    pub(super) fn ended_at(&self) -> Option<Instant> {
        self.ended_at
    }

    /// Bytes read so far; none at the end that writes.
    pub(super) fn received(&self) -> Bytes {
        match &self.work {
            Work::Read(sink) => sink.received(),
            Work::Write(_) => Bytes::ZERO,
        }
    }

    /// Round-trip times that this end measured within its window, in nanoseconds.
    pub(super) fn round_trips(&self) -> &Histogram {
        &self.round_trips.histogram
    }
}

impl Application for FlowEnd {
    fn party(&self) -> &Party {
        &self.party
    }

    fn party_mut(&mut self) -> &mut Party {
        &mut self.party
    }

    fn act(&mut self, now: Instant) -> Result<(), RunError> {
        self.party.dial(now)?;
        let (name, end) = (&self.name, self.end);
        let failed = |reason: String| RunError::Flow { name: name.clone(), end, at: now, reason };
        let failed_stream = |error: StreamError| failed(error.to_string());
        let stops = self.stop_at.take_if(|at| *at <= now).is_some();
        if stops {
            self.ended_at.get_or_insert(now);
        }
        let Some((connection, routes)) = self.party.parts(0) else { return Ok(()) };
        if stops {
            connection.close(now, 0, b"");
        }
        while let Some(event) = connection.poll() {
            match (event, &mut self.work) {
                (ConnectionEvent::Readable(stream), Work::Read(sink)) => {
                    sink.read(connection, stream, now).map_err(failed_stream)?;
                    if sink.is_complete() {
                        self.ended_at.get_or_insert(now);
                    }
                }
                (ConnectionEvent::Closed(reason), _) if self.ended_at.is_none() => {
                    return Err(failed(reason.to_string()));
                }
                _ => {}
            }
        }
        if self.ended_at.is_some() {
            return Ok(());
        }
        open_paths(connection, routes, now);
        if let Work::Write(source) = &mut self.work {
            self.round_trips.look(connection, now);
            source.top_up(connection, now).map_err(failed_stream)?;
        }
        Ok(())
    }

    fn next_at(&self) -> Option<Instant> {
        self.stop_at
    }
}

/// The end of a flow that writes.
pub(super) fn sender_of(flow: &FlowSpec) -> End {
    match flow.direction {
        Direction::Down => End::Server,
        Direction::Up => End::Client,
    }
}

/// Round-trip samples of a connection, found by looking at its paths after each input.
struct RoundTrips {
    window: Range<Instant>,
    histogram: Histogram,
    /// What was seen last, by slot of the path.
    last: Vec<Estimate>,
}

/// All that a sample changes: two samples that leave all of it as it was are alike.
type Estimate = (Option<Duration>, Option<Duration>, Duration);

impl RoundTrips {
    fn look(&mut self, connection: &Connection, now: Instant) {
        for path in connection.path_views() {
            let slot = usize::from(path.key.slot);
            if self.last.len() <= slot {
                self.last.resize(slot + 1, Estimate::default());
            }
            let seen = (path.latest_rtt, path.srtt, path.rttvar);
            if let Some(sample) = path.latest_rtt
                && self.last[slot] != seen
                && self.window.contains(&now)
            {
                self.histogram.add(sample.as_nanos());
            }
            self.last[slot] = seen;
        }
    }
}
