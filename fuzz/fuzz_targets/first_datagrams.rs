//! A server's endpoint, against datagrams of clients that it does not know: Initial packets with any frames,
//! other packets, other versions, any bytes. No panic, no deadline that stands, no more connections, memory or
//! amplification than allowed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_base::Duration;
use quipu_quic::wire::{ConnectionId, PacketKind};
use quipu_testkit::forge::{
    Allocated, Bounds, Datagram, Draw, Forge, Forgery, Octets, Setup, raw, spoofed,
};

/// Connections at a time.
const CONNECTIONS: usize = 3;

fn counted(work: &mut dyn FnMut()) -> Allocated {
    let info = allocation_counter::measure(work);
    Allocated { held: info.bytes_current, peak: info.bytes_max, count: info.count_total }
}

fn id(draw: &mut Octets<'_>) -> ConnectionId {
    let bytes = [draw.below(4) as u8; ConnectionId::MAX_LENGTH];
    let length = if draw.happens(80) { 8 } else { draw.below(21) as usize };
    ConnectionId::new(&bytes[..length]).unwrap_or_default()
}

fn rest(draw: &mut Octets<'_>, most: u64) -> Vec<u8> {
    let length = draw.below(most + 1);
    (0..length).map(|_| draw.below(256) as u8).collect()
}

fn next(forge: &mut Forge, setup: &Setup, draw: &mut Octets<'_>) -> Datagram {
    let (dcid, scid) = (id(draw), id(draw));
    // Each client has an address of its own.
    let address = spoofed(dcid.as_bytes().first().copied().unwrap_or_default());
    let datagram = match draw.below(5) {
        0 => raw(&rest(draw, 100)),
        1 => {
            let mut bytes = vec![0xc0 | draw.below(64) as u8, 0, 0, 0, draw.below(3) as u8];
            bytes.extend(rest(draw, 60));
            bytes.resize(1_200, 0);
            raw(&bytes)
        }
        2 => {
            let hello = setup.client_hello(scid);
            forge.first_packet(dcid, scid, &hello).into()
        }
        kind => {
            forge.start_with(dcid);
            let kind = if kind == 3 { PacketKind::Initial } else { PacketKind::ZeroRtt };
            let frames = rest(draw, 200);
            let size = if draw.happens(80) { 1_200 } else { 0 };
            let token = rest(draw, 20);
            let packet = Forgery::new(kind).to(dcid).by(scid).with_token(&token);
            packet.bytes(&frames).padded(size).into()
        }
    };
    datagram.sent_from(address)
}

fuzz_target!(|bytes: &[u8]| {
    let mut draw = Octets::new(bytes);
    let setup = Setup { max_connections: CONNECTIONS, meter: counted, ..Setup::default() };
    let bounds = Bounds { held: 1 << 20, connections: CONNECTIONS };
    let mut forge = Forge::stranger(&setup);
    while !draw.is_empty() {
        let datagram = next(&mut forge, &setup, &mut draw);
        forge.send(datagram);
        forge.wait(Duration::from_millis(draw.below(3_000)));
        if let Err(breach) = bounds.check(&forge) {
            panic!("{breach}");
        }
    }
});
