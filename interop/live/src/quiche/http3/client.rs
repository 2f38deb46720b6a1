//! Sends requests: a task has the connection, and clients pass requests to it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use quiche::ConnectionId;
use quipu_interop_live::http3::{self, Answer, Ask};
use quipu_interop_live::{Failure, Options, Url};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::connection::{Command, Driver};
use crate::settings::{self, ID_BYTES};
use crate::sockets::Sockets;

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    http3::fetch(options, &mut Connector { options, session: Arc::default() }).await
}

/// The session of the last connection.
type Session = Arc<Mutex<Option<Vec<u8>>>>;

struct Connector<'a> {
    options: &'a Options,
    session: Session,
}

impl http3::Connector for Connector<'_> {
    type Client = Client;

    async fn connect(&mut self, url: &Url, is_early: bool) -> Result<Client, Failure> {
        let mut sockets = Sockets::new();
        let local = sockets.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).await?;
        let mut config = settings::client(self.options)?;
        let id = ConnectionId::from_vec(settings::random::<ID_BYTES>()?.to_vec());
        let remote = url.address()?;
        let mut transport = quiche::connect(Some(&url.host), &id, local, remote, &mut config)?;
        if is_early {
            let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).take();
            transport.set_session(&session.ok_or("there is no session for 0-RTT")?)?;
        }
        let (commands, received) = mpsc::unbounded_channel();
        let task = tokio::spawn(Driver::new(sockets, transport, received).run());
        let task = Arc::new(Mutex::new(Some(task)));
        Ok(Client { commands, task, session: Arc::clone(&self.session) })
    }
}

/// Runs the connection, and returns its session.
type Running = JoinHandle<Result<Option<Vec<u8>>, Failure>>;

#[derive(Clone)]
struct Client {
    commands: mpsc::UnboundedSender<Command>,
    task: Arc<Mutex<Option<Running>>>,
    session: Session,
}

impl Client {
    /// The task; the first who asks for it has it.
    fn take_task(&self) -> Option<Running> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl http3::Client for Client {
    async fn ask(&self, ask: Ask) -> Result<Answer, Failure> {
        let (answer, answered) = oneshot::channel();
        let _ = self.commands.send(Command::Ask(Box::new(ask), answer));
        match answered.await {
            Ok(answered) => {
                let (received, is_cancelled) = answered?;
                let head = received.head.ok_or("a response has no head")?;
                let trailers = received.trailers.as_deref().filter(|_| !is_cancelled);
                let trailers = trailers.map(crate::convert::to_map).transpose()?;
                let body = Bytes::from(received.body);
                let response = crate::convert::to_response(&head, body)?;
                Ok(Answer { response, trailers })
            }
            // The task is over: what ended it.
            Err(_) => match self.take_task() {
                Some(task) => Err(task.await?.err().unwrap_or("the connection is over".into())),
                None => Err("the connection is over".into()),
            },
        }
    }

    async fn close(&self, needs_ticket: bool) -> Result<(), Failure> {
        let _ = self.commands.send(Command::Close { needs_ticket });
        if let Some(task) = self.take_task() {
            let session = task.await??;
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
        }
        Ok(())
    }
}
