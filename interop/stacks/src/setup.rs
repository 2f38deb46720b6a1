//! The configurations of quinn and noq, whose interfaces are the same.

/// Functions for the configurations of `$library`, whose kind of BBR is `$bbr`. `$more` is what is set beside.
macro_rules! configurations {
    ($library:ident, $bbr:ident, $more:expr) => {
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
    };
}

pub(crate) use configurations;

/// The name by which a server is called in TLS; it is known by its pin.
pub(crate) const SERVER_NAME: &str = "quipu.invalid";
