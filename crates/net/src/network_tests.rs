//! Tests of the order of events, of changes, and of notifications.

use super::*;
use crate::counters::PacketAndByteCount;
use std::num::NonZeroU64;
use tcpcast_link::loss::{LinkLossConfig, LinkLossState, LossModel};
use tcpcast_link::queue::{BufferLimits, CodelConfig, DualPi2Config, QueueConfig};
use tcpcast_link::random::RandomStream;
use tcpcast_link::time::MILLISECOND;

/// A link on which 1500 bytes take 1 ms.
fn link(packets: u64, delay_ms: u64) -> LinkConfig {
    let limits = BufferLimits::limit_packets(packets);
    LinkConfig::drop_tail(NonZeroU64::new(12_000_000), limits, delay_ms * MILLISECOND)
}

/// Times in microseconds.
#[derive(Default)]
struct Recorder {
    delivered: Vec<(u64, u32, Ecn)>,
    dropped: Vec<(u64, u32, DropCause)>,
    waits: Vec<Nanos>,
}

impl NetworkObserver<u32> for Recorder {
    fn on_delivered(&mut self, now: Nanos, payload: u32, ecn: Ecn) {
        self.delivered.push((now / 1000, payload, ecn));
    }
    fn on_dropped(&mut self, now: Nanos, _link: LinkId, payload: u32, cause: DropCause) {
        self.dropped.push((now / 1000, payload, cause));
    }
    fn on_served(&mut self, _at: Passage, _payload: &u32, service: &Service) {
        self.waits.push(service.waited);
    }
}

impl Recorder {
    fn times(&self) -> Vec<u64> {
        self.delivered.iter().map(|(time, ..)| *time).collect()
    }
}

fn always_lost(place: fn(LossModel) -> LinkLossConfig) -> Option<LinkLossState> {
    Some(LinkLossState::new(place(LossModel::Bernoulli(1.0)), RandomStream::from_seed(1)))
}

/// Sends packets of 1500 bytes numbered from 0, all at time 0, and returns what happened.
fn send_at_once(network: &mut Network<u32>, route: RouteId, packets: u32) -> Recorder {
    let mut recorder = Recorder::default();
    for payload in 0..packets {
        let packet = Packet::new(payload, 0, 1500).with_ecn(Ecn::Ect0);
        network.send(0, route, packet, &mut recorder);
    }
    network.advance_to(NEVER - 1, &mut recorder);
    recorder
}

#[test]
fn rate_changes_behind_the_packet_in_transmission() {
    let mut network = Network::default();
    let changes = vec![
        (1_500_000, LinkChange::Rate(NonZeroU64::new(1_200_000))),
        (25 * MILLISECOND, LinkChange::Rate(None)),
    ];
    let link = network.add_link(LinkConfig { changes, ..link(10, 0) });
    let route = network.add_route(&[link], 0, 0, 1);
    let recorder = send_at_once(&mut network, route, 6);
    assert_eq!(recorder.times(), [1000, 2000, 12_000, 22_000, 32_000, 32_000]);
    assert_eq!(recorder.waits.iter().max(), Some(&(32 * MILLISECOND)));
    // 1.5 ms at the first rate and 23.5 ms at the second; the last one is unlimited.
    assert_eq!(
        network.link(link).capacity_nanobits_until(99 * MILLISECOND) / 8_000_000_000,
        2250 + 3525
    );
}

#[test]
fn shorter_delay_lets_packets_overtake_and_loss_can_begin() {
    let mut network = Network::default();
    let changes = vec![
        (1_500_000, LinkChange::Delay(0)),
        (2_500_000, LinkChange::Loss(always_lost(LinkLossConfig::behind_transmitter))),
    ];
    let link = network.add_link(LinkConfig { changes, ..link(10, 5) });
    let route = network.add_route(&[link], MILLISECOND, 0, 1);
    let recorder = send_at_once(&mut network, route, 5);
    // The delay and the loss of a packet are determined when its transmission begins.
    let order: Vec<_> = recorder.delivered.iter().map(|(time, n, _)| (*time, *n)).collect();
    assert_eq!(order, [(4000, 2), (7000, 0), (8000, 1)]);
    assert_eq!(recorder.dropped, [(4000, 3, DropCause::Random), (5000, 4, DropCause::Random)]);
}

#[test]
fn departures_precede_arrivals_from_hosts_and_links() {
    for queue in [QueueConfig::DropTail, QueueConfig::HeadDrop] {
        let mut network = Network::default();
        let first = network.add_link(LinkConfig { queue, ..link(2, 0) });
        let second = network.add_link(LinkConfig { queue, ..link(1, 0) });
        let route = network.add_route(&[first, second], 0, 0, 2);
        let mut recorder = Recorder::default();
        let mut send = |network: &mut Network<u32>, now, payload| {
            network.send(now, route, Packet::new(payload, payload, 1500), &mut recorder);
        };
        send(&mut network, 0, 0);
        send(&mut network, 0, 1);
        // The first packet leaves at this time, so there is room; each packet also leaves the
        // second link when the next one arrives there.
        send(&mut network, MILLISECOND, 2);
        network.advance_to(NEVER - 1, &mut recorder);
        assert_eq!((recorder.times(), recorder.dropped), (vec![2000, 3000, 4000], vec![]));
    }
}

#[test]
fn private_link_reports_losses_at_their_time() {
    let mut network = Network::default();
    let shared = network.add_link(link(10, 7));
    let behind = always_lost(LinkLossConfig::behind_transmitter);
    let private = network.add_link(LinkConfig { loss: behind, ..link(1, 0) });
    let route = network.add_route(&[shared, private], 0, 3, 1);
    network.add_route(&[shared], 0, 0, 1);
    let mut recorder = Recorder::default();
    let size = |payload| if payload == 0 { 1500 } else { 750 };
    for payload in 0..2 {
        network.send(0, route, Packet::new(payload, 0, size(payload)), &mut recorder);
    }
    network.advance_to(8 * MILLISECOND, &mut recorder);
    assert_eq!((recorder.dropped.len(), network.packets_on_links()[private.index()]), (0, 2));
    network.advance_to(NEVER - 1, &mut recorder);
    // The second packet arrives during the transmission of the first.
    assert_eq!(recorder.dropped, [(8500, 1, DropCause::Full), (9000, 0, DropCause::Random)]);
    let counters = network.counters(private, 3);
    assert_eq!(counters.entered, PacketAndByteCount { packets: 2, bytes: 2250 });
    assert_eq!((counters.left.packets, counters.dropped_packets()), (0, 2));
    assert_eq!(network.counters(private, 0), LinkCounters::default());
}

#[test]
fn marks_of_all_queues_reach_the_host() {
    let codel =
        CodelConfig { target: 0, interval: MILLISECOND, ecn: true, ..CodelConfig::default() };
    let mut network = Network::default();
    let marking = LinkConfig { queue: QueueConfig::Codel(codel), ..link(100, 0) };
    let first = network.add_link(marking);
    let second = network.add_link(link(100, 0));
    let route = network.add_route(&[first, second], 0, 0, 1);
    let recorder = send_at_once(&mut network, route, 50);
    let marked = recorder.delivered.iter().filter(|(.., ecn)| *ecn == Ecn::Ce).count() as u64;
    let counters = [first, second].map(|link| network.counters(link, 0).marked);
    assert_eq!(counters, [marked, 0]);
    assert!(marked > 5, "{marked}");
}

#[test]
fn next_delivery_is_bounded_while_packets_wait() {
    let mut network = Network::default();
    let held = LinkConfig { queue: QueueConfig::HeadDrop, ..link(10, 20) };
    let link = network.add_link(held);
    let route = network.add_route(&[link], 5 * MILLISECOND, 0, 1);
    let mut recorder = Recorder::default();
    for payload in 0..3 {
        network.send(0, route, Packet::new(payload, 0, 1500), &mut recorder);
    }
    assert_eq!((network.next_time(), network.packets_on_links()[link.index()]), (MILLISECOND, 3));
    for number in 1..4 {
        assert_eq!(network.next_delivery_bound(), (25 + number) * MILLISECOND);
        network.advance_to((25 + number) * MILLISECOND, &mut recorder);
    }
    assert_eq!(recorder.times(), [26_000, 27_000, 28_000]);
    assert_eq!((network.next_time(), network.next_delivery_bound()), (NEVER, NEVER));
}

#[test]
fn route_without_links_only_delays() {
    let mut network = Network::default();
    let route = network.add_route(&[], 3 * MILLISECOND, 0, 1);
    let recorder = send_at_once(&mut network, route, 2);
    assert_eq!(recorder.delivered, [(3000, 0, Ecn::Ect0), (3000, 1, Ecn::Ect0)]);
}

#[test]
fn processing_time_of_a_host_delays_deliveries() {
    struct SlowHost(Vec<Nanos>);
    impl NetworkObserver<u32> for SlowHost {
        fn on_delivered(&mut self, now: Nanos, _payload: u32, _ecn: Ecn) {
            self.0.push(now);
        }
        fn on_dropped(&mut self, _: Nanos, _: LinkId, _: u32, _: DropCause) {}
        fn processing_time(&mut self, due: Nanos, payload: &u32) -> Nanos {
            due + Nanos::from(*payload)
        }
    }
    let mut network = Network::default();
    let link = network.add_link(link(10, 0));
    let routes = [&[link][..], &[]].map(|links| network.add_route(links, MILLISECOND, 0, 1));
    let mut host = SlowHost(Vec::new());
    for (payload, route) in (5..).zip(routes) {
        network.send(0, route, Packet::new(payload, 0, 1500), &mut host);
    }
    network.advance_to(NEVER - 1, &mut host);
    assert_eq!(host.0, [MILLISECOND + 6, 2 * MILLISECOND + 5]);
}

#[test]
fn queue_that_splits_bursts_receives_their_packets() {
    /// Payload 7 is a burst of payloads 0 to 2; the last packet is short.
    #[derive(Default)]
    struct Hosts(Recorder);
    impl NetworkObserver<u32> for Hosts {
        fn on_delivered(&mut self, now: Nanos, payload: u32, ecn: Ecn) {
            self.0.on_delivered(now, payload, ecn);
        }
        fn on_dropped(&mut self, now: Nanos, link: LinkId, payload: u32, cause: DropCause) {
            self.0.on_dropped(now, link, payload, cause);
        }
        fn split_burst(&mut self, burst: &u32, bytes: u32, parts: &mut Vec<(u32, u32)>) {
            if *burst == 7 {
                parts.extend([(0, 1500), (1, 1500), (2, bytes - 3000)]);
            }
        }
    }
    let run = |split_gso| {
        let mut network = Network::default();
        let dualpi2 = DualPi2Config { split_gso, ..DualPi2Config::default() };
        let queue = QueueConfig::Dualpi2(dualpi2);
        let links = [
            network.add_link(LinkConfig { queue: QueueConfig::HeadDrop, ..link(10, 0) }),
            network.add_link(LinkConfig { queue, ..link(10, 0) }),
        ];
        let route = network.add_route(&links, 0, 0, 2);
        let mut hosts = Hosts::default();
        network.send(0, route, Packet::new(7, 0, 3750), &mut hosts);
        network.send(0, route, Packet::new(8, 0, 1500), &mut hosts);
        network.advance_to(NEVER - 1, &mut hosts);
        let order: Vec<_> = hosts.0.delivered.iter().map(|(time, n, _)| (*time, *n)).collect();
        (order, links.map(|link| network.counters(link, 0).left))
    };
    let count = |packets, bytes| PacketAndByteCount { packets, bytes };
    // The first link transmits the burst as one packet of 2.5 ms.
    let (order, left) = run(true);
    assert_eq!(order, [(3500, 0), (4500, 1), (5000, 2), (6000, 8)]);
    assert_eq!(left, [count(2, 5250), count(4, 5250)]);
    let (order, left) = run(false);
    assert_eq!(order, [(5000, 7), (6000, 8)]);
    assert_eq!(left, [count(2, 5250), count(2, 5250)]);
}
