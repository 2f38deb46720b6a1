//! Losses as a scenario writes them: a share, or a model with its numbers.

use quipu_link::{GilbertElliott, Loss};

use super::form::pattern::share;
use super::form::text::unit;
use super::form::{Names, Numbers, Text, amounts};
use super::units::{Share, Unit};

/// Which datagrams a link loses, written as one text.
///
/// ```
/// use quipu_scenario::{LossSpec, units::Unit};
///
/// let bursts = LossSpec::read("bursts 1.5% 50%")?;
/// assert_eq!(bursts.print(), "bursts 1.5% 50%");
/// // What one has in netem's command line reads the same here.
/// assert!(LossSpec::read("random 1.5% 50%").is_ok());
/// assert!(LossSpec::read("gemodel 1% 30%").is_ok());
/// # Ok::<(), quipu_scenario::units::UnitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossSpec {
    /// `1.5%`: each datagram by itself.
    Independent(Share),
    /// `bursts SHARE CORRELATION`, such as `bursts 1.5% 50%`: this share is lost, with this
    /// correlation, below 100%, between a datagram and the next. See
    /// [`GilbertElliott::with_share`].
    Bursts(Share, Share),
    /// `random SHARE CORRELATION`, such as `random 1.5% 50%`: as netem's option of that name, which
    /// loses far less than the share. See [`Loss::Correlated`].
    Random(Share, Share),
    /// `gemodel P [R [1-H [1-K]]]`, such as `gemodel 1% 30%`: as netem's option of that name, with
    /// its defaults 1 - P, 100% and 0%. See [`GilbertElliott`], whose fields these are in order.
    GilbertElliott([Share; 4]),
}

impl LossSpec {
    /// Nothing is lost.
    pub const NONE: LossSpec = LossSpec::Independent(Share::ZERO);

    /// The loss of the link.
    pub fn config(self) -> Loss {
        match self {
            LossSpec::Independent(share) => share.as_f64().into(),
            LossSpec::Bursts(share, correlation) => {
                GilbertElliott::with_share(share.as_f64(), correlation.as_f64()).into()
            }
            LossSpec::Random(share, correlation) => {
                Loss::Correlated { share: share.as_f64(), correlation: correlation.as_f64() }
            }
            LossSpec::GilbertElliott(numbers) => {
                let [good_to_bad, bad_to_good, loss_in_bad, loss_in_good] =
                    numbers.map(Share::as_f64);
                GilbertElliott { good_to_bad, bad_to_good, loss_in_bad, loss_in_good }.into()
            }
        }
    }

    /// True if chance decides anything.
    pub fn is_random(self) -> bool {
        let uncertain = |share: Share| !share.is_zero() && !share.is_whole();
        match self {
            LossSpec::Independent(share)
            | LossSpec::Bursts(share, _)
            | LossSpec::Random(share, _) => uncertain(share),
            LossSpec::GilbertElliott(numbers) => numbers.into_iter().any(uncertain),
        }
    }
}

impl Default for LossSpec {
    fn default() -> Self {
        LossSpec::NONE
    }
}

impl From<Share> for LossSpec {
    fn from(share: Share) -> Self {
        LossSpec::Independent(share)
    }
}

impl Unit for LossSpec {
    const EXPECTED: &'static str = "a share from 0% to 100%, such as 1.5% or 0.015, or a model such \
                                    as `bursts 1.5% 50%`, `gemodel 1% 30% 100% 0%` or \
                                    `random 1.5% 50%`, with correlations below 100%";

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let model = words.next()?;
        let shares: Vec<Share> = words.map(Share::parse).collect::<Option<_>>()?;
        match (model, shares.as_slice()) {
            (share, []) => Share::parse(share).map(LossSpec::Independent),
            ("bursts", &[share, correlation]) if !correlation.is_whole() => {
                Some(LossSpec::Bursts(share, correlation))
            }
            ("random", &[share, correlation]) if !correlation.is_whole() => {
                Some(LossSpec::Random(share, correlation))
            }
            ("gemodel", &[p, ref others @ ..]) if others.len() <= 3 => {
                let mut numbers = [p, p.complement(), Share::WHOLE, Share::ZERO];
                numbers[1..=others.len()].copy_from_slice(others);
                Some(LossSpec::GilbertElliott(numbers))
            }
            _ => None,
        }
    }

    fn print(&self) -> String {
        let pair = |model: &str, share: Share, correlation: Share| {
            format!("{model} {} {}", share.print(), correlation.print())
        };
        match *self {
            LossSpec::Independent(share) => share.print(),
            LossSpec::Bursts(share, correlation) => pair("bursts", share, correlation),
            LossSpec::Random(share, correlation) => pair("random", share, correlation),
            LossSpec::GilbertElliott(numbers) => {
                format!("gemodel {}", numbers.map(|number| number.print()).join(" "))
            }
        }
    }
}

/// A model of losses.
static LOSS: Text = Text {
    name: "loss",
    expected: LossSpec::EXPECTED,
    pattern: concat!(
        "^ *(",
        share!(),
        r"|(bursts|random) +",
        share!(),
        " +",
        share!(),
        r"|gemodel( +",
        share!(),
        "){1,4}) *$"
    ),
    accepts: unit::<LossSpec>,
    numbers: Numbers::Share,
    names: Names::None,
    examples: &["1.5%", "bursts 1.5% 50%", "gemodel 1% 30% 100% 0%", "random 1.5% 50%"],
    refused: &["much", "burst 1% 50%", "bursts 1%", "gmodel 1% 2%"],
};

amounts! {
    LossSpec: LOSS,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(text: &str) -> Loss {
        LossSpec::read(text).unwrap().config()
    }

    #[test]
    fn every_model_reaches_the_link_with_its_numbers() {
        assert_eq!(loss("1.5%"), Loss::Independent(0.015));
        assert_eq!(loss("0.015"), Loss::Independent(0.015));
        assert_eq!(loss("random 1.5% 50%"), Loss::Correlated { share: 0.015, correlation: 0.5 });
        assert_eq!(loss("bursts 20%  60%"), GilbertElliott::with_share(0.2, 0.6).into());
        let all = GilbertElliott {
            good_to_bad: 0.01,
            bad_to_good: 0.3,
            loss_in_bad: 0.8,
            loss_in_good: 0.001,
        };
        assert_eq!(loss("gemodel 1% 30% 80% 0.1%"), all.into());
        assert_eq!(loss("gemodel 1% 30%"), GilbertElliott::new(0.01, 0.3).into());
        assert_eq!(loss("gemodel 1%"), GilbertElliott::new(0.01, 0.99).into());
        assert_eq!(loss("gemodel 1% 30% 80% 0.1%").validate(), Ok(()));
    }

    #[test]
    fn what_is_printed_reads_back() {
        let texts =
            ["0%", "1.5%", "random 1.5% 50%", "bursts 3% 0.1%", "gemodel 1% 30% 80% 0.0000001%"];
        for text in texts {
            assert_eq!(LossSpec::read(text).unwrap().print(), text);
        }
        assert_eq!(LossSpec::read("gemodel 1%").unwrap().print(), "gemodel 1% 99% 100% 0%");
    }

    #[test]
    fn texts_that_are_no_loss_are_refused() {
        let texts = [
            "",
            "much",
            "1.5% 50%",
            "random",
            "random 1%",
            "random 1% 2% 3%",
            "random 1% 100%",
            "bursts 1%",
            "bursts 1% 100%",
            "bursts 101% 50%",
            "gemodel",
            "gemodel 1% -3%",
            "gemodel 1% 2% 3% 4% 5%",
            "gmodel 1% 2%",
        ];
        for text in texts {
            let error = LossSpec::read(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}`: expected a share from 0% to 100%")));
        }
    }

    #[test]
    fn only_shares_between_nothing_and_all_are_chance() {
        let random = |text| LossSpec::read(text).unwrap().is_random();
        for text in ["1%", "bursts 1% 0%", "random 99% 0%", "gemodel 100% 100% 50%"] {
            assert!(random(text), "{text}");
        }
        for text in ["0%", "100%", "random 0% 50%", "bursts 100% 50%", "gemodel 100% 100%"] {
            assert!(!random(text), "{text}");
        }
    }
}
