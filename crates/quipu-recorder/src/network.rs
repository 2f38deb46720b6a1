//! The network that a page is loaded over.

use std::fmt;

use quipu_base::{Duration, Rate};
use serde_json::{Value, json};

use crate::values::{OptionError, parse_time};

/// What the browser's own throttle does to each request, or the network that a shaper sets up; without any of it the
/// network is the machine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Rate of all responses together.
    pub down: Option<Rate>,
    /// Rate of all requests together.
    pub up: Option<Rate>,
    /// Least time from a request to the head of its response. It is added to that of the machine's network.
    pub rtt: Option<Duration>,
}

impl Network {
    /// Reads a list such as `2mbit,20mbit/5mbit,unlimited`: rates of responses, each with that of requests after a
    /// stroke, else the same; `rtt` holds for all.
    ///
    /// # Errors
    /// If an item is no rate.
    pub fn parse_list(text: &str, rtt: Option<&str>) -> Result<Vec<Network>, OptionError> {
        let rtt = rtt.map(|rtt| parse_time("--rtt", rtt)).transpose()?.filter(|rtt| !rtt.is_zero());
        text.split(',').map(|item| Network::parse(item.trim(), rtt)).collect()
    }

    fn parse(item: &str, rtt: Option<Duration>) -> Result<Network, OptionError> {
        let fault = || OptionError {
            option: "--at",
            value: item.to_owned(),
            expected: "rates such as 500kbit, 2mbit, 20mbit/5mbit or unlimited, separated by commas",
        };
        let side = |text: &str| match text {
            "unlimited" => Some(None),
            text => parse_rate(text).map(Some),
        };
        let (down, up) = item.split_once('/').unwrap_or((item, item));
        let down = side(down).ok_or_else(fault)?;
        let up = side(up).ok_or_else(fault)?;
        Ok(Network { down, up, rtt })
    }

    /// Whether it is the machine's network as it is.
    pub fn is_unlimited(&self) -> bool {
        *self == Network::default()
    }

    /// As programs that set up a network take it: rates of responses and requests, and the round trip.
    pub(crate) fn arguments(&self) -> [String; 3] {
        let rate = |rate: Option<Rate>| rate.map_or_else(|| "unlimited".to_owned(), rate_text);
        [rate(self.down), rate(self.up), time_text(self.rtt.unwrap_or_default())]
    }

    /// As recordings have it in `_network`.
    pub(crate) fn written(&self) -> Value {
        if self.is_unlimited() {
            return json!("unlimited");
        }
        let [down, up, rtt] = self.arguments();
        json!({ "down": down, "up": up, "rtt": rtt })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.down, self.up) {
            (None, None) => f.write_str("unlimited")?,
            (down, up) => {
                let text = |rate: Option<Rate>| rate.map_or("unlimited".to_owned(), rate_text);
                f.write_str(&text(down))?;
                if down != up {
                    write!(f, "/{}", text(up))?;
                }
            }
        }
        match self.rtt {
            Some(rtt) => write!(f, " and {}", time_text(rtt)),
            None => Ok(()),
        }
    }
}

/// A rate from 1 kbit/s to 100 Gbit/s.
fn parse_rate(text: &str) -> Option<Rate> {
    let units = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("bit", 1.0)];
    let text = text.to_ascii_lowercase();
    let (number, unit) =
        units.iter().find_map(|&(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let bits = number.trim().parse::<f64>().ok()? * unit;
    (1e3..=1e11).contains(&bits).then(|| Rate::from_bits_per_sec(bits.round() as u64))
}

fn rate_text(rate: Rate) -> String {
    let bits = rate.bits_per_sec();
    match bits {
        _ if bits.is_multiple_of(1_000_000) => format!("{}mbit", bits / 1_000_000),
        _ if bits.is_multiple_of(1_000) => format!("{}kbit", bits / 1_000),
        _ => format!("{bits}bit"),
    }
}

fn time_text(time: Duration) -> String {
    format!("{}ms", time.as_nanos() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_rates_are_read_and_written() {
        let list = Network::parse_list("2mbit, 20mbit/500kbit,unlimited", None).unwrap();
        let texts: Vec<String> = list.iter().map(Network::to_string).collect();
        assert_eq!(texts, ["2mbit", "20mbit/500kbit", "unlimited"]);
        assert_eq!(list[1].written(), json!({"down": "20mbit", "up": "500kbit", "rtt": "0ms"}));
        assert_eq!(list[2].written(), json!("unlimited"));
        let far = Network::parse_list("unlimited", Some("40ms")).unwrap();
        assert_eq!(
            far[0].written(),
            json!({"down": "unlimited", "up": "unlimited", "rtt": "40ms"})
        );
        assert_eq!(far[0].to_string(), "unlimited and 40ms");
    }

    #[test]
    fn what_is_no_rate_is_told() {
        for text in
            ["", "2", "2mb", "0mbit", "-1mbit", "2mbit,,3mbit", "nanmbit", "1e99mbit", "2mbit/"]
        {
            let error = Network::parse_list(text, None).unwrap_err().to_string();
            assert!(error.starts_with("--at: ") && error.contains("expected rates"), "{error}");
        }
        assert!(Network::parse_list("2mbit", Some("soon")).is_err());
    }
}
