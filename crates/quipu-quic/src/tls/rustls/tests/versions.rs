//! QUIC v2, and a server that goes on in another version than that of the client's first flight.

use super::*;
use crate::tls::rustls::labels::{self, LevelSecrets};
use crate::tls::{PacketKeyPair, protection};
use crate::wire::header::{Packet, ShortHeader};
use ::rustls::crypto::tls13::OkmBlock;

const DCID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

/// <https://www.rfc-editor.org/rfc/rfc9369#appendix-A.2>
#[test]
fn the_client_initial_of_rfc_9369_a2_is_sealed() {
    let dcid = ConnectionId::new(&DCID).unwrap();
    let (client, server) = pair(ALPN, ALPN);
    let crypto = unhex(
        "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868\
         04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578\
         616d706c652e636f6dff01000100000a00080006001d00170018001000070005\
         04616c706e000500050100000000003300260024001d00209370b2c9caa47fba\
         baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400\
         0d0010000e0403050306030203080408050806002d00020101001c0002400100\
         3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000\
         75300901100f088394c8f03e51570806048000ffff",
    );
    let mut packet = vec![0; 1200];
    let mut writer = Writer::new(&mut packet);
    let number = TruncatedPacketNumber::with_length(PacketNumber(2), 4);
    let (kind, version) = (LongKind::Initial { token: &[] }, Version::V2);
    let scid = ConnectionId::EMPTY;
    let header = LongHeader { kind, version, dcid, scid, packet_number: number };
    let layout = header.write(&mut writer).unwrap();
    writer.put_bytes(&crypto).unwrap();
    let keys = client.initial_keys(version, &dcid, Role::Client);
    protection::seal(&mut packet, &layout, PathId::ZERO, PacketNumber(2), &keys.local).unwrap();
    let expected = unhex(
        "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485\
         dd04de806071bf03dceebfa162e75d6c96058bdbfb127cdfcbf903388e99ad04\
         9f9a3dd4425ae4d0992cfff18ecf0fdb5a842d09747052f17ac2053d21f57c5d\
         250f2c4f0e0202b70785b7946e992e58a59ac52dea6774d4f03b55545243cf1a\
         12834e3f249a78d395e0d18f4d766004f1a2674802a747eaa901c3f10cda5500\
         cb9122faa9f1df66c392079a1b40f0de1c6054196a11cbea40afb6ef5253cd68\
         18f6625efce3b6def6ba7e4b37a40f7732e093daa7d52190935b8da58976ff33\
         12ae50b187c1433c0f028edcc4c2838b6a9bfc226ca4b4530e7a4ccee1bfa2a3\
         d396ae5a3fb512384b2fdd851f784a65e03f2c4fbe11a53c7777c023462239dd\
         6f7521a3f6c7d5dd3ec9b3f233773d4b46d23cc375eb198c63301c21801f6520\
         bcfb7966fc49b393f0061d974a2706df8c4a9449f11d7f3d2dcbb90c6b877045\
         636e7c0c0fe4eb0f697545460c806910d2c355f1d253bc9d2452aaa549e27a1f\
         ac7cf4ed77f322e8fa894b6a83810a34b361901751a6f5eb65a0326e07de7c12\
         16ccce2d0193f958bb3850a833f7ae432b65bc5a53975c155aa4bcb4f7b2c4e5\
         4df16efaf6ddea94e2c50b4cd1dfe06017e0e9d02900cffe1935e0491d77ffb4\
         fdf85290fdd893d577b1131a610ef6a5c32b2ee0293617a37cbb08b847741c3b\
         8017c25ca9052ca1079d8b78aebd47876d330a30f6a8c6d61dd1ab5589329de7\
         14d19d61370f8149748c72f132f0fc99f34d766c6938597040d8f9e2bb522ff9\
         9c63a344d6a2ae8aa8e51b7b90a4a806105fcbca31506c446151adfeceb51b91\
         abfe43960977c87471cf9ad4074d30e10d6a7f03c63bd5d4317f68ff325ba3bd\
         80bf4dc8b52a0ba031758022eb025cdd770b44d6d6cf0670f4e990b22347a7db\
         848265e3e5eb72dfe8299ad7481a408322cac55786e52f633b2fb6b614eaed18\
         d703dd84045a274ae8bfa73379661388d6991fe39b0d93debb41700b41f90a15\
         c4d526250235ddcd6776fc77bc97e7a417ebcb31600d01e57f32162a8560cacc\
         7e27a096d37a1a86952ec71bd89a3e9a30a2a26162984d7740f81193e8238e61\
         f6b5b984d4d3dfa033c1bb7e4f0037febf406d91c0dccf32acf423cfa1e70710\
         10d3f270121b493ce85054ef58bada42310138fe081adb04e2bd901f2f13458b\
         3d6758158197107c14ebb193230cd1157380aa79cae1374a7c1e5bbcb80ee23e\
         06ebfde206bfb0fcbc0edc4ebec309661bdd908d532eb0c6adc38b7ca7331dce\
         8dfce39ab71e7c32d318d136b6100671a1ae6a6600e3899f31f0eed19e3417d1\
         34b90c9058f8632c798d4490da4987307cba922d61c39805d072b589bd52fdf1\
         e86215c2d54e6670e07383a27bbffb5addf47d66aa85a0c6f9f32e59d85a44dd\
         5d3b22dc2be80919b490437ae4f36a0ae55edf1d0b5cb4e9a3ecabee93dfc6e3\
         8d209d0fa6536d27a5d6fbb17641cde27525d61093f1b28072d111b2b4ae5f89\
         d5974ee12e5cf7d5da4d6a31123041f33e61407e76cffcdcfd7e19ba58cf4b53\
         6f4c4938ae79324dc402894b44faf8afbab35282ab659d13c93f70412e85cb19\
         9a37ddec600545473cfb5a05e08d0b209973b2172b4d21fb69745a262ccde96b\
         a18b2faa745b6fe189cf772a9f84cbfc",
    );
    assert_eq!(packet, expected);

    let keys = server.initial_keys(version, &dcid, Role::Server).remote;
    let header =
        protection::unprotect(&mut packet, layout.packet_number_at, &*keys.header).unwrap();
    let (length, path) = (header.header_length, PathId::ZERO);
    let plain = protection::open(&mut packet, length, path, PacketNumber(2), &*keys.packet);
    assert!(plain.unwrap().starts_with(&crypto));
}

/// <https://www.rfc-editor.org/rfc/rfc9369#appendix-A.3>
#[test]
fn the_server_initial_of_rfc_9369_a3_opens() {
    let mut packet = unhex(
        "dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698\
         baeea26b91eb761d9b89237bbf87263017915358230035f7fd3945d88965cf17\
         f9af6e16886c61bfc703106fbaf3cb4cfa52382dd16a393e42757507698075b2\
         c984c707f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a3e2c43edd9ce7ca8\
         4bed8521e2e140",
    );
    let (client, _) = pair(ALPN, ALPN);
    let dcid = ConnectionId::new(&DCID).unwrap();
    let keys = client.initial_keys(Version::V2, &dcid, Role::Client).remote;
    let Ok(Packet::Protected(partial)) = Packet::parse(&packet, 0) else { panic!("not a packet") };
    assert_eq!(partial.version, Some(Version::V2));
    assert_eq!(partial.packet_length, packet.len());
    let at = partial.packet_number_at;
    let header = protection::unprotect(&mut packet, at, &*keys.header).unwrap();
    assert_eq!(header.packet_number.bits(), 1);
    let (length, path) = (header.header_length, PathId::ZERO);
    let plain = protection::open(&mut packet, length, path, PacketNumber(1), &*keys.packet);
    assert_eq!(plain.unwrap()[..9], unhex("020000000006 00405a")[..]);
}

/// <https://www.rfc-editor.org/rfc/rfc9369#appendix-A.5>
#[test]
fn the_short_header_packet_of_rfc_9369_a5_is_sealed() {
    let provider = provider();
    let mut suites = provider.cipher_suites.iter();
    let suite = suites
        .find(|suite| suite.suite() == tls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256)
        .and_then(|suite| suite.tls13())
        .unwrap();
    let secret =
        OkmBlock::new(&unhex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b"));
    let secrets = LevelSecrets { client: secret.clone(), server: secret };
    let keys = labels::with_labels(suite, &secrets, tls::Side::Client, quic::Version::V2).unwrap();
    let keys = super::super::keys::keys(keys);

    let mut packet = vec![0; 21];
    let mut writer = Writer::new(&mut packet);
    let number = PacketNumber(654_360_564);
    let packet_number = TruncatedPacketNumber::with_length(number, 3);
    let dcid = ConnectionId::EMPTY;
    let header = ShortHeader { dcid, spin: false, key_phase: false, packet_number };
    let layout = header.write(&mut writer).unwrap();
    writer.put_u8(1).unwrap();
    protection::seal(&mut packet, &layout, PathId::ZERO, number, &keys.local).unwrap();
    assert_eq!(packet, unhex("5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba"));

    let next = labels::next_phase(suite, &secrets, b"quicv2 ku");
    let expected = unhex("c69374c49e3d2a9466fa689e49d476db5d0dfbc87d32ceeaa6343fd0ae4c7d88");
    assert_eq!(next.client.as_ref(), expected);
}

/// Both ways of a pair of keys.
fn agree(client: &Keys, server: &Keys) -> bool {
    crosses(&*client.local.packet, &*server.remote.packet, PathId(1), 5)
        && crosses(&*server.local.packet, &*client.remote.packet, PathId(1), 5)
}

fn phases_agree(client: &PacketKeyPair, server: &PacketKeyPair) -> bool {
    crosses(&*client.local, &*server.remote, PathId(1), 5)
        && crosses(&*server.local, &*client.remote, PathId(1), 5)
}

#[test]
fn a_client_follows_its_server_into_another_version() {
    let (client, server) = pair(ALPN, ALPN);
    for (first, then) in [(Version::V1, Version::V2), (Version::V2, Version::V1)] {
        for changes in [false, true] {
            let version = if changes { then } else { first };
            let to = ClientStart { version: first, may_change: true, ..to("localhost", b"ours") };
            let with = ServerStart { version, ..with(b"theirs") };
            let (mut client, mut server) = start((&client, &to), (&server, &with));
            let answer = server.answer(&client.flight(), 10_000).unwrap();
            if changes {
                client.session.change_version(then).unwrap();
            }
            let finished = client.answer(&answer, 10_000).unwrap();
            server.answer(&finished, 10_000).unwrap();
            assert!(agree(&finished.handshake.unwrap(), &answer.handshake.unwrap()));
            assert!(agree(&finished.one_rtt.unwrap(), &answer.one_rtt.unwrap()));
            for _ in 0..3 {
                let of_client = client.session.next_packet_keys().unwrap();
                let of_server = server.session.next_packet_keys().unwrap();
                assert!(phases_agree(&of_client, &of_server), "{first} {then} {changes}");
            }
        }
    }
}

#[test]
fn keys_of_one_version_do_not_fit_the_other() {
    let (client, server) = pair(ALPN, ALPN);
    let to = ClientStart { may_change: true, ..to("localhost", b"ours") };
    let with = ServerStart { version: Version::V2, ..with(b"theirs") };
    let (mut client, mut server) = start((&client, &to), (&server, &with));
    let answer = server.answer(&client.flight(), 10_000).unwrap();
    let finished = client.answer(&answer, 10_000).unwrap();
    assert!(!agree(&finished.handshake.unwrap(), &answer.handshake.unwrap()));
    assert!(!agree(&finished.one_rtt.unwrap(), &answer.one_rtt.unwrap()));
}

#[test]
fn a_version_changes_only_if_it_may_and_only_at_first() {
    let (client, server) = pair(ALPN, ALPN);
    let (mut fixed, _) = ends(&client, &server);
    assert!(fixed.session.change_version(Version::V2).is_err());
    let to = ClientStart { may_change: true, ..to("localhost", b"ours") };
    let (mut client, mut server) = start((&client, &to), (&server, &with(b"theirs")));
    let answer = server.answer(&client.flight(), 10_000).unwrap();
    client.answer(&answer, 10_000).unwrap();
    assert!(client.session.change_version(Version::V2).is_err());
}
