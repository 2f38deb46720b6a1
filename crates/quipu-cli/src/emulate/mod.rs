//! `quipu emulate`: the links of a network in real time, for any program.

mod network;
mod programs;
mod told;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quipu_emu::{DeviceKind, Emulation, Settings, enter_user_namespace};
use quipu_lab::plan::{Cell, Plan};
use quipu_scenario::is_network_file;

use crate::args::{Device, EmulateOptions};
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Given;
use crate::stop;
pub(crate) use network::Emulated;
use programs::{Ended, Programs};

/// Runs programs in clients and servers that the network connects.
pub(crate) fn run(options: &EmulateOptions, own: &Own<'_>) -> Result<(), Failure> {
    // Before anything has a thread.
    enter()?;
    let plan = plan(options, own)?;
    let cell = Cell { page: 0, network: 0, policy: 0, run: options.run };
    let emulated = Emulated::new(&plan, cell)?;
    let servers = emulated.topology.servers().len();
    if options.server.len() > servers {
        let given = options.server.len();
        let reason = format!("--server is given {given} times, and there are {servers} servers");
        return Err(Failure::Usage(reason));
    }
    let stopped = Arc::new(AtomicBool::new(false));
    stop::on_request(&stopped)?;
    let settings = Settings {
        mtu: options.mtu,
        device: options.device.map(kind),
        priority: options.priority.priority,
        ..Settings::default()
    };
    let Emulated { topology, links } = emulated;
    let emulation = Emulation::start(&topology, links, &settings).map_err(Failure::run)?;
    eprint!("{}", told::hosts(&plan, &emulation));
    let ended = Programs::new(&topology, &emulation).run(options, &stopped);
    let report = emulation.stop().map_err(Failure::run)?;
    eprint!("{}", told::report(&report));
    if let Some(file) = &options.report {
        told::write(file, &plan, options, &report)?;
    }
    match ended? {
        Ended::WithCode(0) => Ok(()),
        Ended::WithCode(code) => Err(Failure::Told(code)),
        Ended::OnRequest => Err(Failure::Interrupted),
    }
}

/// The plan of which one network is emulated.
fn plan(options: &EmulateOptions, own: &Own<'_>) -> Result<Plan, Failure> {
    let mut given = Given::load(None)?;
    match options.network.as_deref() {
        Some(file) if file.ends_with(".toml") && !is_network_file(file.as_ref()) => {
            given = Given::load(Some(file.as_ref()))?;
        }
        Some(name) => given.choose(&[], &[name.to_owned()])?,
        None => {}
    }
    given.link(&options.link)?;
    given.name_columns(options.trace_columns.as_deref())?;
    given.set("seed", "--seed", options.seed.as_deref())?;
    given.assign(&options.set)?;
    let networks = &given.scenario.networks;
    if networks.len() != 1 {
        let names: Vec<&str> = networks.iter().map(|network| network.name.as_str()).collect();
        let names = names.join(", ");
        return Err(Failure::Usage(format!("expected one network, and there are {names}")));
    }
    given.told_plan(own)
}

/// Gets the rights that it takes, before this process has another thread.
///
/// # Errors
/// If this user cannot have them.
pub(crate) fn enter() -> Result<(), Failure> {
    enter_user_namespace().map(drop).map_err(|error| {
        let way = "run it as root, or where `unshare --user` works";
        Failure::Run(format!("this user may not make network namespaces ({error}); {way}"))
    })
}

fn kind(device: Device) -> DeviceKind {
    match device {
        Device::Tun => DeviceKind::Tun,
        Device::Veth => DeviceKind::Veth,
    }
}
