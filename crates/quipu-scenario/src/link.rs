//! Links as a scenario writes them, one direction each.

use std::sync::LazyLock;

use quipu_base::{Bytes, Duration, Instant, Rate};
use quipu_link::{
    Capacity, Column, Columns, Duplicate, LinkConfig, Loss, Outage, QueueLimit, Reorder, Timeline,
};

use super::choice::{Direction, TraceEnd};
use super::error::LinkError;
use super::form::{Table, table};
use super::loss::LossSpec;
use super::queue::QueueSpec;
use super::recorded::{self, TraceSpec, TraceStart};
use super::steps::{self, Course, Recorded, StepSpec};
use super::units::{Share, Unit};

table! {
    /// One direction of a path: with a rate, or as a recording of one says. In `down` and `access` rate
    /// and delay must be given, or recordings of them; in `up` everything may be left out.
    ///
    /// It has a rate, or follows a recording of one:
    ///
    /// ```
    /// use quipu_scenario::PathSpec;
    ///
    /// let path: PathSpec = toml::from_str(
    ///     r#"
    ///     name = "att"
    ///     down = { trace = "us-drive-08-att", delay_trace = "us-drive-08-att", from = "30s" }
    ///     "#,
    /// )?;
    /// // The uplink follows the same recording, upwards.
    /// assert_eq!(path.summary(), "att trace us-drive-08-att delay us-drive-08-att from 30s");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Its rate may change at set times:
    ///
    /// ```
    /// use quipu_scenario::PathSpec;
    ///
    /// let file: PathSpec = toml::from_str(
    ///     r#"
    ///     name = "radio"
    ///     down = { rate = "2mbit", delay = "20ms", mark = "30p", steps = [
    ///         { at = "20s", rate = "4mbit" },
    ///         { at = "45s", rate = "1mbit" },
    ///     ] }
    ///     "#,
    /// )?;
    /// let option: PathSpec =
    ///     "name=radio,rate=2mbit,delay=20ms,mark=30p,steps=20s:4mbit+45s:1mbit".parse()?;
    /// assert_eq!(file, option);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct LinkSpec as "Link" partial PartialLink needs [rate trace] [delay delay_trace] {
        /// Bits per second.
        ///
        /// `None` with a `trace`, which has the rates.
        pub rate: Option<Rate> => "it or a `trace` must be there; in `up` as in `down`",
        /// The recording whose rates the link has, in place of `rate`.
        pub trace: Option<TraceSpec> => "none",
        /// The column of a CSV file that has the rates, as `NAME` or `NAME:UNIT`, such as `DL_bitrate:kbit/s`. Without
        /// a unit it has the one that its name ends in, else Mbit/s.
        pub column: Option<Column> => "`down_mbps` or `up_mbps`, or else `mbps`",
        /// The column of times in the CSV files of all its recordings: seconds or the unit behind a colon from the start,
        /// or Unix times or dates, of which the first row's counts as 0.
        pub time_column: Option<Column> => "`time_s`",
        /// When rate, delay and loss change, in order of time.
        pub steps: Vec<StepSpec> = Vec::new(),
        /// One-way propagation delay.
        pub delay: Duration = Duration::ZERO
            => "0 with a `delay_trace`, else it must be there; in `up` as in `down`",
        /// The recording whose delays the link has on top of `delay`: half of each round trip in the
        /// column `rtt_ms`, or all of each delay in `delay_ms`, until the next one.
        ///
        /// A datagram has the delay of the instant at which it leaves; none overtakes another unless
        /// `jitter_reorders`.
        pub delay_trace: Option<TraceSpec> => "none",
        /// The column of round trips in the `delay_trace`, and of pings in the `loss_trace`.
        pub rtt_column: Option<Column> => "`rtt_ms`",
        /// The column of one-way delays in the `delay_trace`, in place of round trips.
        pub delay_column: Option<Column> => "`delay_ms`, if there are no round trips",
        /// Each datagram takes `delay ± jitter`; not above `delay`.
        pub jitter: Duration = Duration::ZERO,
        /// How far each datagram's jitter follows that of the one before.
        ///
        /// See [`LinkConfig::jitter_correlation`].
        pub jitter_correlation: Share [..Share::WHOLE] = Share::ZERO,
        /// Whether jitter may let a datagram overtake another.
        pub jitter_reorders: bool = false,
        /// Which datagrams are lost: a share of them; `bursts SHARE CORRELATION`; `gemodel P [R [1-H
        /// [1-K]]]` as netem has it; or `random SHARE CORRELATION` as netem has it, which loses far less
        /// than the share.
        ///
        /// See [`LossSpec`].
        pub loss: LossSpec = LossSpec::NONE,
        /// The recording whose losses the link has in place of `loss`: the column `loss_percent`, or
        /// else what was lost of the pings in `rtt_ms` in windows of five seconds, of which both
        /// directions have the same share.
        ///
        /// See [`PingSeries::losses`](quipu_link::PingSeries::losses).
        pub loss_trace: Option<TraceSpec> => "none",
        /// The column of losses in the `loss_trace`.
        pub loss_column: Option<Column> => "`loss_percent`, if there is one",
        /// Where in its recordings a run begins: at a time, or at one drawn for each run.
        ///
        /// `None` without recordings.
        pub from: Option<TraceStart> => "the start of the recordings",
        /// What comes after the end of its recordings: they start again, the last values hold, or
        /// nothing leaves the link any more.
        ///
        /// `None` without recordings.
        pub at_end: Option<TraceEnd> => "`loop`",
        /// The queue. Drop-tail: bytes, packets of 1,500 B, or bandwidth-delay products over the whole
        /// path; `default` is the larger of 2bdp and 50p. Of a recording the mean rate and the median
        /// delay count. Or managed: `codel` with any of `target=5ms interval=100ms limit=1000p
        /// memory=32MiB`, `fq-codel` also with `quantum=1514B flows=1024`, `pie` with `target=15ms
        /// update=15ms burst=150ms limit=1000p memory=32MiB`.
        ///
        /// The round trip is twice the delay of all links on the way, and the rate that before the first
        /// step. See [`QueueSpec`].
        pub queue: QueueSpec = QueueSpec::default(),
        /// Datagrams that are ECN-capable and find more than this in the queue are marked.
        pub mark: Option<QueueLimit> = None,
        /// Share of datagrams that is late, and by how much.
        pub reorder: ReorderSpec = ReorderSpec::default(),
        /// Share of datagrams that arrives twice, and the time between.
        pub duplicate: DuplicateSpec = DuplicateSpec::default(),
        /// When the link is down.
        pub outages: Vec<OutageSpec> = Vec::new(),
    }
}

table! {
    /// A share of the datagrams is late.
    #[derive(Copy, Default)]
    pub struct ReorderSpec as "Reorder" {
        /// The share.
        pub share: Share,
        /// The further delay.
        pub extra: Duration,
    }
}

table! {
    /// A share of the datagrams arrives twice.
    #[derive(Copy, Default)]
    pub struct DuplicateSpec as "Duplicate" {
        /// The share.
        pub share: Share,
        /// Time to the copy.
        pub after: Duration,
    }
}

table! {
    /// A time in which a link is down, counted from the start of the run.
    #[derive(Copy)]
    pub struct OutageSpec as "Outage" {
        /// First instant at which it is down.
        pub from: Duration,
        /// First instant at which it is up again, or `never`.
        pub until: Option<Duration>,
    }
}

impl LinkSpec {
    /// The form of a link in the other direction, where everything may be left out.
    pub(super) fn uplink() -> &'static Table {
        static UPLINK: LazyLock<Table> = LazyLock::new(|| Table {
            title: "Uplink",
            about: "The other direction, where everything may be left out.".to_owned(),
            needs: &[],
            #[cfg(test)]
            reads: |text| {
                let link: PartialLink =
                    toml::from_str(text).map_err(|error| error.message().to_owned())?;
                let mut problems = Vec::new();
                link.or(&LinkSpec::default()).check_fields("", &mut problems);
                problems.first().map_or(Ok(()), |problem| Err(problem.to_string()))
            },
            ..LinkSpec::table().clone()
        });
        &UPLINK
    }
}

/// The limit with the round trip that counts, if it tells none itself.
pub(super) fn over(limit: QueueLimit, round_trip: Duration) -> QueueLimit {
    match limit {
        QueueLimit::BandwidthDelay { multiple, round_trip: None, at_least } => {
            QueueLimit::BandwidthDelay { multiple, round_trip: Some(round_trip), at_least }
        }
        limit => limit,
    }
}

/// Puts `column` where none is, if any of the recordings is a table with columns.
fn fill<'a>(
    slot: &mut Option<Column>,
    column: &Option<Column>,
    mut traces: impl Iterator<Item = &'a TraceSpec>,
) {
    if slot.is_none() && traces.any(TraceSpec::has_columns) {
        slot.clone_from(column);
    }
}

/// True if chance decides with this loss.
fn may_lose_some(loss: Loss) -> bool {
    match loss {
        Loss::Independent(share) => share > 0.0 && share < 1.0,
        Loss::Correlated { .. } | Loss::GilbertElliott(_) => true,
    }
}

impl LinkSpec {
    /// True if it follows any recording.
    pub fn is_recorded(&self) -> bool {
        self.trace.is_some() || self.delay_trace.is_some() || self.loss_trace.is_some()
    }

    /// What the columns of its recordings are called.
    fn columns(&self) -> Columns {
        Columns {
            time: self.time_column.clone(),
            rate: self.column.clone(),
            up: None,
            rtt: self.rtt_column.clone(),
            delay: self.delay_column.clone(),
            loss: self.loss_column.clone(),
        }
    }

    /// Names the columns of its recordings in CSV files: those that it has no name for yet.
    pub(super) fn name_columns(&mut self, columns: &Columns, direction: Direction) {
        let own = match direction {
            Direction::Down => &columns.rate,
            Direction::Up => columns.up.as_ref().map_or(&columns.rate, |_| &columns.up),
        };
        fill(&mut self.column, own, self.trace.iter());
        let all = [&self.trace, &self.delay_trace, &self.loss_trace];
        fill(&mut self.time_column, &columns.time, all.into_iter().flatten());
        let pings = [&self.delay_trace, &self.loss_trace];
        fill(&mut self.rtt_column, &columns.rtt, pings.into_iter().flatten());
        fill(&mut self.delay_column, &columns.delay, self.delay_trace.iter());
        fill(&mut self.loss_column, &columns.loss, self.loss_trace.iter());
    }

    /// With what holds of recordings unless it is told.
    pub(super) fn with_defaults(mut self) -> Self {
        if self.is_recorded() {
            self.from.get_or_insert_default();
            self.at_end.get_or_insert_default();
        }
        self
    }

    /// The same link in the other direction, as far as its recordings tell both.
    #[must_use]
    pub fn toward(mut self, direction: Direction) -> Self {
        let traces = [&mut self.trace, &mut self.delay_trace, &mut self.loss_trace];
        for trace in traces {
            *trace = trace.take().map(|trace| trace.toward(direction));
        }
        self
    }

    /// The recordings that it follows; first that of the rate, if there is one.
    pub(super) fn traces_mut(&mut self) -> impl Iterator<Item = &mut TraceSpec> {
        let traces = [&mut self.trace, &mut self.delay_trace, &mut self.loss_trace];
        traces.into_iter().flatten()
    }

    /// The group of the recordings whose start is to be drawn, and how long the first of them is.
    pub(super) fn draws_from(&self) -> Option<(String, Duration)> {
        if self.from != Some(TraceStart::Random) {
            return None;
        }
        let columns = &self.columns();
        // What cannot be read is an error of `validate`.
        let trace = self.trace.as_ref().map(|trace| {
            (trace.group(), trace.rates(columns).map_or(Duration::ZERO, |read| read.length()))
        });
        let delays = || {
            let trace = self.delay_trace.as_ref()?;
            Some((
                trace.group(),
                trace.delays(columns).map_or(Duration::ZERO, |read| read.length()),
            ))
        };
        let losses = || {
            let trace = self.loss_trace.as_ref()?;
            Some((
                trace.group(),
                trace.losses(columns).map_or(Duration::ZERO, |read| read.length()),
            ))
        };
        trace.or_else(delays).or_else(losses)
    }

    /// The delay that counts for round trips: without jitter, before the first step, and of a
    /// recording the median.
    pub fn usual_delay(&self) -> Duration {
        let recorded =
            self.delay_trace.as_ref().and_then(|trace| trace.delays(&self.columns()).ok());
        self.delay + recorded.map_or(Duration::ZERO, |pings| pings.median())
    }

    /// The rate before the first step, or the mean rate of the recording; `None` if that cannot be
    /// read.
    pub fn usual_rate(&self) -> Option<Rate> {
        let recorded = self
            .trace
            .as_ref()
            .and_then(|trace| trace.rates(&self.columns()).ok().map(|rates| rates.mean_rate()));
        self.rate.or(recorded)
    }

    /// How long the recording of its rates is, if it has one that can be read.
    pub fn recorded_length(&self) -> Option<Duration> {
        let trace = self.trace.as_ref()?;
        trace.rates(&self.columns()).ok().map(|rates| rates.length())
    }

    /// The losses of its recording over time, if it has one that can be read.
    pub fn recorded_losses(&self) -> Option<Timeline<Loss>> {
        self.loss_trace.as_ref()?.losses(&self.columns()).ok()
    }

    /// The recordings that it follows, each with its field.
    pub fn recordings(&self) -> impl Iterator<Item = (&'static str, &TraceSpec)> {
        let traces =
            [("rate", &self.trace), ("delay", &self.delay_trace), ("loss", &self.loss_trace)];
        traces.into_iter().filter_map(|(what, trace)| Some((what, trace.as_ref()?)))
    }

    /// The link that the simulator makes of it, with `overhead` bytes of headers per datagram, if
    /// it is all that lies between two hosts. If not, see [`LinkSpec::config_on`].
    pub fn config(&self, overhead: Bytes) -> LinkConfig {
        self.config_on(overhead, self.usual_delay().saturating_mul(2))
    }

    /// The same as one link of several in a row: a queue or a mark that is told in
    /// bandwidth-delay products, as the default queue is, has those of `round_trip`, which is that
    /// of all of them together.
    ///
    /// A start of recordings that is to be drawn counts as zero: see [`Network::for_run`]. A
    /// recording that cannot be read, which makes a scenario invalid, leaves a link that the
    /// simulator refuses.
    ///
    /// [`Network::for_run`]: super::Network::for_run
    pub fn config_on(&self, overhead: Bytes, round_trip: Duration) -> LinkConfig {
        // A rate of zero is refused.
        let nothing = LinkConfig { rate: Some(Rate::ZERO), ..LinkConfig::default() };
        self.read_config(overhead, round_trip).unwrap_or(nothing)
    }

    /// What its steps come to, which are valid.
    fn course(&self) -> Course {
        Course::of(&self.steps, self.rate.unwrap_or(Rate::ZERO), self.delay, self.loss)
    }

    fn read_config(&self, overhead: Bytes, round_trip: Duration) -> Result<LinkConfig, LinkError> {
        let at = |time: Duration| Instant::ZERO + time;
        let play = recorded::play(self.from, self.at_end);
        let columns = &self.columns();
        let Course { rates, delays, losses } = self.course();
        let recorded_delays = self.delay_trace.as_ref().map(|trace| {
            let pings = trace.delays(columns)?;
            Ok::<_, LinkError>(pings.delays(play).map(|delay| delay + self.delay))
        });
        let recorded_losses = self
            .loss_trace
            .as_ref()
            .map(|trace| Ok::<_, LinkError>(trace.losses(columns)?.played(play)));
        let mut config = LinkConfig {
            rate: self.rate,
            steps: rates,
            trace: None,
            rates: None,
            delay: self.usual_delay(),
            delays: recorded_delays
                .transpose()?
                .or_else(|| (!delays.is_empty()).then(|| Timeline::of_steps(self.delay, delays))),
            losses: recorded_losses.transpose()?.or_else(|| {
                (!losses.is_empty()).then(|| Timeline::of_steps(self.loss.config(), losses))
            }),
            jitter: self.jitter,
            jitter_correlation: self.jitter_correlation.as_f64(),
            jitter_reorders: self.jitter_reorders,
            loss: self.loss.config(),
            queue: match self.queue {
                QueueSpec::DropTail(limit) => over(limit, round_trip),
                QueueSpec::Managed(_) => QueueLimit::default(),
            },
            aqm: match self.queue {
                QueueSpec::DropTail(_) => None,
                QueueSpec::Managed(aqm) => Some(aqm),
            },
            mark: self.mark.map(|threshold| over(threshold, round_trip)),
            reorder: (!self.reorder.share.is_zero())
                .then(|| Reorder { share: self.reorder.share.as_f64(), extra: self.reorder.extra }),
            duplicate: (!self.duplicate.share.is_zero()).then(|| Duplicate {
                share: self.duplicate.share.as_f64(),
                after: self.duplicate.after,
            }),
            outages: self
                .outages
                .iter()
                .map(|outage| Outage { from: at(outage.from), until: outage.until.map(at) })
                .collect(),
            overhead,
        };
        if let Some(trace) = &self.trace {
            trace.rates(columns)?.put_into(&mut config, play);
        }
        Ok(config)
    }

    /// Bytes that its rate lets through between two instants, headers included: of a trace in
    /// Mahimahi's form 1,500 for each opportunity. Outages count as if there were none.
    pub fn capacity(&self, from: Instant, until: Instant) -> Bytes {
        let has_ramps = self.steps.iter().any(|step| !step.over.is_zero());
        let Some(rate) = self.rate.filter(|_| self.trace.is_none() && !has_ramps) else {
            return Capacity::of(&self.config(Bytes::ZERO)).between(from, until);
        };
        let steps = self.course().rates;
        let ends = steps.iter().map(|step| step.at).chain([Instant::FAR_FUTURE]);
        let rates = steps.iter().map(|step| (step.at, step.rate));
        let rates = std::iter::once((Instant::ZERO, rate)).chain(rates);
        rates
            .zip(ends)
            .map(|((begins_at, rate), ends_at)| {
                rate.bytes_in(ends_at.min(until) - begins_at.max(from))
            })
            .sum()
    }

    /// True if chance decides anything on this link.
    pub fn is_random(&self) -> bool {
        let certain = |share: Share| share.is_zero() || share.is_whole();
        let losses = self.recorded_losses();
        !self.jitter.is_zero()
            || self.from == Some(TraceStart::Random)
            || self.loss.is_random()
            || self.steps.iter().any(|step| step.loss.is_some_and(LossSpec::is_random))
            || losses.is_some_and(|losses| losses.values().any(|(_, loss)| may_lose_some(loss)))
            || self.queue.is_random()
            || !certain(self.reorder.share)
            || !certain(self.duplicate.share)
    }

    /// One line such as `55mbit 15ms loss 1%`.
    pub(super) fn summary(&self) -> String {
        /// As many are told one by one.
        const FEW_STEPS: usize = 3;
        let rate = self.rate.map(|rate| rate.print());
        let trace = self.trace.as_ref().map(|trace| {
            let column = self.column.as_ref().map(|column| format!(" {column}"));
            format!("trace {}{}", trace.short_name(), column.unwrap_or_default())
        });
        let delays = self.delay_trace.as_ref().map(|trace| format!("delay {}", trace.short_name()));
        let plus = if delays.is_some() { "+" } else { "" };
        let delay = (delays.is_none() || !self.delay.is_zero())
            .then(|| format!("{plus}{}", self.delay.print()));
        let parts: Vec<String> = [rate, trace, delays, delay].into_iter().flatten().collect();
        let mut text = parts.join(" ");
        match self.steps.len() {
            0 => {}
            1..=FEW_STEPS => {
                let steps: Vec<_> = self.steps.iter().map(StepSpec::print).collect();
                text.push_str(&format!(" steps {}", steps.join("+")));
            }
            many => text.push_str(&format!(" {many} steps")),
        }
        if !self.jitter.is_zero() {
            text.push_str(&format!(" ±{}", self.jitter.print()));
            if !self.jitter_correlation.is_zero() {
                text.push_str(&format!(" correlation {}", self.jitter_correlation.print()));
            }
        }
        if self.loss != LossSpec::NONE {
            text.push_str(&format!(" loss {}", self.loss.print()));
        }
        if let Some(trace) = &self.loss_trace {
            text.push_str(&format!(" loss {}", trace.short_name()));
        }
        if let Some(from) = self.from.filter(|from| *from != TraceStart::default()) {
            text.push_str(&format!(" from {}", from.print()));
        }
        if let Some(at_end) = self.at_end.filter(|at_end| *at_end != TraceEnd::default()) {
            text.push_str(&format!(" then {at_end}"));
        }
        if let QueueSpec::Managed(_) = self.queue {
            text.push_str(&format!(" {}", self.queue.summary()));
        }
        if self.mark.is_some() {
            text.push_str(&format!(" mark {}", self.mark.print()));
        }
        text
    }

    /// What networks that are named after their links call it.
    pub(super) fn name(&self) -> String {
        let trace = || self.trace.as_ref().map(|trace| trace.short_name().to_owned());
        self.rate.map(|rate| rate.print()).or_else(trace).unwrap_or_default()
    }

    /// Checks the values.
    pub(super) fn validate(&self) -> Result<(), LinkError> {
        self.validate_traces()?;
        let recorded = Recorded {
            rate: self.trace.is_some(),
            delay: self.delay_trace.is_some(),
            loss: self.loss_trace.is_some(),
        };
        steps::validate(&self.steps, recorded)?;
        // The overhead plays no part in what is valid.
        let config = self.read_config(Bytes::ZERO, self.usual_delay())?;
        Ok(config.validate()?)
    }

    fn validate_traces(&self) -> Result<(), LinkError> {
        let refused = |field: &str, value: String, expected: &str| {
            let (field, expected) = (field.to_owned(), expected.to_owned());
            Err(LinkError::Field { field, value, expected })
        };
        if let (Some(rate), Some(_)) = (self.rate, &self.trace) {
            return refused("rate", rate.print(), "none beside a trace");
        }
        let pings = self.delay_trace.is_some() || self.loss_trace.is_some();
        for (field, column, is_used, expected) in [
            ("column", &self.column, self.trace.is_some(), "none without a trace"),
            ("time_column", &self.time_column, self.is_recorded(), "none without a recording"),
            ("rtt_column", &self.rtt_column, pings, "none without a delay_trace or a loss_trace"),
            (
                "delay_column",
                &self.delay_column,
                self.delay_trace.is_some(),
                "none without a delay_trace",
            ),
            (
                "loss_column",
                &self.loss_column,
                self.loss_trace.is_some(),
                "none without a loss_trace",
            ),
        ] {
            if let (Some(column), false) = (column, is_used) {
                return refused(field, column.to_string(), expected);
            }
        }
        if let (Some(column), Some(_)) = (&self.delay_column, &self.rtt_column) {
            return refused("delay_column", column.to_string(), "none beside an rtt_column");
        }
        if !self.is_recorded() {
            let expected = "none without a trace, a delay_trace or a loss_trace";
            if let Some(from) = self.from {
                return refused("from", from.print(), expected);
            }
            if let Some(at_end) = self.at_end {
                return refused("at_end", at_end.to_string(), expected);
            }
            return Ok(());
        }
        if let (loss, Some(_)) = (self.loss, &self.loss_trace)
            && loss != LossSpec::NONE
        {
            return refused("loss", loss.print(), "none beside a loss_trace");
        }
        let columns = &self.columns();
        let rates = self.trace.as_ref().map(|trace| trace.rates(columns)).transpose()?;
        let delays = self.delay_trace.as_ref().map(|trace| trace.delays(columns)).transpose()?;
        let losses = self.loss_trace.as_ref().map(|trace| trace.losses(columns)).transpose()?;
        // That of the rates is what a run is over with; the others begin again or hold beside it.
        let length = rates
            .map(|rates| rates.length())
            .or_else(|| delays.map(|delays| delays.length()))
            .or_else(|| losses.map(|losses| losses.length()))
            .unwrap_or_default();
        match self.from {
            Some(TraceStart::At(from)) if from >= length => {
                let expected = format!("less than {}, the length of the recording", length.print());
                refused("from", from.print(), &expected)
            }
            _ => Ok(()),
        }
    }
}
