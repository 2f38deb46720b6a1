//! A Chromium with a new profile, which ends when it is no longer needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[cfg(unix)]
use rustix::process::{Pid, Signal};
use serde_json::json;
use tempfile::TempDir;

use crate::client::Client;
#[cfg(unix)]
use crate::watchdog::Watchdog;
use crate::{LEAST_CHROMIUM, Options, RecordError};

/// Programs that are Chromium or a relative of it, by name, the freest first.
const NAMES: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "chrome",
];

/// Where they are on systems that have no folder of programs.
const PLACES: [&str; 3] = [
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
];

/// A browser without a window and without habits: nothing that is not the page's own goes to the network.
const ARGUMENTS: [&str; 21] = [
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-renderer-backgrounding",
    "--disable-sync",
    "--disable-features=Translate,OptimizationHints,MediaRouter,AutofillServerCommunication,CertificateTransparencyComponentUpdater",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
];

/// How long a browser may take to start.
const START: Duration = Duration::from_secs(30);
/// How long it may take to end by itself.
const END: Duration = Duration::from_secs(3);
/// Between looks at a file or a process.
const TICK: Duration = Duration::from_millis(10);

/// The program: `wanted`, or the first that is found.
pub(crate) fn find(wanted: Option<&Path>) -> Result<PathBuf, RecordError> {
    if let Some(wanted) = wanted {
        return in_path(wanted)
            .ok_or_else(|| RecordError::NoBrowser { tried: vec![wanted.display().to_string()] });
    }
    let places = NAMES.iter().chain(&PLACES);
    places.clone().find_map(|place| in_path(Path::new(place))).ok_or_else(|| {
        RecordError::NoBrowser { tried: places.map(|&place| place.to_owned()).collect() }
    })
}

/// `program` itself if it is a path, else where it is in the folders of programs.
fn in_path(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// A browser that runs. When it is dropped, its processes are ended and its profile is removed.
pub(crate) struct Browser<'s> {
    client: Client<'s>,
    version: String,
    // After the client: the browser is asked to end before it is made to.
    process: Process,
}

impl<'s> Browser<'s> {
    /// Starts `program` and connects to it.
    pub(crate) fn start(
        program: &Path,
        options: &Options,
        stop: &'s AtomicBool,
    ) -> Result<Browser<'s>, RecordError> {
        let mut process = Process::start(program, options)?;
        let (port, path) = process.address(program, stop)?;
        let mut client = Client::connect(port, &path, stop)?;
        let version = client.call(None, "Browser.getVersion", json!({}))?;
        let version = version["product"].as_str().unwrap_or_default().to_owned();
        if major(&version).is_some_and(|major| major < LEAST_CHROMIUM) {
            return Err(RecordError::TooOld { program: program.to_owned(), version });
        }
        Ok(Browser { client, version, process })
    }

    /// The connection to it.
    pub(crate) fn client(&mut self) -> &mut Client<'s> {
        &mut self.client
    }

    /// What it says that it is, such as `Chrome/156.0.8078.79`.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Lets the browser end by itself, which leaves no process of it behind.
    pub(crate) fn close(mut self) {
        if self.client.send(None, "Browser.close", json!({})).is_ok() {
            self.process.wait_until(Instant::now() + END);
        }
    }
}

/// The first number after the stroke.
fn major(version: &str) -> Option<u32> {
    version.split_once('/')?.1.split('.').next()?.parse().ok()
}

/// The processes of a browser, and its profile.
struct Process {
    child: Child,
    profile: Option<TempDir>,
    /// Ends the browser if this process is killed; none on a system without a shell.
    #[cfg(unix)]
    _watchdog: Option<Watchdog>,
}

impl Process {
    fn start(program: &Path, options: &Options) -> Result<Process, RecordError> {
        let called = options.launcher.first().map_or(program, Path::new);
        let not_started =
            |message: String| RecordError::NotStarted { program: called.to_owned(), message };
        let profile = tempfile::Builder::new()
            .prefix(&format!("quipu-recorder-{}-", std::process::id()))
            .tempdir()
            .map_err(|error| not_started(format!("no folder for its profile: {error}")))?;
        let errors = fs::File::create(profile.path().join(ERRORS))
            .map_err(|error| not_started(error.to_string()))?;
        let (width, height) = options.viewport;
        let mut command = match options.launcher.split_first() {
            None => Command::new(program),
            Some((launcher, arguments)) => {
                let mut command = Command::new(launcher);
                command.args(arguments).arg(program);
                command
            }
        };
        command
            .args(ARGUMENTS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--window-size={width},{height}"))
            .args(network_arguments(options))
            .args(&options.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            // A group of its own: it is ended as a whole, and Ctrl-C comes to us alone.
            command.process_group(0);
            // Chromium's sandbox needs another user than root.
            if rustix::process::geteuid().is_root() {
                command.arg("--no-sandbox");
            }
        }
        #[cfg(target_os = "linux")]
        crate::orphans::adopt();
        command.arg("about:blank");
        #[cfg(unix)]
        let mut watchdog = Watchdog::start(profile.path()).ok();
        let child = command.spawn().map_err(|error| not_started(error.to_string()))?;
        #[cfg(unix)]
        if let Some(watchdog) = &mut watchdog {
            watchdog.guard(child.id());
        }
        Ok(Process {
            child,
            profile: Some(profile),
            #[cfg(unix)]
            _watchdog: watchdog,
        })
    }

    /// Waits for the port and the path at which the browser listens.
    fn address(&mut self, program: &Path, stop: &AtomicBool) -> Result<(u16, String), RecordError> {
        let deadline = Instant::now() + START;
        loop {
            let told = self.file("DevToolsActivePort").and_then(|text| {
                let (port, path) = text.split_once('\n')?;
                Some((port.trim().parse().ok()?, path.trim().to_owned()))
            });
            if let Some((port, path)) = told.filter(|(_, path)| path.starts_with('/')) {
                return Ok((port, path));
            }
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() >= deadline {
                let errors = self.file(ERRORS).unwrap_or_default();
                let last = errors.lines().rev().find(|line| !line.trim().is_empty());
                let message = match (ended, last) {
                    (Some(code), Some(last)) => format!("it ended with {code}: {last}"),
                    (Some(code), None) => format!("it ended with {code}"),
                    (None, _) => format!("it does not listen after {} s", START.as_secs()),
                };
                return Err(RecordError::NotStarted { program: program.to_owned(), message });
            }
            if stop.load(Ordering::Relaxed) {
                return Err(RecordError::Interrupted);
            }
            std::thread::sleep(TICK);
        }
    }

    fn file(&self, name: &str) -> Option<String> {
        let path = self.profile.as_ref()?.path().join(name);
        fs::read(path).ok().map(|text| String::from_utf8_lossy(&text).into_owned())
    }

    fn wait_until(&mut self, deadline: Instant) {
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(TICK);
        }
    }

    /// Ends all processes that are left of the group, and waits for them.
    fn kill(&mut self) {
        #[cfg(unix)]
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        #[cfg(unix)]
        if let Some(group) = group {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        #[cfg(target_os = "linux")]
        if let Some(group) = group {
            crate::orphans::wait(group);
        }
    }
}

/// How names are looked up, and which certificates are good.
fn network_arguments(options: &Options) -> Vec<String> {
    let rules: Vec<String> =
        options.hosts.iter().map(|(host, address)| format!("MAP {host} {address}")).collect();
    let mut arguments = Vec::new();
    if !rules.is_empty() {
        arguments.push(format!("--host-resolver-rules={}", rules.join(",")));
    }
    if options.insecure {
        arguments.push("--ignore-certificate-errors".to_owned());
    }
    arguments
}

/// What the browser writes to its standard error.
const ERRORS: &str = "quipu-errors.txt";

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        // A process that is about to end may still write into the folder.
        let Some(profile) = self.profile.take().map(TempDir::keep) else { return };
        let deadline = Instant::now() + END;
        while fs::remove_dir_all(&profile).is_err() && profile.exists() && Instant::now() < deadline
        {
            std::thread::sleep(TICK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_told() {
        let error = find(Some(Path::new("no-such-browser"))).unwrap_err();
        assert!(error.is_usage());
        let text = error.to_string();
        assert!(text.starts_with("no Chromium found, looked for no-such-browser; "), "{text}");
        assert!(find(Some(Path::new("./no/such"))).is_err());
    }

    #[test]
    #[cfg(unix)]
    fn a_program_that_is_no_browser_is_told() {
        let options = Options::new("http://a.test/").unwrap();
        let program = find(Some(Path::new("false"))).unwrap();
        let error = Browser::start(&program, &options, &AtomicBool::new(false)).err().unwrap();
        assert!(error.is_usage(), "{error}");
        assert!(
            error.to_string().contains("does not start: it ended with exit status: 1"),
            "{error}"
        );
    }

    #[test]
    fn hosts_and_certificates_become_arguments() {
        let mut options = Options::new("https://a.test/").unwrap();
        assert!(network_arguments(&options).is_empty());
        options.hosts = vec![
            ("*.test".to_owned(), "127.0.0.1".to_owned()),
            ("b.org".to_owned(), "[::1]:8443".to_owned()),
        ];
        options.insecure = true;
        assert_eq!(
            network_arguments(&options),
            [
                "--host-resolver-rules=MAP *.test 127.0.0.1,MAP b.org [::1]:8443",
                "--ignore-certificate-errors"
            ]
        );
    }

    #[test]
    fn versions_are_compared_by_their_first_number() {
        assert_eq!(major("Chrome/156.0.8078.79"), Some(156));
        assert_eq!(major("HeadlessChrome/99.1"), Some(99));
        assert_eq!(major("Something"), None);
    }
}
