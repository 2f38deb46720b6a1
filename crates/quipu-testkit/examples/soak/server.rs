//! The server: it takes what each stream brings, checks it, and answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quipu_policy::Registry;
use quipu_quic::endpoint::{ServerConfig, TokenConfig};
use quipu_quic::tls::rustls::{provider, token_key};
use quipu_tokio::identity::{Pin, self_signed};
use quipu_tokio::{Connection, Endpoint, Incoming, RecvStream, SendStream, policies, tokio};

use crate::noise::{Noise, Request};
use crate::world::{ALPN, Failure, NAME, transport};

/// The first byte of an answer: whether what came was right.
pub(crate) const RIGHT: u8 = 1;
pub(crate) const WRONG: u8 = 0;

/// A server on 127.0.0.1, its address, and the pin of its certificate.
pub(crate) fn listen(
    noise: &Arc<Noise>,
    idle: Duration,
) -> Result<(Endpoint, SocketAddr, Pin), Failure> {
    let (tls, pin) = self_signed(NAME, &[ALPN])?;
    let policies = policies(&Registry::builtin(), "")?;
    let mut config = ServerConfig::new(Arc::new(tls), transport(idle, false), policies);
    // Strangers who never answer take places: others prove their addresses then.
    config.tokens = TokenConfig::with_key(token_key(&provider(), &[7; 32])?);
    config.admission.max_per_source = 100_000;
    let endpoint = Endpoint::server(config).listen("127.0.0.1:0".parse()?).bind()?;
    let address = endpoint.local_addresses()[0];
    tokio::spawn(accept_all(endpoint.clone(), Arc::clone(noise)));
    Ok((endpoint, address, pin))
}

async fn accept_all(endpoint: Endpoint, noise: Arc<Noise>) {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(serve(incoming, Arc::clone(&noise)));
    }
}

/// A stranger never gets beyond the handshake.
async fn serve(incoming: Incoming, noise: Arc<Noise>) {
    let Ok(connection) = incoming.accept().await else { return };
    loop {
        let Ok((send, receive)) = connection.accept_bidirectional().await else { return };
        tokio::spawn(answer(connection.clone(), send, receive, Arc::clone(&noise)));
    }
}

/// A hostile client's stream ends anyhow.
async fn answer(
    _held: Connection,
    mut send: SendStream,
    mut receive: RecvStream,
    noise: Arc<Noise>,
) -> Option<()> {
    let mut head = [0; Request::LENGTH];
    let mut filled = 0;
    while filled < head.len() {
        filled += receive.read(&mut head[filled..]).await.ok()??;
    }
    let request = Request::parse(&head)?;
    let right = is_piece(&mut receive, noise.piece(request.key, request.up)).await?;
    let mut answer = vec![if right { RIGHT } else { WRONG }];
    answer.extend_from_slice(noise.piece(request.back(), request.down));
    send.write_bytes(answer.into()).await.ok()?;
    send.finish().ok()
}

/// True if the rest of a stream is `expected`; `None` if it does not come to an end.
async fn is_piece(receive: &mut RecvStream, expected: &[u8]) -> Option<bool> {
    let (mut buffer, mut at, mut right) = (vec![0; 16 << 10], 0, true);
    while let Some(read) = receive.read(&mut buffer).await.ok()? {
        right &= expected.get(at..at + read) == buffer.get(..read);
        at += read;
    }
    Some(right && at == expected.len())
}
