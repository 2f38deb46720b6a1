//! `quipu serve --har`.

use std::fmt::Write as _;
use std::net::SocketAddr;

use quipu_lab::base::Seed;
use quipu_lab::pages::{LoadedPage, Reading};
use quipu_scenario::Scenario;
use quipu_serve::{Certificates, Replay};

use crate::args::ServeOptions;
use crate::failure::Failure;

/// Warnings of one kind that are printed in full; our choice.
const SHOWN: usize = 5;

/// The page called `name`, or of that file, read as for `quipu load`, for browsers or `bare`. What is not served as
/// recorded is told.
pub(super) fn of_page(name: &str, bare: bool) -> Result<Replay, Failure> {
    let scenario = Scenario::default();
    let loaded = LoadedPage::load_or_draw(name, Seed::new(scenario.seed), Reading::of(&scenario));
    let loaded = loaded.map_err(|error| Failure::Usage(format!("--har: {error}")))?;
    let page = &loaded.page.page;
    let replay = if bare { Replay::bare(page) } else { Replay::new(page) };
    let differences = replay.differences();
    for difference in differences.iter().take(SHOWN) {
        let (recorded, served) = (difference.recorded, difference.served);
        let url = &difference.url;
        eprintln!(
            "warning: {url} has {served} bytes, recorded {recorded}: what it requests needs them"
        );
    }
    if differences.len() > SHOWN {
        eprintln!(
            "warning: {} more objects have more bytes than recorded",
            differences.len() - SHOWN
        );
    }
    Ok(replay)
}

/// What is served.
pub(super) fn title(replay: &Replay, options: &ServeOptions) -> String {
    let name = options.har.as_deref().unwrap_or_default();
    let hosts = match replay.hosts().len() {
        1 => "1 host".to_owned(),
        hosts => format!("{hosts} hosts"),
    };
    let objects = replay.objects();
    format!("replaying {name} ({objects} objects, {hosts})")
}

/// The command that opens the page in Chromium: all names lead to `address`, the certificate is known by its key,
/// and HTTP/3 is used at once.
pub(super) fn chromium(
    replay: &Replay,
    address: Option<&SocketAddr>,
    certificates: &Certificates,
) -> String {
    let Some(address) = address else { return String::new() };
    let mut reached = *address;
    if reached.ip().is_unspecified() {
        reached.set_ip([127, 0, 0, 1].into());
    }
    let mut command = "chromium --enable-quic".to_owned();
    let _ = write!(command, " \\\n  --host-resolver-rules=\"MAP * {reached}\"");
    if let Some(hash) = certificates.key_hash() {
        let hash = base64(&hash);
        let _ = write!(command, " \\\n  --ignore-certificate-errors-spki-list={hash}");
    }
    let origins = replay.origins().join(",");
    let _ = write!(command, " \\\n  --origin-to-force-quic-on={origins}");
    let _ = writeln!(command, " \\\n  \'{}\'", replay.start().replace('\'', "%27"));
    command
}

/// <https://www.rfc-editor.org/rfc/rfc4648#section-4>
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[bits >> (18 - 6 * place) & 63];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
