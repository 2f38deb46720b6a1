//! Spans and events of `tracing`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use quipu_policy::PathStatus;
use quipu_tokio::uplink::uplinks;
use quipu_tokio::{PathEvent, TransportConfig, Via};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::setup::{NAME, Setup, limited};

type Fields = BTreeMap<String, String>;

/// An event, with the spans that it is in from the outermost, each with its name.
#[derive(Clone, Debug)]
struct Told {
    message: String,
    level: tracing::Level,
    fields: Fields,
    spans: Vec<(String, Fields)>,
}

impl Told {
    /// The role of its connection.
    fn role(&self) -> &str {
        self.spans.last().map_or("", |(_, fields)| &fields["role"])
    }
}

/// Collects what is told under the target of the crate.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Told>>>);

impl Collector {
    /// Of one end.
    fn of(&self, role: &str) -> Vec<Told> {
        let told = self.0.lock().unwrap();
        told.iter().filter(|told| told.role() == role).cloned().collect()
    }
}

struct Visitor<'a>(&'a mut Fields);

impl tracing::field::Visit for Visitor<'_> {
    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl<S: tracing::Subscriber + for<'s> LookupSpan<'s>> tracing_subscriber::Layer<S> for Collector {
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        id: &tracing::span::Id,
        context: Context<'_, S>,
    ) {
        let mut fields = Fields::new();
        attributes.record(&mut Visitor(&mut fields));
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(
        &self,
        id: &tracing::span::Id,
        values: &tracing::span::Record<'_>,
        context: Context<'_, S>,
    ) {
        let span = context.span(id).unwrap();
        values.record(&mut Visitor(span.extensions_mut().get_mut().unwrap()));
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        if event.metadata().target() != "quipu_tokio" {
            return;
        }
        let mut fields = Fields::new();
        event.record(&mut Visitor(&mut fields));
        let spans = context.event_scope(event).unwrap().from_root().map(|span| {
            let fields = span.extensions().get::<Fields>().unwrap().clone();
            (span.name().to_owned(), fields)
        });
        self.0.lock().unwrap().push(Told {
            message: fields.remove("message").unwrap(),
            level: *event.metadata().level(),
            spans: spans.collect(),
            fields,
        });
    }
}

#[tokio::test]
async fn what_happens_to_a_connection_and_its_paths_is_told_in_its_span() {
    let collector = Collector::default();
    let subscriber = tracing_subscriber::registry().with(collector.clone());
    // Of this thread, which runs all tasks of this test.
    let _guard = tracing::subscriber::set_default(subscriber);
    limited(async {
        let setup = Setup::with(TransportConfig { max_paths: 4, ..TransportConfig::default() });
        let pair = setup.connect_by(&["127.0.0.3"]).await;
        let server = pair.server.local_addresses()[0].to_string();
        let known = uplinks().unwrap();
        let loopback = known.iter().find(|uplink| uplink.address.to_string() == "127.0.0.1");
        let loopback = loopback.and_then(|uplink| uplink.interface.clone()).unwrap();
        let mut events = pair.here.path_events();
        let mut there = pair.there.path_events();
        let path = pair.here.add_path(Via::Interface(loopback.clone())).await.unwrap();
        pair.here.set_path_status(path, PathStatus::Backup).unwrap();
        while there.next().await != Some(PathEvent::Status(path, PathStatus::Backup)) {}
        pair.here.remove_path(path).unwrap();
        while events.next().await != Some(PathEvent::Gone(path)) {}
        while there.next().await != Some(PathEvent::Gone(path)) {}
        pair.here.close(7, b"done");
        pair.there.closed().await;
        pair.client.wait_idle().await;

        let client = collector.of("client");
        let spans = &client[0].spans;
        assert_eq!(spans.len(), 2, "{spans:?}");
        let (endpoint, connection) = (&spans[0], &spans[1]);
        assert_eq!((&endpoint.0[..], &endpoint.1["role"][..]), ("endpoint", "client"));
        assert!(endpoint.1["local"].starts_with("127.0.0.3:"), "{endpoint:?}");
        assert_eq!((&connection.0[..], &connection.1["peer"]), ("connection", &server));
        let id = &connection.1["id"];
        assert!(id.len() >= 16 && id.chars().all(|sign| sign.is_ascii_hexdigit()), "{id}");
        assert!(client.iter().all(|told| &told.spans == spans), "one span has all: {client:#?}");

        let find = |told: &[Told], message: &str| {
            let found = told.iter().find(|told| told.message == message);
            found.unwrap_or_else(|| panic!("no {message:?} in {told:#?}")).clone()
        };
        assert_eq!(find(&client, "connected").level, tracing::Level::INFO);
        assert_eq!(find(&client, "confirmed").level, tracing::Level::DEBUG);
        let of_path: Vec<_> =
            client.iter().filter(|told| told.fields.contains_key("path")).collect();
        let of_path = of_path.iter().filter(|told| told.fields["path"] == "1");
        let messages: Vec<&str> = of_path.clone().map(|told| &told.message[..]).collect();
        assert_eq!(messages.first(), Some(&"path up"), "{messages:?}");
        assert_eq!(messages.last(), Some(&"path gone"), "{messages:?}");
        let up = of_path.clone().next().unwrap();
        assert_eq!(up.level, tracing::Level::DEBUG);
        assert!(up.fields["local"].starts_with("127.0.0.1:"), "{up:?}");
        assert_eq!(up.fields["remote"], server);
        assert_eq!(up.fields["interface"], loopback);
        let closed = find(&client, "closed");
        assert!(closed.fields["reason"].contains('7'), "{closed:?}");

        // Both ends name the connection alike.
        let accepted = collector.of("server");
        let connection = &accepted[0].spans[1];
        assert_eq!(&connection.1["id"], id);
        assert!(connection.1["peer"].starts_with("127.0.0.3:"), "{connection:?}");
        let status = find(&accepted, "path status of the peer");
        assert_eq!(status.fields["status"], "Backup");
        assert_eq!(find(&accepted, "closed").level, tracing::Level::INFO);
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_is_dropped_and_a_route_that_is_refused_are_told() {
    let collector = Collector::default();
    let subscriber = tracing_subscriber::registry().with(collector.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    limited(async {
        let setup = Setup::new();
        let pair = setup.connect().await;
        drop(pair.here);
        pair.there.closed().await;
        let dropped = collector.of("client").pop().unwrap();
        assert_eq!(dropped.message, "dropped");
        // The loopback interface alone leads to no other host.
        let client = quipu_tokio::Endpoint::client();
        let client = client.via(Via::Address("127.0.0.1".parse().unwrap())).bind().unwrap();
        let mut config = setup.client.clone();
        config.handshake_timeout = quipu_base::Duration::from_millis(100);
        let failed = client.connect(&config, "192.0.2.1:9".parse().unwrap(), NAME).await;
        assert!(failed.is_err());
        let told = collector.0.lock().unwrap().clone();
        let refused = told.iter().find(|told| told.message == "datagrams refused");
        let refused = refused.unwrap_or_else(|| panic!("{told:#?}"));
        assert_eq!(refused.fields["remote"], "192.0.2.1:9");
        assert_eq!(refused.spans.len(), 1, "it is the endpoint's");
    })
    .await;
}
