//! The head of a request, as the browser would send it.

use http::{HeaderValue, Method, Request};
use quipu_http::priority::{PRIORITY, PriorityField};
use quipu_policy::Urgency;
use quipu_web::page::Object;
use quipu_web::scheme::Signal;

use crate::tree::priority;

/// What a signal says in the terms of RFC 9218.
pub(crate) fn urgency(signal: Signal) -> Urgency {
    Urgency { level: signal.urgency, incremental: signal.incremental }
}

/// Tells the server how urgent `request` is: by a place in the dependency tree, if it knows `tree`s, else by a field.
pub(crate) fn tell(request: &mut Request<()>, signal: Signal, tree: bool) {
    if tree {
        request.extensions_mut().insert(priority(signal.into()));
        return;
    }
    let field = PriorityField::from(urgency(signal));
    if !field.is_empty()
        && let Ok(value) = HeaderValue::try_from(field.to_string())
    {
        request.headers_mut().insert(PRIORITY, value);
    }
}

/// The head of the request for `object`, which is as urgent as `signal` [tells](tell).
///
/// # Errors
/// If the object's URL is none.
pub(crate) fn of(object: &Object, signal: Signal, tree: bool) -> Result<Request<()>, http::Error> {
    let body = object.request.body;
    let method = if body.is_zero() { Method::GET } else { Method::POST };
    let mut request = Request::builder()
        .method(method)
        .uri(object.url.split('#').next().unwrap_or_default())
        .header("user-agent", concat!("quipu/", env!("CARGO_PKG_VERSION")))
        .header("accept", "*/*");
    if !body.is_zero() {
        request = request.header("content-length", HeaderValue::from(body.0));
    }
    let mut request = request.body(())?;
    tell(&mut request, signal, tree);
    Ok(request)
}

#[cfg(test)]
mod tests {
    use quipu_base::Bytes;
    use quipu_web::page::{ObjectId, ObjectKind};

    use super::*;

    const URGENT: Signal = Signal {
        parent: quipu_base::StreamId(0),
        weight: 16,
        exclusive: false,
        urgency: 1,
        incremental: true,
    };

    #[test]
    fn a_head_has_what_the_browser_says_and_no_fragment() {
        let url = "https://a.example/b?c#d";
        let mut object = Object::new(ObjectId(0), url, ObjectKind::Image, Bytes(5));
        let head = of(&object, URGENT, false).expect("a head");
        assert_eq!(
            (head.method(), head.uri().to_string().as_str()),
            (&Method::GET, "https://a.example/b?c")
        );
        assert_eq!(head.headers()["priority"], "u=1, i");
        assert_eq!(head.headers().get("content-length"), None);
        object.request.body = Bytes(7);
        let head = of(&object, Signal { urgency: 3, incremental: false, ..URGENT }, false)
            .expect("a head");
        assert_eq!(
            (head.method(), &head.headers()["content-length"]),
            (&Method::POST, &"7".parse().expect("a value"))
        );
        assert_eq!(head.headers().get("priority"), None, "the defaults are not told");
        object.url = "https://a.example/ b".to_owned();
        assert!(of(&object, URGENT, false).is_err());
    }
}
