//! What a server serves, chosen when it starts.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use crate::body::Body;
use crate::files::Files;
use crate::replay::Replay;
use crate::warm_up;

/// One of the services of this crate. It is always ready.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Site {
    /// The files of a folder.
    Files(Files),
    /// A recorded page, and what [warms a connection up](warm_up).
    Replay(Replay),
}

impl<B> Service<Request<B>> for Site
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self {
            Site::Files(files) => files.call(request),
            Site::Replay(_) if request.uri().path() == warm_up::PATH => {
                Box::pin(async { Ok(warm_up::response()) })
            }
            Site::Replay(replay) => replay.call(request),
        }
    }
}
