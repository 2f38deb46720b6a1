//! Values of options, as they are written.

use quipu_base::Duration;
use thiserror::Error;

/// An option that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{option}: {value:?}; expected {expected}")]
pub struct OptionError {
    /// The option, or `URL`.
    pub option: &'static str,
    /// What was given.
    pub value: String,
    /// What can be given.
    pub expected: &'static str,
}

/// A time such as `40ms`, `2s` or `1.5s`, of `option`, up to an hour.
///
/// # Errors
/// If it is none.
pub fn parse_time(option: &'static str, text: &str) -> Result<Duration, OptionError> {
    let units = [("ms", 1e-3), ("s", 1.0)];
    let seconds = units.iter().find_map(|&(name, unit)| {
        let number: f64 = text.strip_suffix(name)?.trim().parse().ok()?;
        Some(number * unit)
    });
    match seconds {
        Some(seconds) if (0.0..=3_600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(OptionError {
            option,
            value: text.to_owned(),
            expected: "a time such as 40ms or 2s, at most an hour",
        }),
    }
}

/// A size such as `1280x900`.
///
/// # Errors
/// If it is none.
pub fn parse_viewport(text: &str) -> Result<(u32, u32), OptionError> {
    let side = |side: &str| side.parse().ok().filter(|side| (1..=10_000_u32).contains(side));
    text.split_once('x').and_then(|(width, height)| Some((side(width)?, side(height)?))).ok_or_else(
        || OptionError {
            option: "--viewport",
            value: text.to_owned(),
            expected: "width and height in pixels, such as 1280x900, each at most 10000",
        },
    )
}

/// A host and the address in its place, such as `docs.test=127.0.0.1` or `*.test=[::1]:8443`.
///
/// # Errors
/// If one of them is missing, or has a sign that no host or address has.
pub fn parse_host(text: &str) -> Result<(String, String), OptionError> {
    let usual = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-' | '_');
    let host = |text: &str| !text.is_empty() && text.chars().all(|it| usual(it) || it == '*');
    let address = |text: &str| {
        !text.is_empty() && text.chars().all(|it| usual(it) || matches!(it, ':' | '[' | ']'))
    };
    text.split_once('=')
        .filter(|&(name, place)| host(name) && address(place))
        .map(|(name, place)| (name.to_owned(), place.to_owned()))
        .ok_or_else(|| OptionError {
            option: "--map",
            value: text.to_owned(),
            expected: "a host and an address, such as docs.test=127.0.0.1 or *.test=[::1]:8443",
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_sizes_and_hosts_are_checked() {
        assert_eq!(parse_time("--rtt", "40ms"), Ok(Duration::from_millis(40)));
        assert_eq!(parse_time("--settle", "1.5s"), Ok(Duration::from_millis(1_500)));
        for text in ["", "40", "-1s", "nans", "3601s", "1h"] {
            assert!(parse_time("--rtt", text).is_err(), "{text}");
        }
        let host = |name: &str, place: &str| Ok((name.to_owned(), place.to_owned()));
        assert_eq!(parse_host("docs.test=127.0.0.1"), host("docs.test", "127.0.0.1"));
        assert_eq!(parse_host("*.test=[::1]:8443"), host("*.test", "[::1]:8443"));
        for text in ["", "docs.test", "=127.0.0.1", "a.test=", "a.test=1,MAP b 2", "a b=1"] {
            assert!(parse_host(text).is_err(), "{text}");
        }
        assert_eq!(parse_viewport("1280x900"), Ok((1280, 900)));
        for text in ["", "1280", "0x900", "1280x90000", "x"] {
            assert!(parse_viewport(text).is_err(), "{text}");
        }
    }
}
