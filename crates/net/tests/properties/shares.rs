//! Shares of flows with a constant window.

use std::num::{NonZeroU32, NonZeroU64};
use tcpcast_link::queue::{
    BufferAssignment, BufferLimits, DropPolicy, DrrConfig, HeadOfLine, QueueConfig, TieBreakRule,
};
use tcpcast_link::{Ecn, Nanos, Packet};
use tcpcast_net::{DropCause, LinkConfig, LinkId, Network, NetworkObserver, RouteId};

const MILLISECOND: Nanos = 1_000_000;
const BYTES: u32 = 1500;

fn fair_link(rate_bps: u64) -> LinkConfig {
    let drr = DrrConfig {
        quantum_bytes: NonZeroU32::new(BYTES).unwrap(),
        buffers: BufferAssignment::Shared,
        drop: DropPolicy::LongestTail,
        ties: TieBreakRule::Latest,
        head_of_line: HeadOfLine::InBuffer,
        heavy: None,
    };
    let plain =
        LinkConfig::drop_tail(NonZeroU64::new(rate_bps), BufferLimits::default(), MILLISECOND);
    LinkConfig { queue: QueueConfig::Drr(drr), ..plain }
}

/// Flow of each packet that reached its receiver, whose acknowledgement is sent back.
#[derive(Default)]
struct Hosts {
    delivered: Vec<(u32, bool)>,
}

impl NetworkObserver<(u32, bool)> for Hosts {
    fn on_delivered(&mut self, _now: Nanos, payload: (u32, bool), _ecn: Ecn) {
        self.delivered.push(payload);
    }
    fn on_dropped(&mut self, _: Nanos, _: LinkId, _: (u32, bool), _: DropCause) {
        unreachable!("the buffers are unlimited");
    }
}

/// Runs flows with a window of 100 packets for 60 s. Returns the rate of each in Mbit/s.
fn rates(network: &mut Network<(u32, bool)>, routes: &[(RouteId, RouteId)]) -> Vec<f64> {
    let end = 60_000 * MILLISECOND;
    let mut hosts = Hosts::default();
    let mut received = vec![0_u64; routes.len()];
    for flow in 0..routes.len() as u32 {
        for _ in 0..100 {
            let packet = Packet::new((flow, true), flow, BYTES);
            network.send(0, routes[flow as usize].0, packet, &mut hosts);
        }
    }
    while network.next_time() < end {
        let now = network.next_time();
        network.step(&mut hosts);
        for (flow, is_data) in std::mem::take(&mut hosts.delivered) {
            let (data, acks) = routes[flow as usize];
            if is_data {
                received[flow as usize] += 1;
                network.send(now, acks, Packet::new((flow, false), flow, 40), &mut hosts);
            } else {
                network.send(now, data, Packet::new((flow, true), flow, BYTES), &mut hosts);
            }
        }
    }
    let bits = f64::from(BYTES * 8) / (end as f64 / 1e3);
    received.iter().map(|packets| *packets as f64 * bits).collect()
}

/// One flow over three links in each direction, and other flows over one link each: the shares are
/// max-min fair. Data of each direction share the links with the acknowledgements of the other.
#[test]
fn parking_lot_with_fair_queues_has_max_min_shares() {
    for others in [[1, 1, 1], [1, 2, 1], [3, 1, 2]] {
        let mut network = Network::default();
        let [forward, back] =
            [(); 2].map(|()| [(); 3].map(|()| network.add_link(fair_link(10_000_000))));
        let mut routes = Vec::new();
        let mut expected: Vec<f64> = Vec::new();
        for (to, from) in [(forward, back), (back, forward)] {
            let mut reversed = from;
            reversed.reverse();
            let mut add = |links: &[LinkId], acks: &[LinkId]| {
                let mut route = |links| network.add_route(links, MILLISECOND, 0, 1);
                routes.push((route(links), route(acks)));
            };
            // 2.6 % of each link carries acknowledgements, at most.
            add(&to, &reversed);
            let most = f64::from(*others.iter().max().unwrap());
            expected.push(10.0 / (most + 1.0));
            for (hop, count) in others.into_iter().enumerate() {
                for _ in 0..count {
                    add(&to[hop..=hop], &reversed[2 - hop..=2 - hop]);
                    expected.push((10.0 - 10.0 / (most + 1.0)) / f64::from(count));
                }
            }
        }
        // Acknowledgements of the other direction take 40 of 1540 bytes.
        let data_share = 1500.0 / 1540.0;
        for (rate, expected) in rates(&mut network, &routes).iter().zip(&expected) {
            let expected = expected * data_share;
            assert!(
                (rate / expected - 1.0).abs() < 0.01,
                "{rate} instead of {expected}, {others:?}"
            );
        }
    }
}
