//! The link in virtual time.

use super::*;
use std::num::NonZeroU64;
use tcpcast_link::loss::{LinkLoss, LinkLosses, LossModel};
use tcpcast_link::queue::{CodelConfig, FqCodelConfig, Limits, QueueConfig};
use tcpcast_link::random::Stream;
use tcpcast_link::time::{MILLISECOND, NEVER};
use tcpcast_link::transmit::{AnyTransmitter, ConstantRate, TokenRate};
use tcpcast_wire::Segment;

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 1);

fn direction(rate_bps: u64, limits: Limits) -> DirectionConfig {
    DirectionConfig {
        policer: None,
        loss: None,
        queue: QueueConfig::DropTail,
        limits,
        draws: Stream::of(1),
        transmitter: AnyTransmitter::ConstantRate(ConstantRate::new(NonZeroU64::new(rate_bps))),
        varies: false,
        jitter: None,
    }
}

fn port(side: Side, address: Ipv4Addr, forward: Nanos, back: Nanos) -> Port {
    Port { side, address, forward, back }
}

/// 12 Mbit/s there, so that 1500 bytes take a millisecond, no limit back; 10 ms each way.
fn path(forward: DirectionConfig) -> Path {
    let ports = vec![
        port(Side::Near, NEAR, 10 * MILLISECOND, 10 * MILLISECOND),
        port(Side::Far, FAR, 0, 0),
    ];
    Path::new(forward, direction(0, Limits::default()), ports, 1 << 20)
}

/// Tells of packets by their time and identification.
#[derive(Default)]
struct Told {
    left: Vec<(Nanos, u16, u16)>,
    dropped: Vec<(u16, Cause)>,
    entered: usize,
}

impl Observer for Told {
    fn enters(&mut self, _now: Nanos, _port: u16, _packet: &[u8]) {
        self.entered += 1;
    }
    fn drops(&mut self, _now: Nanos, _port: u16, packet: &[u8], cause: Cause) {
        self.dropped.push((identification(packet), cause));
    }
    fn leaves(&mut self, _now: Nanos, due: Nanos, port: u16, packet: &[u8]) {
        self.left.push((due, port, identification(packet)));
    }
}

fn identification(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[4], packet[5]])
}

fn packet(number: u16, to: Ipv4Addr, codepoint: u8) -> Vec<u8> {
    let segment = Segment {
        source: NEAR.octets(),
        destination: to.octets(),
        identification: number,
        codepoint,
        ..Segment::default()
    };
    let mut bytes = segment.headers();
    bytes.resize(1500, 0);
    bytes
}

fn enter(path: &mut Path, told: &mut Told, now: Nanos, from: u16, bytes: &[u8]) {
    let cell = path.slab.take().unwrap();
    path.slab.room(cell)[..bytes.len()].copy_from_slice(bytes);
    path.slab.set_length(cell, bytes.len());
    path.enter(now, from, cell, told);
}

/// Takes all that has left by `until`, as late as that.
fn drain(path: &mut Path, told: &mut Told, until: Nanos) {
    path.catch_up(until, told);
    while let Some(packet) = path.leave(until, told) {
        path.delivered(packet, true);
    }
}

#[test]
fn packets_are_serialised_and_delayed_however_late_one_looks() {
    let mut path = path(direction(12_000_000, Limits::packets(3)));
    let mut told = Told::default();
    for number in 0..5 {
        enter(&mut path, &mut told, 1000, 0, &packet(number, FAR, 0));
    }
    assert_eq!(told.dropped, [(3, Cause::Full), (4, Cause::Full)]);
    // What is in transmission leaves after a millisecond; nothing can come before.
    assert_eq!(path.next(), 11 * MILLISECOND + 1000);
    assert_eq!(path.report().in_transit, [3, 0]);
    drain(&mut path, &mut told, 50 * MILLISECOND);
    let due: Vec<Nanos> = told.left.iter().map(|(due, ..)| due - 1000).collect();
    assert_eq!(due, [11, 12, 13].map(|ms| ms * MILLISECOND));
    let counters = path.report().forward;
    assert_eq!((counters.entered.packets, counters.delivered.packets), (5, 3));
    assert_eq!((counters.waits.most(), counters.dropped()), (2 * MILLISECOND, 2));
    assert!(counters.lateness.most() > 36 * MILLISECOND);
    assert_eq!((path.slab.taken(), path.next()), (0, NEVER));
}

#[test]
fn the_other_direction_and_other_ports_have_their_own_delays() {
    let second = Ipv4Addr::new(10, 0, 0, 2);
    let ports = vec![
        port(Side::Near, NEAR, 30 * MILLISECOND, 5 * MILLISECOND),
        port(Side::Near, second, 10 * MILLISECOND, 20 * MILLISECOND),
        port(Side::Far, FAR, 0, 0),
    ];
    let unlimited = || direction(0, Limits::default());
    let mut path = Path::new(unlimited(), unlimited(), ports, 1 << 20);
    let mut told = Told::default();
    enter(&mut path, &mut told, 0, 0, &packet(1, FAR, 0));
    enter(&mut path, &mut told, 1, 1, &packet(2, FAR, 0));
    enter(&mut path, &mut told, 2, 2, &packet(3, NEAR, 0));
    enter(&mut path, &mut told, 3, 2, &packet(4, second, 0));
    drain(&mut path, &mut told, NEVER);
    told.left.sort_unstable();
    let expected = [(5, 0, 3), (10, 2, 2), (20, 1, 4), (30, 2, 1)];
    let found: Vec<_> = told.left.iter().map(|(due, to, n)| (due / MILLISECOND, *to, *n)).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_goes_nowhere_does_not_enter() {
    let mut path = path(direction(12_000_000, Limits::default()));
    let mut told = Told::default();
    enter(&mut path, &mut told, 0, 0, &packet(1, Ipv4Addr::BROADCAST, 0));
    enter(&mut path, &mut told, 0, 0, &packet(1, NEAR, 0));
    enter(&mut path, &mut told, 0, 0, &[0x45; 10]);
    let counters = path.report().forward;
    assert_eq!((counters.misaddressed, counters.entered.packets, told.entered), (3, 0, 0));
    assert_eq!((path.slab.taken(), path.next()), (0, NEVER));
}

#[test]
fn random_loss_comes_before_the_queue_and_the_policer_before_that() {
    let lossy = |policer| DirectionConfig {
        loss: Some(LinkLosses::new(LinkLoss::before(LossModel::Bernoulli(1.0)), Stream::of(7))),
        policer,
        ..direction(12_000_000, Limits::default())
    };
    let mut told = Told::default();
    let mut always = path(lossy(None));
    enter(&mut always, &mut told, 0, 0, &packet(1, FAR, 0));
    let tokens = TokenRate { rate_bps: NonZeroU64::MIN, burst_bytes: 1000 };
    let mut policed = path(lossy(Some(tokens)));
    enter(&mut policed, &mut told, 0, 0, &packet(2, FAR, 0));
    assert_eq!(told.dropped, [(1, Cause::Random), (2, Cause::Full)]);
    assert_eq!(policed.report().forward.full_drops, 1);
    assert_eq!(always.report().in_transit, [0, 0]);
}

#[test]
fn packets_lost_behind_the_queue_were_transmitted() {
    let model =
        LossModel::GilbertElliott { to_bad: 1.0, to_good: 1.0, loss_good: 0.0, loss_bad: 1.0 };
    let every_second = LinkLosses::new(LinkLoss::behind(model), Stream::of(7));
    let config =
        DirectionConfig { loss: Some(every_second), ..direction(12_000_000, Limits::packets(4)) };
    let mut path = path(config);
    let mut told = Told::default();
    for number in 0..6 {
        enter(&mut path, &mut told, 0, 0, &packet(number, FAR, 0));
    }
    drain(&mut path, &mut told, NEVER);
    // Four fit, and each takes a millisecond on the link, lost or not.
    assert_eq!(told.dropped[..2], [(4, Cause::Full), (5, Cause::Full)]);
    let first = u16::from(told.left[0].2 == 1);
    let due = |number: u16| (10 + 1 + Nanos::from(number)) * MILLISECOND;
    let got: Vec<_> = told.left.iter().map(|(due, _, number)| (*due, *number)).collect();
    assert_eq!(got, [first, first + 2].map(|number| (due(number), number)));
    assert_eq!(told.dropped[2..], [1 - first, 3 - first].map(|n| (n, Cause::Random)));
    let counters = path.report().forward;
    assert_eq!((counters.delivered.packets, counters.random_drops), (2, 2));
    assert_eq!((path.report().in_transit, path.slab.taken(), path.next()), ([0, 0], 0, NEVER));
}

#[test]
fn a_queue_that_marks_marks_the_header() {
    let codel = CodelConfig { ecn: true, ..CodelConfig::default() };
    let queue = QueueConfig::FqCodel(FqCodelConfig { codel, ..FqCodelConfig::default() });
    let config = DirectionConfig { queue, ..direction(1_200_000, Limits::default()) };
    let mut path = path(config);
    let mut marks = 0;
    for number in 0..200 {
        enter(&mut path, &mut Told::default(), u64::from(number), 0, &packet(number, FAR, 2));
    }
    path.catch_up(NEVER, &mut ());
    while let Some(left) = path.leave(NEVER, &mut ()) {
        marks += u64::from(path.slab.packet(left.cell)[1] == 3);
        path.delivered(left, true);
    }
    let counters = path.report().forward;
    assert_eq!((counters.marked, counters.delivered.packets), (marks, 200));
    assert!(marks > 5);
}

#[test]
fn jitter_keeps_the_order_or_does_not() {
    for reorder in [false, true] {
        // 9, 8, 7 ... milliseconds.
        let mut next = 10 * MILLISECOND;
        let delay = Box::new(move || {
            next -= MILLISECOND;
            next
        });
        let jitter = Some(Jitter { delay, reorder });
        let mut path = path(DirectionConfig { jitter, ..direction(0, Limits::default()) });
        let mut told = Told::default();
        for number in 0..3 {
            enter(&mut path, &mut told, 0, 0, &packet(number, FAR, 0));
        }
        drain(&mut path, &mut told, NEVER);
        let left: Vec<_> = told.left.iter().map(|(due, _, n)| (due / MILLISECOND, *n)).collect();
        let expected =
            if reorder { [(17, 2), (18, 1), (19, 0)] } else { [(19, 0), (19, 1), (19, 2)] };
        assert_eq!(left, expected);
    }
}

#[test]
fn what_a_device_does_not_take_is_lost_by_the_machinery() {
    let mut path = path(direction(0, Limits::default()));
    enter(&mut path, &mut Told::default(), 0, 0, &packet(1, FAR, 0));
    path.catch_up(NEVER, &mut ());
    let left = path.leave(NEVER, &mut ()).unwrap();
    path.delivered(left, false);
    path.overrun(1);
    let report = path.report();
    assert_eq!((report.forward.machinery_drops, report.back.machinery_drops), (1, 1));
}

/// An IPv6 packet without a payload.
fn packet6(to: Ipv6Addr) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    (bytes[0], bytes[6]) = (0x60, 59);
    bytes[8..24].copy_from_slice(&ipv6(NEAR).octets());
    bytes[24..40].copy_from_slice(&to.octets());
    bytes
}

#[test]
fn a_port_has_an_address_of_ipv6_too() {
    assert_eq!(ipv6(FAR).to_string(), "fd00::a80:1");
    let mut path = path(direction(0, Limits::default()));
    let mut told = Told::default();
    enter(&mut path, &mut told, 0, 0, &packet6(ipv6(FAR)));
    drain(&mut path, &mut told, 10 * MILLISECOND);
    assert_eq!(told.left, [(10 * MILLISECOND, 1, 0)]);
    // What is for all neighbours is for no link; what nobody has is counted.
    enter(&mut path, &mut told, 0, 0, &packet6("ff02::16".parse().unwrap()));
    assert_eq!(path.report().forward.misaddressed, 0);
    enter(&mut path, &mut told, 0, 0, &packet6("fd00::1".parse().unwrap()));
    assert_eq!((path.report().forward.misaddressed, told.entered), (1, 1));
    assert_eq!(path.slab.taken(), 0);
}

#[test]
fn a_way_out_takes_what_no_port_wants_from_the_near_side() {
    let elsewhere = Ipv4Addr::new(192, 0, 2, 7);
    let mut path = path(direction(0, Limits::default())).with_way_out();
    let mut told = Told::default();
    enter(&mut path, &mut told, 0, 0, &packet(1, elsewhere, 0));
    enter(&mut path, &mut told, 0, 0, &packet(2, Ipv4Addr::new(224, 0, 0, 1), 0));
    enter(&mut path, &mut told, 0, 0, &packet6("2001:db8::1".parse().unwrap()));
    // From the far side only what the near one has.
    enter(&mut path, &mut told, 0, 1, &packet(3, elsewhere, 0));
    drain(&mut path, &mut told, 10 * MILLISECOND);
    assert_eq!(told.left, [(10 * MILLISECOND, 1, 1)]);
}
