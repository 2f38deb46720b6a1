//! Configurations and ends of quinn and noq, whose interfaces are the same.

/// Functions for the configurations and ends of `$library`, over which `h3` runs by `$adapter`. Its kind of BBR is `$bbr`;
/// `$more` is what is set beside.
macro_rules! library {
    ($library:ident, $adapter:path, $bbr:ident, $more:expr) => {
        /// The configuration of a client that knows the server by its pin.
        pub(super) fn client_config(
            pin: quipu_tokio::identity::Pin,
            congestion: quipu_scenario::QuicCongestion,
        ) -> Result<$library::ClientConfig, $crate::Failure> {
            let tls = quipu_tokio::identity::pinned_config(pin, &[$crate::http3::ALPN])?;
            let tls = $library::crypto::rustls::QuicClientConfig::try_from(tls)?;
            let mut config = $library::ClientConfig::new(std::sync::Arc::new(tls));
            config.transport_config(transport(congestion));
            Ok(config)
        }

        /// The configuration of a server that shows these certificates.
        pub(super) fn server_config(
            certificates: std::sync::Arc<quipu_serve::Certificates>,
            congestion: quipu_scenario::QuicCongestion,
        ) -> Result<$library::ServerConfig, $crate::Failure> {
            let tls = quipu_tokio::identity::server_config(certificates, &[$crate::http3::ALPN])?;
            let tls = $library::crypto::rustls::QuicServerConfig::try_from(tls)?;
            let mut config = $library::ServerConfig::with_crypto(std::sync::Arc::new(tls));
            config.transport_config(transport(congestion));
            Ok(config)
        }

        fn transport(
            congestion: quipu_scenario::QuicCongestion,
        ) -> std::sync::Arc<$library::TransportConfig> {
            use quipu_scenario::QuicCongestion;
            use $library::congestion::{CubicConfig, NewRenoConfig, $bbr};
            let mut config = $library::TransportConfig::default();
            let controller: std::sync::Arc<
                dyn $library::congestion::ControllerFactory + Send + Sync,
            > = match congestion {
                QuicCongestion::Cubic => std::sync::Arc::new(CubicConfig::default()),
                QuicCongestion::Newreno => std::sync::Arc::new(NewRenoConfig::default()),
                QuicCongestion::Bbr => std::sync::Arc::new($bbr::default()),
            };
            config.congestion_controller_factory(controller);
            let more: fn(&mut $library::TransportConfig) = $more;
            more(&mut config);
            std::sync::Arc::new(config)
        }

        /// Listens; the future serves all connections.
        fn serve(
            at: quipu_cli::foreign::Listening,
        ) -> Result<quipu_live::foreign::Doing<'static, ()>, $crate::Failure> {
            use $adapter as Adapter;
            let config = server_config(std::sync::Arc::clone(&at.certificates), at.congestion)?;
            let endpoint = $library::Endpoint::server(config, at.address)?;
            Ok(Box::pin(async move {
                while let Some(incoming) = endpoint.accept().await {
                    let service = at.service.clone();
                    tokio::spawn(async move {
                        let client = incoming.remote_address();
                        let Ok(connection) = incoming.await else { return };
                        $crate::http3::serve(Adapter::new(connection), client, service).await;
                    });
                }
                Ok(())
            }))
        }

        /// HTTP/3 over a connection, which is closed when nobody holds the client any more.
        async fn client(
            connection: $library::Connection,
        ) -> Result<std::sync::Arc<dyn quipu_live::foreign::ForeignClient>, $crate::Failure> {
            use $adapter as Adapter;
            let closed = connection.clone();
            let code = $library::VarInt::from_u32($crate::http3::NO_ERROR);
            let close = move || closed.close(code, b"");
            let client = $crate::http3::client(Adapter::new(connection), Box::new(close)).await?;
            Ok(std::sync::Arc::from(client))
        }
    };
}

pub(crate) use library;

/// The name by which a server is called in TLS; it is known by its pin.
pub(crate) const SERVER_NAME: &str = "quipu.invalid";
