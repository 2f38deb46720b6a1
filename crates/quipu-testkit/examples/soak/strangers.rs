//! Strangers who send to the server what is no connection, from addresses that are not theirs.

use std::sync::Arc;
use std::time::Duration;

use quipu_base::Random;
use quipu_testkit::forge::Draw;
use quipu_tokio::tokio;
use quipu_tokio::tokio::net::UdpSocket;
use rand_core::Rng;

use crate::relay::garbage;
use crate::world::{World, any_address, count};

/// Sends for ever: dozens of datagrams a second, in bursts.
pub(crate) async fn flood(world: Arc<World>) {
    let mut draw = world.seed.stream("strangers", 0);
    loop {
        let address = any_address(&mut draw);
        if let Ok(socket) = UdpSocket::bind((address, 0)).await {
            for _ in 0..draw.below(20) {
                let datagram = match draw.below(4) {
                    0 => garbage(&mut draw),
                    1 => long_header(&mut draw, 1),
                    2 => {
                        let version = draw.next_u32();
                        long_header(&mut draw, version)
                    }
                    _ => short_header(&mut draw),
                };
                count(&world.counts.strange);
                let _ = socket.send_to(&datagram, world.server).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(draw.below(200))).await;
    }
}

/// Looks like a client's first datagram.
fn long_header(draw: &mut Random, version: u32) -> Vec<u8> {
    let mut bytes = vec![0; 1_200 + draw.below(200) as usize];
    draw.fill_bytes(&mut bytes);
    bytes[0] = 0xc0 | (draw.below(4) << 4) as u8 | 3;
    bytes[1..5].copy_from_slice(&version.to_be_bytes());
    bytes[5] = draw.below(21) as u8;
    bytes
}

/// Looks like a packet of a connection that nobody remembers.
fn short_header(draw: &mut Random) -> Vec<u8> {
    let mut bytes = garbage(draw);
    bytes[0] = 0x40 | (bytes[0] & 0x3f);
    bytes
}
