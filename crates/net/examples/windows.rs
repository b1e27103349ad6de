//! Cost of the network: sources with a constant window send packets over one shared FIFO link.
//!
//! `cargo build --release -p tcpcast-net --example windows`, then count instructions of two runs of
//! different length: `valgrind --tool=callgrind target/release/examples/windows PATH FLOWS PACKETS
//! [events]`. The difference divided by the additional packets is the cost of a packet and its
//! acknowledgement. PATH: `shared`, `access` (a link of each flow before the shared link), or
//! `private` (also one behind it, and one for the acknowledgements). `events`: private links have
//! events.

use std::num::NonZeroU64;
use tcpcast_link::queue::BufferLimits;
use tcpcast_link::{Ecn, Nanos, Packet};
use tcpcast_net::{DropCause, LinkConfig, LinkId, Network, NetworkObserver, RouteId};

const MILLISECOND: Nanos = 1_000_000;
const WINDOW: u64 = 10;

/// As in a simulator: the flow, the connection, the end, and the segment.
#[derive(Clone, Copy)]
struct Parcel {
    flow: u32,
    _connection: u32,
    is_ack: bool,
    _segment: u32,
}

#[derive(Default)]
struct Hosts {
    delivered: Option<Parcel>,
}

impl NetworkObserver<Parcel> for Hosts {
    fn on_delivered(&mut self, _now: Nanos, parcel: Parcel, _ecn: Ecn) {
        self.delivered = Some(parcel);
    }
    fn on_dropped(&mut self, _: Nanos, _: LinkId, _: Parcel, _: DropCause) {}
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, flows, packets, ..] = &arguments[..] else {
        panic!("usage: windows PATH FLOWS PACKETS [events]");
    };
    let (flows, packets): (u32, u64) = (flows.parse().unwrap(), packets.parse().unwrap());
    let mut network = Network::default();
    if arguments.get(3).is_some_and(|word| word == "events") {
        network = network.with_events_on_all_links();
    }
    let link = |mbit: u64, delay| {
        let rate = NonZeroU64::new(mbit * 1_000_000);
        LinkConfig::drop_tail(rate, BufferLimits::default(), delay)
    };
    let shared = network.add_link(link(100, MILLISECOND));
    let routes: Vec<(RouteId, RouteId)> = (0..flows)
        .map(|flow| {
            // Different for each flow, so that events have different times.
            let delay = 10 * MILLISECOND + 997 * Nanos::from(flow);
            let (mut data, mut acks) = (vec![shared], vec![]);
            if path != "shared" {
                data.insert(0, network.add_link(link(1000, 100_000)));
            }
            if path == "private" {
                data.push(network.add_link(link(1000, 100_000)));
                acks.push(network.add_link(link(1000, 100_000)));
            }
            (network.add_route(&data, delay, 0, 1), network.add_route(&acks, delay, 0, 1))
        })
        .collect();
    let mut hosts = Hosts::default();
    let parcel = |flow, is_ack| Parcel { flow, _connection: 1, is_ack, _segment: flow };
    for _ in 0..WINDOW {
        for flow in 0..flows {
            let packet = Packet::new(parcel(flow, false), flow, 1500);
            network.send(0, routes[flow as usize].0, packet, &mut hosts);
        }
    }
    let mut received = 0;
    while received < packets {
        let now = network.next_time();
        network.step(&mut hosts);
        let Some(Parcel { flow, is_ack, .. }) = hosts.delivered.take() else { continue };
        let (data, acks) = routes[flow as usize];
        if is_ack {
            network.send(now, data, Packet::new(parcel(flow, false), flow, 1500), &mut hosts);
        } else {
            received += 1;
            network.send(now, acks, Packet::new(parcel(flow, true), flow, 40), &mut hosts);
        }
    }
    println!("{received} packets at {} ns", network.next_time());
}
