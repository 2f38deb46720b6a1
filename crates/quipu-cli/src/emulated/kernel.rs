//! Loads with stacks of the kernel: TCP and Multipath TCP.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use quipu_emu::{Host, HostId, Topology};
use quipu_live::Client;
use quipu_live::tcp::{HTTP1_CONNECTIONS, TcpClient, TcpConfig, TcpHttp};
use quipu_scenario::KernelStack;
use quipu_tokio::identity::{Pin, pinned_config};
use quipu_tokio::tcp::TcpOptions;

use crate::failure::Failure;

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

/// Connects to `server` with the kernel's TCP.
///
/// # Errors
/// If it does not answer, or is not the one with that pin.
pub(super) async fn connect(
    stack: KernelStack,
    server: SocketAddr,
    pin: &str,
) -> Result<Client, Failure> {
    let pin: Pin = pin.parse().map_err(Failure::run)?;
    let http = match stack.is_http1() {
        true => TcpHttp::Http1 { connections: HTTP1_CONNECTIONS },
        false => TcpHttp::Http2,
    };
    let congestion = Some(stack.congestion.to_string());
    let options = TcpOptions { congestion, multipath: stack.is_multipath() };
    let tls = pinned_config(pin, &[]).map_err(Failure::run)?;
    let config = TcpConfig { server, tls, http, options };
    TcpClient::connect(&config).await.map(Client::Tcp).map_err(Failure::run)
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
