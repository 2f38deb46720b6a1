//! Transports as the papers' prototypes had them, by name, each value with its source.

use crate::choice::choices;

choices! {
    /// A transport by name: the values of fields that a scenario leaves out.
    Profile, "transport" {
        /// The project's conventions, on today's standards.
        #[default]
        Quipu = "quipu",
        /// The prototype of the framework paper and of MobileH2.
        MpQuic2018 = "mp-quic-2018",
        /// The stack of PW-PATS.
        Xquic = "xquic",
        /// The module of the ns-3 paper.
        Ns3Quic = "ns3-quic",
    }
}

/// What a profile has otherwise than [`Profile::Quipu`].
#[derive(Clone, Copy, Debug)]
pub struct ProfileValue {
    /// A field of `[transport]`, or `policies.congestion`.
    pub field: &'static str,
    /// Its value, as a scenario file has it.
    pub value: &'static str,
    /// Where it is from.
    pub source: &'static str,
}

/// Shorthand for the tables below.
const fn of(field: &'static str, value: &'static str, source: &'static str) -> ProfileValue {
    ProfileValue { field, value, source }
}

/// The field of the controller, which stands beside the policies in a scenario.
const CONGESTION: &str = "policies.congestion";

const MP_QUIC: &[ProfileValue] = &[
    of(
        CONGESTION,
        "\"olia:prr=true,exit=hybrid,beta=0.7\"",
        "congestion/olia_sender.go; renoBeta in cubic_sender.go",
    ),
    of("mtu_discovery", "false", "protocol/server_parameters.go, MaxPacketSize: one size for all"),
    of("initial_window", "32", "protocol/server_parameters.go, InitialCongestionWindow"),
    of(
        "pacing",
        "false",
        "congestion/olia_sender.go, TimeUntilSend: what the window lets go leaves at once",
    ),
    of("initial_rtt", "\"100ms\"", "congestion/rtt_stats.go, initialRTTus"),
    of("least_probe_timeout", "\"200ms\"", "ackhandler/sent_packet_handler.go, minRTOTimeout"),
    of(
        "loss_detection",
        "\"time\"",
        "ackhandler/sent_packet_handler.go, detectLostPackets: 9/8 of a round trip, no count of packets",
    ),
    of(
        "adaptive_reordering",
        "false",
        "ackhandler/sent_packet_handler.go, detectLostPackets: a lost packet is forgotten",
    ),
    of("undo_spurious", "false", "congestion/interface.go: no call tells of a loss that was none"),
    of(
        "stream_credit",
        "\"16MiB\"",
        "protocol/server_parameters.go, DefaultMaxReceiveStreamFlowControlWindowClient",
    ),
    of(
        "connection_credit",
        "\"24MiB\"",
        "protocol/server_parameters.go, DefaultMaxReceiveConnectionFlowControlWindowClient",
    ),
    of(
        "start",
        "\"paths-ready\"",
        "path 0 carries the handshake, then others the data, which need no validation",
    ),
];

const XQUIC: &[ProfileValue] = &[
    of(
        CONGESTION,
        "\"cubic:exit=loss\"",
        "default of the public code; xqc_cubic.c has no slow-start exit of its own",
    ),
    of("mtu_discovery", "false", "xqc_conn.c, default settings: enable_pmtud = 0"),
    of(
        "initial_window",
        "32",
        "the test programs' init_cwnd; XQC_CUBIC_INIT_WIN until it became 10",
    ),
    of("pacing", "false", "xqc_conn.c, default settings: pacing_on = 0"),
    of("initial_rtt", "\"250ms\"", "xqc_send_ctl.h, XQC_kInitialRtt_us"),
    of(
        "adaptive_reordering",
        "false",
        "default settings and test programs: spurious_loss_detect_on = 0",
    ),
    of("undo_spurious", "false", "the same"),
    of("skip_packet_numbers", "false", "xqc_conn.c: pkt_num is ctl_packet_number[pns]++"),
];

const NS3: &[ProfileValue] = &[
    of("mtu_discovery", "false", "quic-socket-base.cc, MaxPacketSize: one size for all"),
    of("initial_window", "2", "quic-socket-base.cc, m_initialCWnd = 2 * size"),
    of("pacing", "false", "of the module only BBR paces"),
    of("initial_rtt", "\"100ms\"", "quic-socket-base.cc, kDefaultInitialRtt"),
    of("ack_every", "3", "quic-socket-base.cc, MaybeQueueAck: once more than 2 packets came"),
    of("adaptive_reordering", "false", "quic-socket-base.cc, kReorderingThreshold: three packets"),
    of("undo_spurious", "false", "quic-congestion-ops.cc: nothing undoes a reduction"),
    of("skip_packet_numbers", "false", "quic-socket-base.cc: numbers are dense"),
];

impl Profile {
    /// All of them, in the order of [`Profile::NAMES`].
    pub const ALL: [Profile; 4] =
        [Profile::Quipu, Profile::MpQuic2018, Profile::Xquic, Profile::Ns3Quic];

    /// One line on what it stands for.
    pub fn about(self) -> &'static str {
        match self {
            Profile::Quipu => "our conventions on QUIC v1: RFC 9002 as recommended, paced",
            Profile::MpQuic2018 => {
                "mp-quic, a gQUIC stack in Go of 2017 and 2018: the framework paper and MobileH2"
            }
            Profile::Xquic => "XQUIC, a QUIC v1 stack in C with multipath: PW-PATS",
            Profile::Ns3Quic => {
                "the QUIC module of ns-3, of a draft before the standard: Paro et al."
            }
        }
    }

    /// Where its values can be looked up.
    pub fn source(self) -> &'static str {
        match self {
            Profile::Quipu => "see `quipu scenario fields`",
            Profile::MpQuic2018 => "github.com/qdeconinck/mp-quic, 582326c",
            Profile::Xquic => "github.com/alibaba/xquic, d67938d",
            Profile::Ns3Quic => "github.com/signetlabdei/quic-ns-3, 8edb05e",
        }
    }

    /// What of it is known and has no field, or differs in kind.
    pub fn not_modelled(self) -> &'static [&'static str] {
        match self {
            Profile::Quipu => &[],
            Profile::MpQuic2018 => &[
                "receive windows that begin with 32 kB a stream and 48 kB in all and double while they are used up within two round trips: here they have their greatest size from the start",
                "two tail loss probes, after 1.5 round trips and 100 ms, before the timeout of at least 200 ms: here probes follow from that timeout on",
                "slow start by whole packets, whatever their size",
                "ranks by squares of round trips that overflow in OLIA",
            ],
            Profile::Xquic => {
                &["acknowledgements every tenth packet where the test programs ask for it"]
            }
            Profile::Ns3Quic => &[
                "losses by the count of packets alone: here 9/8 of a round trip count too",
                "two tail loss probes before the timeout",
                "acknowledgements that name at most 20 gaps",
            ],
        }
    }

    /// What it has otherwise than [`Profile::Quipu`].
    pub fn values(self) -> &'static [ProfileValue] {
        match self {
            Profile::Quipu => &[],
            Profile::MpQuic2018 => MP_QUIC,
            Profile::Xquic => XQUIC,
            Profile::Ns3Quic => NS3,
        }
    }

    /// Its values of fields of `[transport]`, as the text of that table.
    pub(crate) fn transport_text(self) -> String {
        let values = self.values().iter().filter(|value| value.field != CONGESTION);
        values.map(|value| format!("{} = {}\n", value.field, value.value)).collect()
    }

    /// Its congestion controller.
    pub fn congestion(self) -> &'static str {
        let own = self.values().iter().find(|value| value.field == CONGESTION);
        own.map_or("newreno", |value| value.value.trim_matches('"'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use crate::experiment::Settings;
    use crate::published::hold;
    use quipu_base::{Bytes, Duration};

    fn scenario(text: &str) -> Scenario {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn what_is_left_out_is_the_profiles_and_what_is_given_stands() {
        let given = scenario("transport = { profile = 'mp-quic-2018', initial_window = 10 }");
        assert_eq!(given.transport.initial_window, 10);
        assert!(!given.transport.pacing);
        assert_eq!(given.transport.initial_rtt, Duration::from_millis(100));
        assert_eq!(given.transport.connection_credit, Bytes(24 << 20));
        // All is written out, and read again the same.
        assert_eq!(scenario(&given.to_toml().unwrap()), given);
    }

    #[test]
    fn a_change_of_the_profile_brings_its_values_but_where_others_were_chosen() {
        let chosen = scenario("transport = { initial_window = 20 }");
        let changed = chosen.with_field("transport.profile", "xquic").unwrap();
        assert_eq!(changed.transport.initial_window, 20);
        assert!(!changed.transport.pacing);
        let back = changed.with_field("profile", "quipu").unwrap();
        assert_eq!(back, chosen);
    }

    #[test]
    fn among_changes_the_profile_comes_first() {
        let text = "'transport.initial_window' = 10\n'transport.profile' = 'xquic'\n";
        let settings: Settings = toml::from_str(text).unwrap();
        let changed = settings.apply(&Scenario::default()).unwrap();
        assert_eq!(
            (changed.transport.profile, changed.transport.initial_window),
            (Profile::Xquic, 10)
        );
    }

    #[test]
    fn an_unknown_profile_is_refused_with_the_nearest_name() {
        let error = Scenario::default().with_field("transport.profile", "xquick").unwrap_err();
        assert!(error.to_string().contains("did you mean `xquic`?"), "{error}");
    }

    /// Holds the page of the docs to these values, or writes it if `QUIPU_RENEW` is set.
    #[test]
    fn the_published_page_has_these_profiles() {
        hold("transports.md", "<!-- quipu transports -->\n", &in_markdown());
    }

    fn in_markdown() -> String {
        let mut text = String::new();
        for profile in Profile::ALL {
            let (about, source) = (profile.about(), profile.source());
            text.push_str(&format!("\n## `{profile}`\n\n{about}. Source: {source}.\n"));
            if !profile.values().is_empty() {
                text.push_str("\n| otherwise than `quipu` | value | from |\n| --- | --- | --- |\n");
            }
            for ProfileValue { field, value, source } in profile.values() {
                text.push_str(&format!("| `{field}` | `{value}` | {source} |\n"));
            }
            if !profile.not_modelled().is_empty() {
                text.push_str("\nNot modelled:\n\n");
            }
            for line in profile.not_modelled() {
                text.push_str(&format!("- {line}\n"));
            }
        }
        text
    }
}
