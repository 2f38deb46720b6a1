//! Several paths, in noq's words.

use std::time::Duration;

use noq::{Connection, FourTuple, PathEvent, PathId, PathStatus};
use quipu_interop_live::{Case, Failure, Options, facts};

/// Paths at once.
const PATHS: u32 = 4;

/// Bytes on each path before one of them is closed.
const SOME: u64 = 50_000;

/// A path that is silent for so long is asked. A client's acknowledgements go by one path for all,
/// so that a server would hear nothing from the new address of another path that is rebound.
const KEEP_ALIVE: Duration = Duration::from_millis(100);

const LOOK: Duration = Duration::from_millis(2);

pub(crate) fn has_paths() -> bool {
    true
}

pub(crate) fn transport(options: &Options, config: &mut noq::TransportConfig) {
    if options.case.has_paths() {
        config.max_concurrent_multipath_paths(PATHS);
        config.default_path_keep_alive_interval(Some(KEEP_ALIVE));
    }
}

pub(crate) fn same_ids(config: &mut noq::EndpointConfig) {
    let make = || -> Box<dyn noq::ConnectionIdGenerator> {
        Box::new(noq_proto::HashedConnectionIdGenerator::from_key(1))
    };
    config.cid_generator(std::sync::Arc::new(make));
}

/// What a client does of its own with paths.
pub(crate) async fn act(options: &Options, connection: &Connection) -> Result<(), Failure> {
    if !options.case.has_paths() {
        return Ok(());
    }
    let first = connection.path(PathId::ZERO).ok_or("there is no first path")?;
    let remote = first.remote_address()?;
    let mut ids = vec![PathId::ZERO];
    for address in options.via.iter().skip(1) {
        let to = FourTuple::new(remote, Some(*address));
        let mut tries = 0;
        loop {
            match connection.open_path(to, PathStatus::Available).await {
                Ok(path) => {
                    ids.push(path.id());
                    break;
                }
                // Connection IDs for it may be on the way.
                Err(error) if tries > 100 => return Err(error.into()),
                Err(_) => tries += 1,
            }
            tokio::time::sleep(LOOK).await;
        }
    }
    if options.case == Case::MultipathAbandon {
        let used = |id: &PathId| connection.path_stats(*id).is_some_and(|s| s.udp_rx.bytes >= SOME);
        while !ids.iter().all(used) {
            if let Some(reason) = connection.close_reason() {
                return Err(reason.into());
            }
            tokio::time::sleep(LOOK).await;
        }
        first.close()?;
        facts::tell("abandoned", 0);
    }
    Ok(())
}

/// Tells what happens to paths.
pub(crate) fn watch(connection: &Connection) {
    use std::pin::Pin;
    let mut events = connection.path_events();
    tokio::spawn(async move {
        loop {
            let next = std::future::poll_fn(|cx| {
                use tokio_stream::Stream;
                Pin::new(&mut events).poll_next(cx)
            });
            match next.await {
                Some(Ok(PathEvent::Established { id, .. })) => facts::tell("path_up", id),
                Some(Ok(PathEvent::Abandoned { id, .. })) => facts::tell("path_gone", id),
                Some(_) => {}
                None => return,
            }
        }
    });
}
