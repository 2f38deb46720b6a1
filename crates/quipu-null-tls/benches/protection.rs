//! Sealing and opening a 1,350-byte packet with keys that are names.

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use quipu_base::{PacketNumber, PathId, Role};
use quipu_null_tls::{NullClient, NullServer};
use quipu_quic::tls::{InitialSecrets, protection};
use quipu_quic::wire::header::ShortHeader;
use quipu_quic::wire::{ConnectionId, TruncatedPacketNumber, Version, Writer};

const PATH: PathId = PathId(1);
const NUMBER: PacketNumber = PacketNumber(1_000);

fn seal_and_open(criterion: &mut Criterion) {
    let dcid = ConnectionId::new(&[7; 8]).unwrap();
    let client =
        NullClient::new(&[b"h3"]).unwrap().initial_keys(Version::V1, &dcid, Role::Client).local;
    let server =
        NullServer::new(&[b"h3"]).unwrap().initial_keys(Version::V1, &dcid, Role::Server).remote;
    let packet_number = TruncatedPacketNumber::with_length(NUMBER, 2);
    let header = ShortHeader { dcid, spin: false, key_phase: false, packet_number };
    let mut packet = vec![0; 1_350];
    criterion.bench_function("null/seal and open 1350 bytes", |bencher| {
        bencher.iter(|| {
            let packet = black_box(&mut packet);
            let layout = header.write(&mut Writer::new(packet)).unwrap();
            protection::seal(packet, &layout, PATH, NUMBER, &client).unwrap();
            let read =
                protection::unprotect(packet, layout.packet_number_at, &*server.header).unwrap();
            let key = &*server.packet;
            protection::open(packet, read.header_length, PATH, NUMBER, key).unwrap().len()
        });
    });
}

criterion_group!(benches, seal_and_open);
criterion_main!(benches);
