use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::wire::Version;

fn connection_id(lengths: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = ConnectionId> {
    vec(any::<u8>(), lengths).prop_map(|bytes| ConnectionId::new(&bytes).unwrap())
}

fn token() -> impl Strategy<Value = ResetToken> {
    any::<[u8; 16]>().prop_map(ResetToken::new)
}

fn integer() -> impl Strategy<Value = u64> {
    (0u32..=62, 0..=varint::MAX).prop_map(|(bits, value)| value & ((1 << bits) - 1))
}

fn preferred_address() -> impl Strategy<Value = PreferredAddress> {
    let ipv4 = (1u32.., any::<u16>()).prop_map(|(ip, port)| SocketAddrV4::new(ip.into(), port));
    let ipv6 =
        (1u128.., any::<u16>()).prop_map(|(ip, port)| SocketAddrV6::new(ip.into(), port, 0, 0));
    (of(ipv4), of(ipv6), connection_id(1..=20), token()).prop_map(
        |(ipv4, ipv6, connection_id, reset_token)| PreferredAddress {
            ipv4,
            ipv6,
            connection_id,
            reset_token,
        },
    )
}

fn version_information() -> impl Strategy<Value = VersionInformation> {
    let version = || (1u32..).prop_map(Version);
    (version(), vec(version(), 0..6))
        .prop_map(|(chosen, available)| VersionInformation { chosen, available: available.into() })
}

fn parameters() -> impl Strategy<Value = TransportParameters> {
    let from_server = (
        of(connection_id(0..=20)),
        of(token()),
        of(preferred_address()),
        of(connection_id(0..=20)),
    );
    let limits = vec(integer(), 5);
    let small = (0..=MAX_STREAMS, 0..=MAX_STREAMS, 0u8..=20, 0u64..1 << 14, any::<bool>());
    let other = (
        1200..=varint::MAX,
        2..=varint::MAX,
        of(connection_id(0..=20)),
        of(any::<u32>().prop_map(PathId)),
        any::<bool>(),
        of(version_information()),
        integer(),
        of(integer()),
        any::<bool>(),
    );
    (from_server, limits, small, other).prop_map(|(server, limits, small, other)| {
        TransportParameters {
            original_destination_connection_id: server.0,
            max_idle_timeout: Duration::from_millis(limits[0].min(1 << 40)),
            stateless_reset_token: server.1,
            max_udp_payload_size: other.0,
            initial_max_data: Bytes(limits[1]),
            initial_max_stream_data_bidi_local: Bytes(limits[2]),
            initial_max_stream_data_bidi_remote: Bytes(limits[3]),
            initial_max_stream_data_uni: Bytes(limits[4]),
            initial_max_streams_bidi: small.0,
            initial_max_streams_uni: small.1,
            ack_delay_exponent: small.2,
            max_ack_delay: Duration::from_millis(small.3),
            disable_active_migration: small.4,
            preferred_address: server.2,
            active_connection_id_limit: other.1,
            initial_source_connection_id: other.2,
            retry_source_connection_id: server.3,
            max_datagram_frame_size: other.6,
            grease_quic_bit: other.8,
            min_ack_delay: other.7.map(|delay| delay.min(small.3 * 1_000)),
            initial_max_path_id: other.3,
            ack_return_paths: other.4,
            version_information: other.5,
            reserved: None,
        }
    })
}

/// One parameter with these bytes as value.
fn parameter(id: ParameterId, value: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; 20 + value.len()];
    let mut writer = Writer::new(&mut buffer);
    writer.put_varint(id.0).unwrap();
    writer.put_length_prefixed(value).unwrap();
    writer.written().to_vec()
}

fn integer_parameter(id: ParameterId, value: u64) -> Vec<u8> {
    let mut buffer = [0; 8];
    let mut writer = Writer::new(&mut buffer);
    writer.put_varint(value).unwrap();
    parameter(id, writer.written())
}

#[test]
fn absent_parameters_mean_the_defaults_of_the_rfc() {
    let read = TransportParameters::read(&[], Role::Client).unwrap();
    assert_eq!(read, TransportParameters::default());
    assert_eq!(read.max_udp_payload_size, 65_527);
    assert_eq!(read.ack_delay_exponent, 3);
    assert_eq!(read.max_ack_delay, Duration::from_millis(25));
    assert_eq!(read.active_connection_id_limit, 2);
    assert_eq!(TransportParameters::default().encode(), []);
}

#[test]
fn values_out_of_range_are_refused_and_their_neighbours_taken() {
    for (id, good, bad) in [
        (ParameterId::MAX_UDP_PAYLOAD_SIZE, 1200, 1199),
        (ParameterId::INITIAL_MAX_STREAMS_BIDI, 1 << 60, (1 << 60) + 1),
        (ParameterId::INITIAL_MAX_STREAMS_UNI, 1 << 60, (1 << 60) + 1),
        (ParameterId::ACK_DELAY_EXPONENT, 20, 21),
        (ParameterId::MAX_ACK_DELAY, (1 << 14) - 1, 1 << 14),
        (ParameterId::ACTIVE_CONNECTION_ID_LIMIT, 2, 1),
        (ParameterId::INITIAL_MAX_PATH_ID, u64::from(u32::MAX), 1 << 32),
    ] {
        let good = TransportParameters::read(&integer_parameter(id, good), Role::Client);
        assert!(good.is_ok(), "{id}");
        let error = TransportParameters::read(&integer_parameter(id, bad), Role::Client);
        assert!(
            matches!(error, Err(ParameterError::Value { id: named, value, .. })
                if named == id && value == bad),
            "{id}: {error:?}"
        );
    }
}

#[test]
fn a_reserved_parameter_is_written_and_ignored() {
    for length in 0..=7 {
        let id = ParameterId(31 * 1_000 + 27);
        let reserved = ReservedParameter { id, value: [7; 7], length, version: 0x0a0a_0a0a };
        let plain = TransportParameters { max_datagram_frame_size: 9, ..Default::default() };
        let with = TransportParameters { reserved: Some(reserved), ..plain.clone() };
        assert_eq!(with.encode().len(), plain.encode().len() + 4 + 1 + length);
        assert_eq!(TransportParameters::read(&with.encode(), Role::Client), Ok(plain));
    }
}

#[test]
fn the_least_delay_of_acknowledgements_is_at_most_the_greatest() {
    for (least, most, good) in
        [(25_000, 25, true), (25_001, 25, false), (0, 0, true), (1, 0, false)]
    {
        // In either order.
        let least = integer_parameter(ParameterId::MIN_ACK_DELAY, least);
        let most = integer_parameter(ParameterId::MAX_ACK_DELAY, most);
        for list in [[&least[..], &most].concat(), [&most[..], &least].concat()] {
            assert_eq!(TransportParameters::read(&list, Role::Client).is_ok(), good);
        }
    }
}

#[test]
fn a_parameter_that_is_there_twice_is_refused_even_if_unknown() {
    for id in [ParameterId::INITIAL_MAX_DATA, ParameterId(0x1b), ParameterId(0x4000)] {
        let twice = integer_parameter(id, 5).repeat(2);
        let error = TransportParameters::read(&twice, Role::Server);
        assert_eq!(error, Err(ParameterError::Duplicate(id)));
    }
}

#[test]
fn unknown_parameters_are_ignored_up_to_a_bound() {
    let list = |count: u64| -> Vec<u8> {
        (0..count).flat_map(|index| parameter(ParameterId(0x1000 + index), b"any")).collect()
    };
    let most = MAX_PARAMETERS as u64;
    let read = TransportParameters::read(&list(most), Role::Client);
    assert_eq!(read, Ok(TransportParameters::default()));
    let read = TransportParameters::read(&list(most + 1), Role::Client);
    assert_eq!(read, Err(ParameterError::TooMany));
}

#[test]
fn a_client_must_not_send_what_only_servers_send() {
    for id in [
        ParameterId::ORIGINAL_DESTINATION_CONNECTION_ID,
        ParameterId::STATELESS_RESET_TOKEN,
        ParameterId::PREFERRED_ADDRESS,
        ParameterId::RETRY_SOURCE_CONNECTION_ID,
    ] {
        let error = TransportParameters::read(&parameter(id, &[0; 16]), Role::Client);
        assert_eq!(error, Err(ParameterError::FromClient(id)));
    }
}

#[test]
fn bytes_behind_a_value_and_values_cut_short_are_refused() {
    let id = ParameterId::INITIAL_MAX_DATA;
    let long = TransportParameters::read(&parameter(id, &[1, 2]), Role::Client);
    assert_eq!(long, Err(ParameterError::TrailingBytes(id)));
    let short = TransportParameters::read(&parameter(id, &[0x40]), Role::Client);
    assert_eq!(short, Err(ParameterError::EndedEarly));
    for id in [ParameterId::DISABLE_ACTIVE_MIGRATION, ParameterId::GREASE_QUIC_BIT] {
        let flag = TransportParameters::read(&parameter(id, &[1]), Role::Client);
        assert_eq!(flag, Err(ParameterError::TrailingBytes(id)));
    }
    let long = parameter(ParameterId::INITIAL_SOURCE_CONNECTION_ID, &[0; 21]);
    assert!(TransportParameters::read(&long, Role::Client).is_err());
}

/// <https://www.rfc-editor.org/rfc/rfc9368#section-4>
#[test]
fn version_information_that_cannot_be_is_refused() {
    let read = |words: &[u32], cut: usize, from| {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.truncate(bytes.len() - cut);
        let read =
            TransportParameters::read(&parameter(ParameterId::VERSION_INFORMATION, &bytes), from);
        read.map(|parameters| parameters.version_information.unwrap())
    };
    let both = read(&[1, 0x6b33_43cf, 1], 0, Role::Client).unwrap();
    assert_eq!(both.chosen, Version::V1);
    assert_eq!(both.available[..], [Version::V2, Version::V1]);
    for (words, cut) in [
        (&[][..], 0),
        (&[1][..], 1),
        (&[1, 1][..], 1),
        (&[0, 1][..], 0),
        (&[1, 1, 0][..], 0),
        (&[1, 2][..], 0),
    ] {
        let error = read(words, cut, Role::Client);
        assert!(matches!(error, Err(ParameterError::VersionInformation(_))), "{words:?} {error:?}");
    }
    // A server may be about to give up the version that it chose.
    assert!(read(&[1], 0, Role::Server).unwrap().available.is_empty());
    // A long list is cut, but not so that the versions that matter are lost.
    let many: Vec<u32> = std::iter::once(499).chain(2..500).chain([1, 1, 499]).collect();
    for role in [Role::Client, Role::Server] {
        let available = read(&many, 0, role).unwrap().available;
        assert_eq!(available[32..], [Version(499), Version::V1]);
    }
}

#[test]
fn every_error_becomes_a_transport_parameter_error() {
    let error = TransportError::from(ParameterError::Duplicate(ParameterId::MAX_ACK_DELAY));
    assert_eq!(error.code, ErrorCode::TRANSPORT_PARAMETER_ERROR);
    assert_eq!(error.reason, "max_ack_delay: present twice, expected once");
}

proptest! {
    #[test]
    fn encoded_parameters_read_back(parameters in parameters()) {
        let bytes = parameters.encode();
        prop_assert_eq!(TransportParameters::read(&bytes, Role::Server), Ok(parameters));
    }

    #[test]
    fn any_bytes_read_without_panic(
        list in vec((prop_oneof![0u64..0x12, select(vec![0x20, 0x3e, 0xff04_de1b]), integer()], vec(any::<u8>(), 0..50)), 0..9),
        cut in 0usize..9,
    ) {
        let mut bytes: Vec<u8> =
            list.iter().flat_map(|(id, value)| parameter(ParameterId(*id), value)).collect();
        bytes.truncate(bytes.len().saturating_sub(cut));
        for role in [Role::Client, Role::Server] {
            if let Ok(parameters) = TransportParameters::read(&bytes, role) {
                let again = TransportParameters::read(&parameters.encode(), Role::Server);
                prop_assert_eq!(again, Ok(parameters));
            }
        }
    }
}
