//! What the transport of a scenario means to the ends of a connection.

use quipu_base::{Bytes, Duration, Role};
use quipu_quic::{Burst, ConfigError, Mtu, RecoveryRules, TransportConfig};

use super::wire;
use quipu_scenario::{HttpVersion, LossDetection, Transport};

/// The settings of one end of a connection that carries `http` over at most `paths` paths.
///
/// # Errors
/// If a value is beyond what the engine takes, which those of a scenario that was checked are not.
pub fn transport_config(
    transport: &Transport,
    http: HttpVersion,
    paths: u32,
    role: Role,
) -> Result<TransportConfig, ConfigError> {
    let [stream_window, connection_window] = wire::credit(transport, http);
    let config = TransportConfig {
        // Ranges were checked with the scenario; a value beyond them is refused below.
        max_udp_payload: u16::try_from(transport.udp_payload.0).unwrap_or(u16::MAX),
        initial_udp_payload: u16::try_from(transport.initial_udp_payload.0).unwrap_or(u16::MAX),
        mtu: if transport.mtu_discovery { Mtu::default() } else { Mtu::Fixed },
        pacing_percent: transport.pacing.then_some((transport.pacing_factor * 100.0 + 0.5) as u32),
        burst: Burst {
            packets: transport.pacing_burst_packets,
            time: transport.pacing_burst_time,
            limit: transport.pacing_burst_limit,
        },
        recovery: RecoveryRules {
            initial_rtt: transport.initial_rtt,
            least_probe_timeout: transport.least_probe_timeout,
            packet_threshold: match transport.loss_detection {
                LossDetection::PacketsOrTime => RecoveryRules::default().packet_threshold,
                LossDetection::Time => None,
            },
            adapts_to_reordering: transport.adaptive_reordering,
            undoes_spurious_reductions: transport.undo_spurious,
        },
        skips_packet_numbers: transport.skip_packet_numbers,
        ecn: transport.ecn,
        ack_every: transport.ack_every,
        max_ack_delay: transport.max_ack_delay,
        ack_frequency: None,
        grease: false,
        stream_window,
        connection_window,
        // Nobody in a scenario means harm, and pages have over a thousand objects.
        max_streams: 4_096,
        // A page is in memory anyway, and policies see all that a server has to send.
        send_buffer: Bytes::MAX,
        max_unsent: Bytes::MAX,
        // A server may think for longer than any usual idle timeout; the run has its own limit.
        idle_timeout: Duration::ZERO,
        // No network of a scenario translates addresses.
        probe_silence: false,
        // Both ends of a scenario find out by themselves, as the stacks of papers do.
        warns_of_broken_paths: false,
        max_paths: paths,
        ack_return_paths: if role.is_client() {
            transport.return_paths.at_client()
        } else {
            transport.return_paths.at_server()
        },
        ..TransportConfig::default()
    };
    config.validate()?;
    Ok(config)
}
