//! One load of a page in a browser.

use std::time::{Duration, Instant};

use quipu_base::Rate;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::client::Client;
use crate::observed::Observed;
use crate::{Network, Options, RecordError, events};

/// A page that never is quiet is left after so many times the time that it should be quiet for. Our choice.
const NEVER_QUIET: u32 = 5;

/// How many asynchronous callers of a function are told. Our choice; the developer tools have 32.
const ASYNCHRONOUS_CALLERS: u32 = 8;

/// How long the browser may take to hand over the trace.
const TRACE: Duration = Duration::from_secs(60);

/// Loads the page of `options` and gives what the browser told until the page was quiet. `begin` is called right before
/// the browser is asked to.
pub(crate) fn load(
    browser: &mut Browser<'_>,
    options: &Options,
    network: Network,
    begin: impl FnOnce(),
) -> Result<Observed, RecordError> {
    let client = browser.client();
    let target = client.call(None, "Target.createTarget", json!({ "url": "about:blank" }))?;
    let attach = json!({ "targetId": target["targetId"], "flatten": true });
    let session = client.call(None, "Target.attachToTarget", attach)?;
    let session = session["sessionId"].as_str().unwrap_or_default().to_owned();
    // The throttle stays away where the network itself has the rates.
    let throttle = if options.shaper.is_some() { Network::default() } else { network };
    let traced = options.traced;
    let observed = Observed::default();
    let mut page = Page { client, session, network: throttle, traced, observed };
    page.set_up(options)?;
    begin();
    page.load(options)?;
    if !page.observed.has_begun() {
        let message = format!("it sent no request for {}", options.url);
        return Err(RecordError::Lost { message });
    }
    page.observed.end();
    if traced {
        page.take_trace()?;
    }
    Ok(page.observed)
}

struct Page<'b, 's> {
    client: &'b mut Client<'s>,
    session: String,
    network: Network,
    /// Whether a trace is taken.
    traced: bool,
    observed: Observed,
}

impl Page<'_, '_> {
    fn call(&mut self, method: &str, params: Value) -> Result<Value, RecordError> {
        self.client.call(Some(&self.session), method, params)
    }

    fn set_up(&mut self, options: &Options) -> Result<(), RecordError> {
        let (width, height) = options.viewport;
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Page.enable", json!({}))?;
        self.call("Page.setLifecycleEventsEnabled", json!({ "enabled": true }))?;
        self.call("Emulation.setDeviceMetricsOverride", size)?;
        for (method, params) in self.commands() {
            self.call(method, params)?;
        }
        self.call("Target.setAutoAttach", auto_attach())?;
        if !self.traced {
            return Ok(());
        }
        let config = json!({
            "transferMode": "ReportEvents",
            "traceConfig": {
                "includedCategories": events::CATEGORIES,
                "excludedCategories": ["*"],
            },
        });
        self.call("Tracing.start", config)?;
        Ok(())
    }

    /// Loads the page, until it is quiet after its load event or the time is up.
    fn load(&mut self, options: &Options) -> Result<(), RecordError> {
        let real = |time: quipu_base::Duration| Duration::from_nanos(time.as_nanos());
        let (timeout, settle) = (real(options.timeout), real(options.settle));
        let navigation = self.client.send(
            Some(&self.session),
            "Page.navigate",
            json!({ "url": options.url }),
        )?;
        let begun = Instant::now();
        let mut loaded: Option<Instant> = None;
        let mut active = begun;
        loop {
            let now = Instant::now();
            let quiet = now.duration_since(active) >= settle && self.observed.is_idle();
            let patience = loaded.map(|at| at + settle.saturating_mul(NEVER_QUIET));
            if loaded.is_some_and(|at| now.duration_since(at) >= settle && quiet)
                || patience.is_some_and(|until| now >= until)
                || now.duration_since(begun) >= timeout
            {
                return Ok(());
            }
            let Some(event) = self.client.next()? else { continue };
            if event.method.is_empty() {
                check_navigation(&event.params, navigation, &options.url)?;
                continue;
            }
            if event.method == "Target.attachedToTarget" {
                self.watch(event.params["sessionId"].as_str().unwrap_or_default())?;
            }
            if event.method == "Page.javascriptDialogOpening" {
                // Nobody is there to read it, and the page waits.
                let accept = json!({ "accept": true });
                let session = event.session.as_deref();
                self.client.send(session, "Page.handleJavaScriptDialog", accept)?;
            }
            let of_page = event.session.as_deref() == Some(&self.session);
            if event.method.starts_with("Network.") {
                active = Instant::now();
            }
            if event.method.starts_with("Network.") || of_page {
                self.observed.take(&event.method, &event.params);
            }
            if event.method == "Page.loadEventFired" && of_page && self.observed.has_begun() {
                loaded.get_or_insert(Instant::now());
            }
        }
    }

    /// Watches a frame or a worker that has a process of its own, and lets it begin.
    fn watch(&mut self, session: &str) -> Result<(), RecordError> {
        for (method, params) in self.commands() {
            self.client.send(Some(session), method, params)?;
        }
        self.client.send(Some(session), "Target.setAutoAttach", auto_attach())?;
        self.client.send(Some(session), "Runtime.runIfWaitingForDebugger", json!({}))?;
        Ok(())
    }

    /// What makes a page, a frame or a worker tell of its requests.
    fn commands(&self) -> Vec<(&'static str, Value)> {
        let mut commands = network_commands(self.network);
        if self.traced {
            commands.extend(debugger_commands());
        }
        commands
    }

    /// Ends the trace, and takes it with what else is told meanwhile.
    fn take_trace(&mut self) -> Result<(), RecordError> {
        self.client.send(Some(&self.session), "Tracing.end", json!({}))?;
        let deadline = Instant::now() + TRACE;
        while Instant::now() < deadline {
            let Some(event) = self.client.next()? else { continue };
            if event.method.starts_with("Tracing.") {
                self.observed.take(&event.method, &event.params);
            }
            if event.method == "Tracing.tracingComplete" {
                return Ok(());
            }
        }
        Err(RecordError::NoAnswer { method: "Tracing.end".to_owned() })
    }
}

/// Whether the browser could begin to load the page; it says so once it has an answer.
fn check_navigation(answer: &Value, navigation: u64, url: &str) -> Result<(), RecordError> {
    if answer["id"].as_u64() != Some(navigation) {
        return Ok(());
    }
    let fault = answer["result"]["errorText"].as_str().or(answer["error"]["message"].as_str());
    match fault {
        Some(message) => {
            Err(RecordError::NotLoaded { url: url.to_owned(), message: message.to_owned() })
        }
        None => Ok(()),
    }
}

/// Frames and workers wait until they are watched.
fn auto_attach() -> Value {
    json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true })
}

/// Without a debugger nobody knows which script a promise or a timer was set by.
fn debugger_commands() -> [(&'static str, Value); 3] {
    [
        ("Debugger.enable", json!({})),
        ("Debugger.setSkipAllPauses", json!({ "skip": true })),
        ("Debugger.setAsyncCallStackDepth", json!({ "maxDepth": ASYNCHRONOUS_CALLERS })),
    ]
}

/// What makes a page tell of its requests, without a cache and over `network`.
fn network_commands(network: Network) -> Vec<(&'static str, Value)> {
    let mut commands = vec![
        ("Network.enable", json!({})),
        ("Network.setCacheDisabled", json!({ "cacheDisabled": true })),
    ];
    if !network.is_unlimited() {
        let rate = |rate: Option<Rate>| rate.map_or(-1.0, |rate| rate.bits_per_sec() as f64 / 8.0);
        let latency = network.rtt.unwrap_or_default().as_nanos() as f64 / 1e6;
        let conditions = json!({
            "offline": false,
            "latency": latency,
            "downloadThroughput": rate(network.down),
            "uploadThroughput": rate(network.up),
        });
        commands.push(("Network.emulateNetworkConditions", conditions));
    }
    commands
}
