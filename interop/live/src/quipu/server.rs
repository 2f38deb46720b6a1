//! Serves files.

use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::sync::Arc;

use quipu_interop_live::{Case, Failure, MAX_REQUEST, Options, facts, files};
use quipu_quic::PreferredAddresses;
use quipu_quic::recorder::RecorderFactory;
use quipu_tokio::uplink::{Usable, uplinks};
use quipu_tokio::{Connection, Endpoint, Incoming, PathEvent, RecvStream, SendStream};

use crate::{program, settings};

pub(crate) async fn run(
    options: &Arc<Options>,
    recorders: Option<RecorderFactory>,
) -> Result<(), Failure> {
    let other = options.preferred.map(|port| beside(options.listen, port)).transpose()?;
    let preferred = other.map(preferred).transpose()?.unwrap_or_default();
    let (server, config) = settings::server(options, preferred)?;
    let mut builder = Endpoint::server(server).config(config).listen(options.listen);
    if let Some(other) = other {
        builder = builder.listen(other);
    }
    let endpoint = program::bind_server(builder, recorders)?;
    while let Some(incoming) = endpoint.accept().await {
        if options.case == Case::Retry && !incoming.is_address_proved() && incoming.may_retry() {
            facts::tell("retry_sent", u8::from(incoming.retry()));
            continue;
        }
        facts::tell("address_proved", u8::from(incoming.is_address_proved()));
        tokio::spawn(serve(Arc::clone(options), incoming));
    }
    Ok(())
}

/// The same address at that port, or, if it is 0, at one that is free.
fn beside(listen: SocketAddr, port: u16) -> Result<SocketAddr, Failure> {
    let other = SocketAddr::new(listen.ip(), port);
    Ok(if port == 0 { UdpSocket::bind(other)?.local_addr()? } else { other })
}

/// How clients reach a server that listens at `address`: where that is unspecified, by the first
/// address of each family that leads beyond this host.
fn preferred(address: SocketAddr) -> Result<PreferredAddresses, Failure> {
    let own: Vec<IpAddr> = if address.ip().is_unspecified() {
        let leads_here =
            |usable| !matches!(usable, Usable::Loopback | Usable::LinkLocal | Usable::Down);
        let found = uplinks()?.into_iter().filter(|uplink| leads_here(uplink.usable));
        found.map(|uplink| uplink.address).collect()
    } else {
        vec![address.ip()]
    };
    let mut preferred = PreferredAddresses::default();
    for ip in own {
        match ip {
            IpAddr::V4(ip) => {
                preferred.ipv4.get_or_insert(SocketAddrV4::new(ip, address.port()));
            }
            IpAddr::V6(ip) => {
                preferred.ipv6.get_or_insert(SocketAddrV6::new(ip, address.port(), 0, 0));
            }
        }
    }
    let v4 = preferred.ipv4.map(SocketAddr::V4);
    let v6 = preferred.ipv6.map(SocketAddr::V6);
    for address in v4.into_iter().chain(v6) {
        facts::tell("preferred", address);
    }
    Ok(preferred)
}

async fn serve(options: Arc<Options>, incoming: Incoming) {
    let connection = match incoming.accept().await {
        Ok(connection) => connection,
        Err(error) => return facts::tell("refused", error),
    };
    let events = tokio::spawn(watch(connection.clone()));
    let mut answers = Vec::new();
    // Until the client closes.
    while let Ok((send, receive)) = connection.accept_bidirectional().await {
        answers.push(tokio::spawn(answer(Arc::clone(&options), send, receive)));
    }
    settings::tell(&connection);
    facts::tell("closed", connection.closed().await);
    for answer in answers {
        answer.abort();
    }
    events.abort();
}

async fn answer(options: Arc<Options>, mut send: SendStream, mut receive: RecvStream) {
    let answered: Result<(), Failure> = async {
        let request = receive.read_to_limit(MAX_REQUEST).await?;
        let file = files::answer(&options.www, &request)?;
        send.write_bytes(file.into()).await?;
        send.finish()?;
        send.delivered().await?;
        Ok(())
    }
    .await;
    if let Err(error) = answered {
        facts::tell("answer_failed", error);
        let _ = send.reset(1);
    }
}

/// Tells what happens to paths.
async fn watch(connection: Connection) {
    let mut events = connection.path_events();
    while let Some(event) = events.next().await {
        match event {
            PathEvent::Migrated(moved) => {
                facts::tell("migrated", format_args!("{} {}", moved.old.remote, moved.new.remote));
            }
            PathEvent::Up(path) => facts::tell("path_up", path.0),
            PathEvent::Gone(path) => facts::tell("path_gone", path.0),
            _ => {}
        }
    }
}
