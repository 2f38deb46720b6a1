//! A program that sets up the network in place of Chromium's throttle.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Network, RecordError};

/// Calls `program` with the rates and the round trip of `network`, and waits until it has ended.
pub(crate) fn set(program: &Path, network: Network) -> Result<(), RecordError> {
    let fault = |message| RecordError::NotShaped { program: program.to_owned(), message };
    let output = Command::new(program)
        .args(network.arguments())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .map_err(|error| fault(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().rev().find(|line| !line.trim().is_empty());
    Err(fault(match last {
        Some(last) => format!("it ended with {}: {last}", output.status),
        None => format!("it ended with {}", output.status),
    }))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_shaper_that_fails_is_told() {
        let network = Network::parse_list("2mbit", Some("40ms")).unwrap()[0];
        assert_eq!(network.arguments(), ["2mbit", "2mbit", "40ms"]);
        assert_eq!(Network::default().arguments(), ["unlimited", "unlimited", "0ms"]);
        set(Path::new("true"), network).unwrap();
        let error = set(Path::new("false"), network).unwrap_err();
        assert!(error.is_usage());
        let text = error.to_string();
        assert!(text.starts_with("false did not set up the network: it ended with"), "{text}");
        assert!(set(Path::new("./no/such"), network).is_err());
    }
}
