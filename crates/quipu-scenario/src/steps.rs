//! Changes of a link at set times, at once or as ramps.

use quipu_base::{Bytes, Duration, Instant, Rate};
use quipu_link::{Loss, RateStep};

use super::error::LinkError;
use super::form::table;
use super::limits::MTUS;
use super::loss::LossSpec;
use super::units::{Share, Unit, UnitError};

/// The most changes that the steps of a link may come to, ramps as their stairs: 1,048,576.
const MOST_CHANGES: u64 = 1 << 20;
/// The least width of a ramp's stairs.
const LEAST_STAIR: Duration = Duration::from_millis(10);
/// The most stairs of a ramp.
const MOST_STAIRS: u64 = 1_000;

table! {
    /// A change of the link, counted from the start of the run: of its rate, its delay, its loss, its MTU,
    /// or of several of them. A change `over` a time is a ramp.
    ///
    /// A change `over` a time is a ramp: at `at` the link is as before, at the end of that time it is as
    /// told here, and between it goes along a straight line in stairs of equal width, 10 ms or a little
    /// less, or a thousandth of the ramp if that is longer. Each stair has the value that the line has in
    /// its middle (rounded down to a bit per second or a nanosecond), so that at the end of each stair
    /// as much has been sent as on the line itself. Rates, delays and plain shares of loss have ramps;
    /// other models of loss, and the MTU, change at once.
    ///
    /// ```
    /// use quipu_scenario::PathSpec;
    ///
    /// let file: PathSpec = toml::from_str(
    ///     r#"
    ///     name = "leaving"
    ///     down = { rate = "30mbit", delay = "10ms", steps = [
    ///         { at = "10s", rate = "4mbit", delay = "80ms", loss = "2%", over = "5s" },
    ///         { at = "20s", rate = "0" },
    ///         { at = "22s", rate = "30mbit", delay = "10ms", loss = "0%" },
    ///     ] }
    ///     "#,
    /// )?;
    /// let option: PathSpec = "name=leaving,rate=30mbit,delay=10ms,\
    ///     steps=10s:4mbit:80ms:2%~5s+20s:0+22s:30mbit:10ms:0%".parse()?;
    /// assert_eq!(file, option);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Copy)]
    pub struct StepSpec as "Step" needs [rate delay loss mtu] {
        /// First instant of the change.
        pub at: Duration,
        /// Bits per second from then on. 0: nothing moves until the next step with a rate, of which
        /// there must be one.
        pub rate: Option<Option<Rate>> => "as before",
        /// One-way delay from then on.
        pub delay: Option<Duration> => "as before",
        /// Which datagrams are lost from then on.
        pub loss: Option<LossSpec> => "as before",
        /// The largest datagram from then on, headers included.
        pub mtu: Option<Bytes> [MTUS] => "as before",
        /// How long it takes to get there.
        pub over: Duration => "0: at once",
    }
}

impl StepSpec {
    fn checked(self) -> Result<Self, LinkError> {
        let changes = [self.delay.is_some(), self.loss.is_some(), self.mtu.is_some()];
        if self.rate.is_none() && !changes.contains(&true) {
            let expected = "a rate, a delay, a loss or an MTU to change to";
            return Err(LinkError::Missing { field: "steps.rate".to_owned(), expected });
        }
        Ok(self)
    }

    /// Reads `20s:4mbit`, `20s:4mbit:80ms:2%~5s`.
    pub(super) fn read(field: &str, text: &str) -> Result<StepSpec, LinkError> {
        let refused = |text: &str, expected| LinkError::Value {
            field: field.to_owned(),
            source: UnitError { text: text.to_owned(), expected },
        };
        let unit = |source: UnitError| LinkError::Value { field: field.to_owned(), source };
        let (steps, over) = match text.split_once('~') {
            Some((steps, over)) => (steps, Duration::read(over).map_err(unit)?),
            None => (text, Duration::ZERO),
        };
        let Some((at, parts)) = steps.split_once(':') else {
            return Err(refused(text, "an instant and a rate, such as 20s:4mbit"));
        };
        let at = Duration::read(at).map_err(unit)?;
        let mut step = StepSpec { at, rate: None, delay: None, loss: None, mtu: None, over };
        for part in parts.split(':') {
            let (rate, delay) = (Option::<Rate>::parse(part.trim()), Duration::parse(part.trim()));
            let (loss, mtu) = (LossSpec::parse(part.trim()), Bytes::parse(part.trim()));
            let twice = match (rate, delay, loss, mtu) {
                (Some(rate), ..) => step.rate.replace(rate).is_some(),
                (None, Some(delay), ..) => step.delay.replace(delay).is_some(),
                (None, None, Some(loss), _) => step.loss.replace(loss).is_some(),
                (None, None, None, Some(mtu)) => step.mtu.replace(mtu).is_some(),
                (None, None, None, None) => {
                    let expected = "a rate with its unit, such as 30mbit, or 0 for none; a delay \
                                    such as 80ms; a loss such as 2%; or an MTU such as 1280B";
                    return Err(refused(part, expected));
                }
            };
            if twice {
                return Err(refused(part, "one rate, one delay, one loss and one MTU at most"));
            }
        }
        step.checked()
    }

    /// As [`StepSpec::read`] reads it.
    pub(super) fn print(&self) -> String {
        let rate = self.rate.map(|rate| rate.print());
        let delay = self.delay.map(|delay| delay.print());
        let loss = self.loss.map(|loss| loss.print());
        let mtu = self.mtu.map(|mtu| mtu.print());
        let parts: Vec<String> =
            [Some(self.at.print()), rate, delay, loss, mtu].into_iter().flatten().collect();
        let over =
            if self.over.is_zero() { String::new() } else { format!("~{}", self.over.print()) };
        format!("{}{over}", parts.join(":"))
    }

    /// When it is as told.
    fn ends_at(&self) -> Duration {
        self.at + self.over
    }

    /// Stairs of its ramp; 0 without one.
    fn stairs(&self) -> u64 {
        self.over.as_nanos().div_ceil(LEAST_STAIR.as_nanos()).min(MOST_STAIRS)
    }

    /// The changes from `before` to `after`: when, and to what.
    fn changes(&self, before: u64, after: u64) -> impl Iterator<Item = (Duration, u64)> + use<> {
        let (at, over, stairs) = (self.at, self.over, self.stairs());
        let ends_at = self.ends_at();
        let ramp = (0..stairs).map(move |stair| {
            // The middle of the stair, in halves of stairs.
            let (past, all) = (u128::from(stair * 2 + 1), u128::from(stairs * 2));
            let sum = u128::from(before) * (all - past) + u128::from(after) * past;
            // A mean of two that are a u64 each.
            (at + over.scaled(stair, stairs), u64::try_from(sum / all).unwrap_or(u64::MAX))
        });
        ramp.chain([(ends_at, after)])
    }
}

/// What the steps of a link come to.
#[derive(Debug, Default)]
pub(super) struct Course {
    pub(super) rates: Vec<RateStep>,
    pub(super) delays: Vec<(Duration, Duration)>,
    pub(super) losses: Vec<(Duration, Loss)>,
    pub(super) mtus: Vec<(Duration, Bytes)>,
}

impl Course {
    /// Of `steps`, which are valid, of a link that begins with this rate, delay and loss.
    pub(super) fn of(
        steps: &[StepSpec],
        mut rate: Rate,
        mut delay: Duration,
        mut loss: LossSpec,
    ) -> Self {
        let mut course = Course::default();
        for step in steps {
            if let Some(to) = step.rate {
                let to = to.unwrap_or(Rate::ZERO);
                let changes = step.changes(rate.bits_per_sec(), to.bits_per_sec());
                course.rates.extend(changes.map(|(at, bits)| RateStep {
                    at: Instant::ZERO + at,
                    rate: Rate::from_bits_per_sec(bits),
                }));
                rate = to;
            }
            if let Some(to) = step.delay {
                let changes = step.changes(delay.as_nanos(), to.as_nanos());
                course.delays.extend(changes.map(|(at, nanos)| (at, Duration::from_nanos(nanos))));
                delay = to;
            }
            if let Some(to) = step.loss {
                match (loss, to) {
                    (LossSpec::Independent(from), LossSpec::Independent(to)) => {
                        let changes = step.changes(from.parts(), to.parts());
                        let loss = |parts| LossSpec::Independent(Share::from_parts(parts));
                        course.losses.extend(changes.map(|(at, parts)| (at, loss(parts).config())));
                    }
                    _ => course.losses.push((step.at, to.config())),
                }
                loss = to;
            }
            course.mtus.extend(step.mtu.map(|mtu| (step.at, mtu)));
        }
        course
    }
}

/// What of a link a recording has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded {
    pub(super) rate: bool,
    pub(super) delay: bool,
    pub(super) loss: bool,
}

/// Checks that the steps of a link follow one another, and change nothing that is `recorded`.
pub(super) fn validate(steps: &[StepSpec], recorded: Recorded) -> Result<(), LinkError> {
    let refused = |field: &str, value: String, expected: &str| {
        Err(LinkError::Invalid(format!("steps.{field} is {value}, expected {expected}")))
    };
    let changes = steps.iter().map(|step| step.stairs() + 1).fold(0, u64::saturating_add);
    if changes > MOST_CHANGES {
        let value = format!("{changes} changes with the stairs of ramps");
        return refused("over", value, "at most 1048576");
    }
    for (step, next) in steps.iter().zip(steps.iter().skip(1)) {
        if next.at <= step.at {
            return refused("at", next.at.to_string(), "later than the step before");
        }
        if next.at < step.ends_at() {
            let expected =
                format!("not before {}, the end of the ramp before", step.ends_at().print());
            return refused("at", next.at.print(), &expected);
        }
    }
    for step in steps {
        if let (Some(rate), true) = (step.rate, recorded.rate) {
            return refused("rate", rate.print(), "none beside a trace");
        }
        if let (Some(delay), true) = (step.delay, recorded.delay) {
            return refused("delay", delay.print(), "none beside a delay_trace");
        }
        if let (Some(loss), true) = (step.loss, recorded.loss) {
            return refused("loss", loss.print(), "none beside a loss_trace");
        }
    }
    Ok(())
}
