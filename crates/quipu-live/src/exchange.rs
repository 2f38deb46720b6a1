//! One request and its response.

use http::Request;
use quipu_base::Instant;
use quipu_policy::Urgency;
use quipu_web::page::ObjectId;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::client::{Client, Exchange};
use crate::clock::Clock;
use crate::error::ExchangeError;

/// What is to be asked for.
pub(crate) struct Ask {
    pub(crate) object: ObjectId,
    pub(crate) head: Request<()>,
    /// Bytes of the request's body.
    pub(crate) body: u64,
    /// How urgent it is.
    pub(crate) first_urgency: Urgency,
    /// Another urgency than that of the request, once there is one.
    pub(crate) urgency: watch::Receiver<Option<Urgency>>,
}

/// What came of a request, and when.
pub(crate) struct News {
    pub(crate) object: ObjectId,
    pub(crate) at: Instant,
    pub(crate) what: What,
}

pub(crate) enum What {
    /// The head of the response, with its status.
    Head(u16),
    /// So many bytes of the body, from its start.
    Body(u64),
    /// The response is complete.
    End,
    Failed(ExchangeError),
}

/// Tells what comes of requests.
#[derive(Clone)]
pub(crate) struct Teller {
    clock: Clock,
    to: mpsc::Sender<News>,
}

impl Teller {
    pub(crate) fn new(clock: Clock, to: mpsc::Sender<News>) -> Teller {
        Teller { clock, to }
    }

    async fn tell(&self, object: ObjectId, what: What) {
        let at = self.clock.now();
        // Nobody listens when the page is there.
        let _ = self.to.send(News { object, at, what }).await;
    }
}

/// Sends requests in their order, as the server allows, until all that were asked for are sent; their
/// responses are read at the same time.
pub(crate) async fn send_all(
    client: Client,
    mut asks: mpsc::UnboundedReceiver<Ask>,
    teller: Teller,
) {
    let mut responses = JoinSet::new();
    while let Some(ask) = asks.recv().await {
        let sent = client.request(ask.head.clone(), ask.body, ask.first_urgency).await;
        let teller = teller.clone();
        match sent {
            Ok(exchange) => drop(responses.spawn(exchange_one(exchange, ask, teller))),
            Err(error) => teller.tell(ask.object, What::Failed(error)).await,
        }
        // Those that are over are forgotten.
        while responses.try_join_next().is_some() {}
    }
    while responses.join_next().await.is_some() {}
}

async fn exchange_one(mut exchange: Exchange, mut ask: Ask, teller: Teller) {
    let what = match receive(&mut exchange, &mut ask, &teller).await {
        Ok(()) => What::End,
        Err(error) => What::Failed(error),
    };
    teller.tell(ask.object, what).await;
}

async fn receive(
    exchange: &mut Exchange,
    ask: &mut Ask,
    teller: &Teller,
) -> Result<(), ExchangeError> {
    let status = exchange.response(ask.body, &mut ask.urgency).await?;
    teller.tell(ask.object, What::Head(status)).await;
    let mut received = 0;
    loop {
        tokio::select! {
            bytes = exchange.data() => {
                let Some(bytes) = bytes? else { return Ok(()) };
                received += bytes;
                teller.tell(ask.object, What::Body(received)).await;
            }
            Ok(()) = ask.urgency.changed() => {
                let urgency = *ask.urgency.borrow_and_update();
                if let Some(urgency) = urgency {
                    exchange.update_priority(urgency)?;
                }
            }
        }
    }
}
