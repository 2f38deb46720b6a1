//! Links as a scenario writes them, one direction each.

mod config;
mod recordings;

use std::sync::LazyLock;

pub(super) use config::over;
use quipu_base::{Bytes, Duration, Instant, Rate};
use quipu_link::{Capacity, Column, Loss, QueueLimit};

use super::choice::TraceEnd;
use super::error::LinkError;
use super::form::{Table, table};
use super::limits::MTUS;
use super::loss::LossSpec;
use super::queue::QueueSpec;
use super::recorded::{TraceSpec, TraceStart};
use super::steps::{self, Recorded, StepSpec};
use super::units::{Share, Unit};

table! {
    /// One direction of a path, which has a fixed rate or follows a recording. `down` and `access` need a rate
    /// and a delay, or recordings of them; in `up` everything may be omitted.
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
        /// See [`LinkConfig::jitter_correlation`](quipu_link::LinkConfig::jitter_correlation).
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
        /// What happens at the end of its recordings: they start again, the last values hold, or the link
        /// sends nothing any more.
        ///
        /// `None` without recordings.
        pub at_end: Option<TraceEnd> => "`loop`",
        /// The queue. Drop-tail: bytes, packets of 1,500 B, or bandwidth-delay products over the whole
        /// path; `default` is the larger of 2bdp and 50p. For a recording, its mean rate and median
        /// delay are used. Or managed: `codel` with any of `target=5ms interval=100ms limit=1000p
        /// memory=32MiB`, `fq-codel` also with `quantum=1514B flows=1024`, `pie` with `target=15ms
        /// update=15ms burst=150ms limit=1000p memory=32MiB`.
        ///
        /// The round trip is twice the delay of all links on the way, and the rate that before the first
        /// step. See [`QueueSpec`].
        pub queue: QueueSpec = QueueSpec::default(),
        /// Datagrams that are ECN-capable and find more than this in the queue are marked.
        pub mark: Option<QueueLimit> = None,
        /// The largest datagram that the link carries, headers included; larger ones are dropped without
        /// any sign. Of Ethernet 1,500 B, of many tunnels less.
        ///
        /// At least what carries the smallest datagram that every QUIC path has to carry, 1,200 B of UDP
        /// payload: <https://www.rfc-editor.org/rfc/rfc9000#section-14>.
        pub mtu: Option<Bytes> [MTUS] => "any size",
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
            about: "The other direction, in which everything may be omitted.".to_owned(),
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

/// True if chance decides with this loss.
fn may_lose_some(loss: Loss) -> bool {
    match loss {
        Loss::Independent(share) => share > 0.0 && share < 1.0,
        Loss::Correlated { .. } | Loss::GilbertElliott(_) => true,
    }
}

impl LinkSpec {
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
        if let Some(mtu) = self.mtu {
            text.push_str(&format!(" mtu {}", mtu.print()));
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
}
