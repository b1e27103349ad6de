//! Tests of the link in virtual time.

use super::*;
use std::num::NonZeroU64;
use tcpcast_link::loss::{LinkLossConfig, LinkLossState, LossModel};
use tcpcast_link::queue::{
    AckFilter, BufferLimits, CakeConfig, CodelConfig, FqCodelConfig, QueueConfig,
};
use tcpcast_link::random::RandomStream;
use tcpcast_link::time::{MILLISECOND, NEVER, SECOND};
use tcpcast_link::transmit::TokenBucketConfig;
use tcpcast_net::{Jitter, LinkConfig};
use tcpcast_wire::ZeroPayloadSegment;

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 1);

fn direction(rate_bps: u64, limits: BufferLimits) -> LinkConfig {
    LinkConfig::drop_tail(NonZeroU64::new(rate_bps), limits, 0)
}

/// Paths between near ports and the last port, over one link in each direction, with the delays of
/// each near port.
fn paths(links: [LinkConfig; 2], near: &[(Ipv4Addr, Nanos, Nanos)]) -> EmulatedPaths {
    let mut network = Network::default();
    let links = links.map(|link| network.add_link(link));
    let far = near.len() as u16;
    let mut ports = Vec::new();
    let mut pairs = Vec::new();
    for (from, (address, forward, back)) in (0..).zip(near) {
        ports.push(LinkPort { side: LinkSide::Near, address: *address });
        for (from, to, link, delay) in [(from, far, 0, *forward), (far, from, 1, *back)] {
            let routes = Box::new([network.add_route(&[links[link]], delay, 0, u32::MAX)]);
            pairs.push(PortPair { from, to, routes, hosts: None });
        }
    }
    ports.push(LinkPort { side: LinkSide::Far, address: FAR });
    EmulatedPaths::new(network, ports, pairs, 1 << 20)
}

/// A forward direction of 12 Mbit/s, where 1500 bytes take 1 ms, an unlimited back direction, and
/// 10 ms delay each way.
fn path(forward: LinkConfig) -> EmulatedPaths {
    let links = [forward, direction(0, BufferLimits::default())];
    paths(links, &[(NEAR, 10 * MILLISECOND, 10 * MILLISECOND)])
}

/// Records packets by time and identification.
#[derive(Default)]
struct Recorder {
    left: Vec<(Nanos, u16, u16)>,
    dropped: Vec<(u16, DropCause)>,
    entered: usize,
}

impl PacketObserver for Recorder {
    fn on_enter(&mut self, _now: Nanos, _packet: &PacketInTransit, _bytes: &[u8]) {
        self.entered += 1;
    }
    fn on_drop(&mut self, _: LinkId, _packet: &PacketInTransit, bytes: &[u8], cause: DropCause) {
        self.dropped.push((identification(bytes), cause));
    }
    fn on_deliver(&mut self, _now: Nanos, due: Nanos, packet: &PacketInTransit, bytes: &[u8]) {
        self.left.push((due, packet.to, identification(bytes)));
    }
}

fn identification(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[4], packet[5]])
}

fn packet(number: u16, to: Ipv4Addr, codepoint: u8) -> Vec<u8> {
    let segment = ZeroPayloadSegment {
        source: NEAR.octets(),
        destination: to.octets(),
        identification: number,
        codepoint,
        ..ZeroPayloadSegment::default()
    };
    let mut bytes = segment.encode_headers();
    bytes.resize(1500, 0);
    bytes
}

fn in_transit(path: &EmulatedPaths) -> [u64; 2] {
    let LinkReport { forward, back } = path.current_report();
    [forward.in_transit(), back.in_transit()]
}

fn enter(path: &mut EmulatedPaths, recorder: &mut Recorder, now: Nanos, from: u16, bytes: &[u8]) {
    let cell = path.slab.take_cell().unwrap();
    path.slab.cell_memory_mut(cell)[..bytes.len()].copy_from_slice(bytes);
    path.slab.set_length(cell, bytes.len());
    path.enter_packet(now, from, cell, recorder);
}

/// Delivers all packets that left by `until`, at that time.
fn drain(path: &mut EmulatedPaths, recorder: &mut Recorder, until: Nanos) {
    path.advance_to(until, recorder);
    while let Some(packet) = path.take_departed_packet(until, recorder) {
        path.count_and_release_packet(packet, true);
    }
}

#[test]
fn packets_are_serialised_and_delayed_independent_of_polling() {
    let mut path = path(direction(12_000_000, BufferLimits::limit_packets(3)));
    let mut recorder = Recorder::default();
    for number in 0..5 {
        enter(&mut path, &mut recorder, 1000, 0, &packet(number, FAR, 0));
    }
    assert_eq!(recorder.dropped, [(3, DropCause::Full), (4, DropCause::Full)]);
    // The packet in transmission leaves after 1 ms, and none can arrive earlier.
    assert_eq!(path.next_departure_bound(), 11 * MILLISECOND + 1000);
    assert_eq!(in_transit(&path), [3, 0]);
    drain(&mut path, &mut recorder, 50 * MILLISECOND);
    let due: Vec<Nanos> = recorder.left.iter().map(|(due, ..)| due - 1000).collect();
    assert_eq!(due, [11, 12, 13].map(|ms| ms * MILLISECOND));
    let counters = path.current_report().forward;
    assert_eq!((counters.link.entered.packets, counters.delivered.packets), (5, 3));
    assert_eq!((counters.waits.max(), counters.link.dropped_packets()), (2 * MILLISECOND, 2));
    assert!(counters.lateness.max() > 36 * MILLISECOND);
    assert_eq!((path.slab.cells_in_use(), path.next_departure_bound()), (0, NEVER));
}

#[test]
fn directions_and_ports_have_separate_delays() {
    let second = Ipv4Addr::new(10, 0, 0, 2);
    let unlimited = || direction(0, BufferLimits::default());
    let near =
        [(NEAR, 30 * MILLISECOND, 5 * MILLISECOND), (second, 10 * MILLISECOND, 20 * MILLISECOND)];
    let mut path = paths([unlimited(), unlimited()], &near);
    let mut recorder = Recorder::default();
    enter(&mut path, &mut recorder, 0, 0, &packet(1, FAR, 0));
    enter(&mut path, &mut recorder, 1, 1, &packet(2, FAR, 0));
    enter(&mut path, &mut recorder, 2, 2, &packet(3, NEAR, 0));
    enter(&mut path, &mut recorder, 3, 2, &packet(4, second, 0));
    drain(&mut path, &mut recorder, NEVER);
    recorder.left.sort_unstable();
    let expected = [(5, 0, 3), (10, 2, 2), (20, 1, 4), (30, 2, 1)];
    let left: Vec<_> =
        recorder.left.iter().map(|(due, to, n)| (due / MILLISECOND, *to, *n)).collect();
    assert_eq!(left, expected);
}

#[test]
fn misaddressed_packets_do_not_enter() {
    let mut path = path(direction(12_000_000, BufferLimits::default()));
    let mut recorder = Recorder::default();
    enter(&mut path, &mut recorder, 0, 0, &packet(1, Ipv4Addr::BROADCAST, 0));
    enter(&mut path, &mut recorder, 0, 0, &packet(1, NEAR, 0));
    enter(&mut path, &mut recorder, 0, 0, &[0x45; 10]);
    let counters = path.current_report().forward;
    assert_eq!((counters.misaddressed, counters.link.entered.packets, recorder.entered), (3, 0, 0));
    assert_eq!((path.slab.cells_in_use(), path.next_departure_bound()), (0, NEVER));
}

#[test]
fn policer_precedes_random_loss_and_queue() {
    let lossy = |policer| LinkConfig {
        loss: Some(LinkLossState::new(
            LinkLossConfig::before_queue(LossModel::Bernoulli(1.0)),
            RandomStream::from_seed(7),
        )),
        policer,
        ..direction(12_000_000, BufferLimits::default())
    };
    let mut recorder = Recorder::default();
    let mut always = path(lossy(None));
    enter(&mut always, &mut recorder, 0, 0, &packet(1, FAR, 0));
    let tokens =
        TokenBucketConfig { rate_bps: NonZeroU64::MIN, burst_bytes: 1000, overhead_bytes: 0 };
    let mut policed = path(lossy(Some(tokens)));
    enter(&mut policed, &mut recorder, 0, 0, &packet(2, FAR, 0));
    assert_eq!(recorder.dropped, [(1, DropCause::Random), (2, DropCause::Full)]);
    assert_eq!(policed.current_report().forward.link.full_drops, 1);
    assert_eq!(in_transit(&always), [0, 0]);
}

#[test]
fn packets_lost_after_the_queue_are_transmitted() {
    let model =
        LossModel::GilbertElliott { to_bad: 1.0, to_good: 1.0, loss_good: 0.0, loss_bad: 1.0 };
    let every_second =
        LinkLossState::new(LinkLossConfig::behind_transmitter(model), RandomStream::from_seed(7));
    let config = LinkConfig {
        loss: Some(every_second),
        ..direction(12_000_000, BufferLimits::limit_packets(4))
    };
    let mut path = path(config);
    let mut recorder = Recorder::default();
    for number in 0..6 {
        enter(&mut path, &mut recorder, 0, 0, &packet(number, FAR, 0));
    }
    drain(&mut path, &mut recorder, NEVER);
    // Four packets fit, and each takes 1 ms on the link, lost or not.
    assert_eq!(recorder.dropped[..2], [(4, DropCause::Full), (5, DropCause::Full)]);
    let first = u16::from(recorder.left[0].2 == 1);
    let due = |number: u16| (10 + 1 + Nanos::from(number)) * MILLISECOND;
    let got: Vec<_> = recorder.left.iter().map(|(due, _, number)| (*due, *number)).collect();
    assert_eq!(got, [first, first + 2].map(|number| (due(number), number)));
    assert_eq!(recorder.dropped[2..], [1 - first, 3 - first].map(|n| (n, DropCause::Random)));
    let counters = path.current_report().forward;
    assert_eq!((counters.delivered.packets, counters.link.random_drops), (2, 2));
    assert_eq!(
        (in_transit(&path), path.slab.cells_in_use(), path.next_departure_bound()),
        ([0, 0], 0, NEVER)
    );
}

#[test]
fn ecn_queue_marks_ip_header() {
    let codel = CodelConfig { ecn: true, ..CodelConfig::default() };
    let queue = QueueConfig::FqCodel(FqCodelConfig { codel, ..FqCodelConfig::default() });
    let config = LinkConfig { queue, ..direction(1_200_000, BufferLimits::default()) };
    let mut path = path(config);
    let mut marks = 0;
    for number in 0..200 {
        enter(&mut path, &mut Recorder::default(), u64::from(number), 0, &packet(number, FAR, 2));
    }
    path.advance_to(NEVER, &mut ());
    while let Some(left) = path.take_departed_packet(NEVER, &mut ()) {
        marks += u64::from(path.slab.packet(left.cell)[1] == 3);
        path.count_and_release_packet(left, true);
    }
    let counters = path.current_report().forward;
    assert_eq!((counters.link.marked, counters.delivered.packets), (marks, 200));
    assert!(marks > 5);
}

#[test]
fn jitter_reorders_only_if_configured() {
    for reorder in [false, true] {
        // 9, 8, 7 ms and so on.
        let mut next = 10 * MILLISECOND;
        let delay = Box::new(move |_| {
            next -= MILLISECOND;
            next
        });
        let jitter = Some(Jitter { delay, reorder });
        let mut path = path(LinkConfig { jitter, ..direction(0, BufferLimits::default()) });
        let mut recorder = Recorder::default();
        for number in 0..3 {
            enter(&mut path, &mut recorder, 0, 0, &packet(number, FAR, 0));
        }
        drain(&mut path, &mut recorder, NEVER);
        let left: Vec<_> =
            recorder.left.iter().map(|(due, _, n)| (due / MILLISECOND, *n)).collect();
        let expected =
            if reorder { [(17, 2), (18, 1), (19, 0)] } else { [(19, 0), (19, 1), (19, 2)] };
        assert_eq!(left, expected);
    }
}

#[test]
fn packets_rejected_by_device_are_host_drops() {
    let mut path = path(direction(0, BufferLimits::default()));
    enter(&mut path, &mut Recorder::default(), 0, 0, &packet(1, FAR, 0));
    path.advance_to(NEVER, &mut ());
    let left = path.take_departed_packet(NEVER, &mut ()).unwrap();
    path.count_and_release_packet(left, false);
    path.count_packet_without_cell(1);
    let report = path.current_report();
    assert_eq!((report.forward.host_drops, report.back.host_drops), (1, 1));
}

/// Creates an IPv6 packet without payload.
fn packet6(to: Ipv6Addr) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    (bytes[0], bytes[6]) = (0x60, 59);
    bytes[8..24].copy_from_slice(&ipv6_address_of_port(NEAR).octets());
    bytes[24..40].copy_from_slice(&to.octets());
    bytes
}

#[test]
fn port_has_ipv6_address() {
    assert_eq!(ipv6_address_of_port(FAR).to_string(), "fd00::a80:1");
    let mut path = path(direction(0, BufferLimits::default()));
    let mut recorder = Recorder::default();
    enter(&mut path, &mut recorder, 0, 0, &packet6(ipv6_address_of_port(FAR)));
    drain(&mut path, &mut recorder, 10 * MILLISECOND);
    assert_eq!(recorder.left, [(10 * MILLISECOND, 1, 0)]);
    // Multicast packets are ignored; unknown addresses are counted.
    enter(&mut path, &mut recorder, 0, 0, &packet6("ff02::16".parse().unwrap()));
    assert_eq!(path.current_report().forward.misaddressed, 0);
    enter(&mut path, &mut recorder, 0, 0, &packet6("fd00::1".parse().unwrap()));
    assert_eq!((path.current_report().forward.misaddressed, recorder.entered), (1, 1));
    assert_eq!(path.slab.cells_in_use(), 0);
}

#[test]
fn default_port_receives_unknown_destinations_from_near_side() {
    let elsewhere = Ipv4Addr::new(192, 0, 2, 7);
    let mut path = path(direction(0, BufferLimits::default())).with_far_default_route();
    let mut recorder = Recorder::default();
    enter(&mut path, &mut recorder, 0, 0, &packet(1, elsewhere, 0));
    enter(&mut path, &mut recorder, 0, 0, &packet(2, Ipv4Addr::new(224, 0, 0, 1), 0));
    enter(&mut path, &mut recorder, 0, 0, &packet6("2001:db8::1".parse().unwrap()));
    // Packets from the far side must have a near address.
    enter(&mut path, &mut recorder, 0, 1, &packet(3, elsewhere, 0));
    drain(&mut path, &mut recorder, 10 * MILLISECOND);
    assert_eq!(recorder.left, [(10 * MILLISECOND, 1, 1)]);
}

/// A chain of acknowledgements in front of CAKE, which filters those that the last one supersedes.
#[test]
fn ack_filter_of_cake_drops_superseded_acks() {
    let cake = CakeConfig { ack_filter: AckFilter::Aggressive, ..CakeConfig::default() };
    for (queue, expected) in [(QueueConfig::DropTail, 0), (QueueConfig::Cake(cake), 8)] {
        // 40 bytes take 32 ms.
        let config = LinkConfig { queue, ..direction(10_000, BufferLimits::default()) };
        let mut path = path(config);
        for number in 0..10 {
            let mut ack = packet(number, FAR, 0);
            ack.truncate(40);
            ack[28..32].copy_from_slice(&(1000 + 100 * u32::from(number)).to_be_bytes());
            ack[33] = tcpcast_wire::ACK;
            enter(&mut path, &mut Recorder::default(), u64::from(number), 0, &ack);
        }
        assert_eq!(path.current_report().forward.link.superseded, expected);
        assert_eq!(in_transit(&path), [10 - expected, 0]);
    }
}

/// Packets follow one of the routes of their ports over several links.
#[test]
fn flows_are_distributed_over_equal_routes() {
    let mut network = Network::default();
    let limits = BufferLimits::default();
    let mut link =
        |delay| network.add_link(LinkConfig::drop_tail(NonZeroU64::new(12_000_000), limits, delay));
    let links = [link(MILLISECOND), link(10 * MILLISECOND), link(20 * MILLISECOND)];
    let routes = [1, 2]
        .map(|second| network.add_route(&[links[0], links[second]], 5 * MILLISECOND, 0, u32::MAX));
    let ports = vec![
        LinkPort { side: LinkSide::Near, address: NEAR },
        LinkPort { side: LinkSide::Far, address: FAR },
    ];
    let pairs = vec![PortPair { from: 0, to: 1, routes: Box::new(routes), hosts: None }];
    let mut path = EmulatedPaths::new(network, ports, pairs, 1 << 20);
    let mut recorder = Recorder::default();
    for port in 0..50 {
        let mut bytes = packet(port, FAR, 0);
        bytes[20..22].copy_from_slice(&port.to_be_bytes());
        // Both packets of a flow take the same route.
        for again in [0, 1] {
            let now = SECOND * Nanos::from(2 * port + again);
            path.advance_to(now, &mut recorder);
            enter(&mut path, &mut recorder, now, 0, &bytes);
        }
    }
    drain(&mut path, &mut recorder, NEVER);
    let delays = |again| {
        let of = recorder.left.iter().skip(again).step_by(2);
        of.map(|(due, ..)| due % SECOND / MILLISECOND).collect::<Vec<_>>()
    };
    assert_eq!(delays(0), delays(1));
    let counts = [18, 28].map(|ms| delays(0).iter().filter(|delay| **delay == ms).count());
    assert!(
        counts.iter().sum::<usize>() == 50 && counts.iter().all(|count| *count > 10),
        "{counts:?}"
    );
    assert_eq!(path.current_report().back.misaddressed, 0);
}
