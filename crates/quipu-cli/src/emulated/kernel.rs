//! Loads with stacks of the kernel: TCP and Multipath TCP.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use http::uri::Authority;
use quipu_emu::{Host, HostId, Topology};
use quipu_lab::base::Instant;
use quipu_lab::path_record;
use quipu_lab::plan::{Cell, Plan};
use quipu_live::tcp::{HTTP1_CONNECTIONS, TcpClient, TcpConfig, TcpHttp};
use quipu_record::{End, RunRecord};
use quipu_scenario::KernelStack;
use quipu_tokio::identity::{Pin, pinned_config};
use quipu_tokio::tcp::TcpOptions;
use quipu_tokio::tokio;

use crate::failure::Failure;
use crate::page_loads::{CONNECT_WITHIN, check_statuses, started, warm_up};

/// How long both ends have to hear that connections over TCP are over. Our choice, more than a round trip.
const FAREWELL: Duration = Duration::from_millis(300);

/// Subflows and addresses that the kernel takes beside the first: <https://www.kernel.org/doc/html/latest/networking/mptcp.html>.
const LIMITS: &str = "limits set subflow 4 add_addr_accepted 4";

/// The options of `quipu serve` for a stack.
pub(super) fn options_of(stack: KernelStack) -> Vec<String> {
    let mut options = vec!["--tcp-congestion".to_owned(), stack.congestion.to_string()];
    options.extend(stack.is_multipath().then(|| "--mptcp".to_owned()));
    options
}

/// Lets the kernel use all paths between a client and a server with Multipath TCP: its path manager tells clients the
/// server's other addresses, and they open a subflow to each.
///
/// # Errors
/// If it cannot.
pub(super) fn use_all_paths(
    topology: &Topology,
    (client, at_client): (HostId, &Host),
    (server, at_server): (HostId, &Host),
) -> Result<(), Failure> {
    ip_mptcp(at_client, LIMITS)?;
    ip_mptcp(at_server, LIMITS)?;
    for path in topology.paths_of(client).into_iter().skip(1) {
        let (address, _) = topology.addresses(server, path);
        ip_mptcp(at_server, &format!("endpoint add {address} dev path{path} signal"))?;
    }
    Ok(())
}

fn ip_mptcp(host: &Host, arguments: &str) -> Result<(), Failure> {
    let failed = |reason: String| Failure::Run(format!("`ip mptcp {arguments}`: {reason}"));
    let mut command = Command::new("ip");
    command.arg("mptcp").args(arguments.split(' ')).stdin(Stdio::null()).stderr(Stdio::piped());
    let run = host.spawn(command).and_then(std::process::Child::wait_with_output);
    let ended = run.map_err(|error| failed(error.to_string()))?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&ended.stderr).trim().to_owned())),
    }
}

/// A server and a client of the kernel, for one load.
pub(super) struct Setup<'a> {
    pub(super) stack: KernelStack,
    pub(super) server: SocketAddr,
    pub(super) pin: &'a str,
    /// The interfaces of the client.
    pub(super) interfaces: &'a [String],
}

impl Setup<'_> {
    /// The load of `cell`, over connections of its own. What has to be done right before it is `begin`. To be called
    /// in the client's network.
    ///
    /// # Errors
    /// If there is no connection, a response fails, or the page is not there in time.
    pub(super) async fn load(
        &self,
        (plan, cell): (&Plan, Cell),
        begin: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<RunRecord, Failure> {
        let pin: Pin = self.pin.parse().map_err(Failure::run)?;
        let http = match self.stack.is_http1() {
            true => TcpHttp::Http1 { connections: HTTP1_CONNECTIONS },
            false => TcpHttp::Http2,
        };
        let options = TcpOptions {
            congestion: Some(self.stack.congestion.to_string()),
            multipath: self.stack.is_multipath(),
        };
        let tls = pinned_config(pin, &[]).map_err(Failure::run)?;
        let config = TcpConfig { server: self.server, tls, http, options };
        let before = self.received();
        begin()?;
        let (loading, clock) = started(plan, cell)?;
        let connecting = tokio::time::timeout(CONNECT_WITHIN, TcpClient::connect(&config));
        let client = connecting.await.map_err(|_| {
            let seconds = CONNECT_WITHIN.as_secs();
            Failure::Run(format!("no connection to TCP {} after {seconds} s", self.server))
        })?;
        let client = client.map_err(Failure::run)?;
        let connected = clock.now();
        let at: Authority = self.server.to_string().parse().map_err(Failure::run)?;
        warm_up(&(&client).into(), Some(&at), plan).await?;
        let limit = plan.scenario.time_limit;
        let loaded = quipu_live::load(&client, loading, &plan.browser, clock, limit).await;
        let after = self.received();
        drop(client);
        tokio::time::sleep(FAREWELL).await;
        let mut loaded = loaded.map_err(Failure::run)?;
        check_statuses((plan, cell), &loaded.differences)?;
        loaded.record.connect_time = connected - Instant::ZERO;
        loaded.record.paths = (0..)
            .zip(self.interfaces)
            .map(|(path, name)| {
                let of = |counts: &BTreeMap<String, u64>| counts.get(name).copied().unwrap_or(0);
                let mut record = path_record(End::Client, 0, path, &Default::default());
                record.datagrams_received = of(&after).saturating_sub(of(&before));
                record
            })
            .collect();
        Ok(loaded.record)
    }

    /// IP packets that the client's interfaces have received, as the kernel counts them.
    fn received(&self) -> BTreeMap<String, u64> {
        // Of this thread, whose network is the client's.
        let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        let interfaces = text.lines().filter_map(|line| {
            let (name, counts) = line.split_once(':')?;
            let packets = counts.split_whitespace().nth(1)?.parse().ok()?;
            Some((name.trim().to_owned(), packets))
        });
        interfaces.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_scenario::{Stack, Stacks};

    #[test]
    fn servers_are_told_congestion_control_and_multipath() {
        let stacks: Stacks = "tcp-h1:congestion=bbr,mptcp-h2".parse().expect("stacks");
        let told = stacks.iter().filter_map(Stack::kernel).map(|stack| options_of(stack).join(" "));
        let expected = ["--tcp-congestion bbr", "--tcp-congestion cubic --mptcp"];
        assert!(told.eq(expected));
    }
}
