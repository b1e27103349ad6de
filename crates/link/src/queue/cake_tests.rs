//! Tests of CAKE with traces of packets, and beside a link.

use super::*;
use crate::link::{OfferOutcome, QueueingLink};
use crate::packet::Ecn;
use crate::transmit::ConstantRate;
use proptest::prelude::*;
use std::collections::BTreeMap;

const MS: Nanos = MILLISECOND;

/// A packet's token in these tests: its number, its hosts, its codepoint, and what it acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Token {
    number: u32,
    hosts: [u32; 2],
    dscp: u8,
    ack: Option<u32>,
    echo: u8,
}

#[derive(Default)]
struct Recorder(Vec<(u32, DropReason)>);

impl QueueProbe<Token> for Recorder {
    fn on_drop(&mut self, _now: Nanos, packet: &Packet<Token>, reason: DropReason) {
        self.0.push((packet.token.number, reason));
    }
    fn hosts_of(&self, packet: &Packet<Token>) -> [u32; 2] {
        packet.token.hosts
    }
    fn dscp_of(&self, packet: &Packet<Token>) -> u8 {
        packet.token.dscp
    }
    fn ecn_echo_of(&self, packet: &Packet<Token>) -> u8 {
        packet.token.echo
    }
    fn supersedes(&self, newer: &Packet<Token>, older: &Packet<Token>) -> bool {
        older.token.ack.is_some() && newer.token.ack > older.token.ack
    }
}

fn rate(bps: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(bps)
}

fn cake(config: CakeConfig) -> Cake<Token> {
    Cake::new(BufferLimits::default(), config, RandomStream::from_seed(1))
}

/// 12 Mbit/s: 1500 bytes take 1 ms.
fn shaped() -> CakeConfig {
    CakeConfig { rate_bps: rate(12_000_000), overhead_bytes: 0, ..CakeConfig::default() }
}

/// Departures of a link with an unlimited transmitter up to `until`: times and tokens. `arrivals`
/// must be in order of time.
fn departures(
    queue: Cake<Token>,
    transmitter: ConstantRate,
    arrivals: &[(Nanos, Packet<Token>)],
    until: Nanos,
    recorder: &mut Recorder,
) -> Vec<(Nanos, Token)> {
    let mut link = QueueingLink::new(queue, transmitter);
    let mut left = Vec::new();
    let mut arrivals = arrivals.iter().peekable();
    loop {
        let arrival = arrivals.peek().map_or(NEVER, |(time, _)| *time);
        let departure = link.next_departure();
        if arrival.min(departure) > until {
            return left;
        }
        if departure <= arrival {
            let served = link.transmit_next_packet(recorder);
            left.extend(served.map(|(time, packet)| (time, packet.token)));
        } else if let Some((time, packet)) = arrivals.next() {
            match link.offer(*time, *packet, recorder) {
                OfferOutcome::Departs { leaves, .. } => left.push((leaves, packet.token)),
                OfferOutcome::Held | OfferOutcome::Dropped(_) => {}
            }
        }
    }
}

/// Arrivals of several flows with a full backlog: flow, hosts and codepoint.
fn backlog(flows: &[(u32, [u32; 2], u8)], packets: u32, ecn: Ecn) -> Vec<(Nanos, Packet<Token>)> {
    let one = |number, (flow, hosts, dscp)| {
        let token = Token { number, hosts, dscp, ..Token::default() };
        (u64::from(number) * 10, Packet::new(token, flow, 1500).with_ecn(ecn))
    };
    (0..packets).flat_map(|number| flows.iter().map(move |flow| one(number, *flow))).collect()
}

/// Shares of departed packets by a key.
fn shares<K: Ord>(left: &[(Nanos, Token)], key: impl Fn(&Token) -> K) -> BTreeMap<K, f64> {
    let mut shares = BTreeMap::new();
    for (_, token) in left {
        *shares.entry(key(token)).or_insert(0.0) += 1.0 / left.len() as f64;
    }
    shares
}

#[test]
fn shaper_spaces_packets_without_burst() {
    let unlimited = ConstantRate::new(None);
    let mut recorder = Recorder::default();
    let arrivals = backlog(&[(1, [0, 0], 0)], 10, Ecn::Ect0);
    let left = departures(cake(shaped()), unlimited, &arrivals, 60 * MS, &mut recorder);
    // Linux truncates the time per byte, so each packet is up to 1 ns early.
    assert_eq!(left.len(), 10);
    for (number, (time, _)) in (0..).zip(&left) {
        assert!(time.abs_diff(number * MS) <= number, "{left:?}");
    }
}

#[test]
fn shaper_is_idle_after_a_pause_and_keeps_no_credit() {
    let mut arrivals = backlog(&[(1, [0, 0], 0)], 2, Ecn::NotEct);
    let token = Token::default();
    arrivals.extend((0..3).map(|_| (50 * MS, Packet::new(token, 1, 1500))));
    let mut recorder = Recorder::default();
    let left =
        departures(cake(shaped()), ConstantRate::new(None), &arrivals, 60 * MS, &mut recorder);
    let times: Vec<_> = left.iter().map(|(time, _)| (time + 5) / 10).collect();
    assert_eq!(times, [0, MS / 10, 5 * MS, 5 * MS + MS / 10, 5 * MS + 2 * MS / 10]);
}

#[test]
fn slower_transmitter_limits_a_shaped_link() {
    let arrivals = backlog(&[(1, [0, 0], 0)], 5, Ecn::NotEct);
    let slow = ConstantRate::new(rate(6_000_000));
    let left = departures(cake(shaped()), slow, &arrivals, 60 * MS, &mut Recorder::default());
    let times: Vec<_> = left.iter().map(|(time, _)| time / MS).collect();
    assert_eq!(times, [2, 4, 6, 8, 10]);
}

#[test]
fn shaped_length_follows_overhead_mpu_and_cells() {
    let config = CakeConfig { overhead_bytes: 18, mpu_bytes: 64, ..CakeConfig::default() };
    assert_eq!([1500, 40].map(|bytes| config.shaped_bytes(bytes)), [1518, 64]);
    let atm = CakeConfig { framing: CellFraming::Atm, overhead_bytes: 40, ..config };
    assert_eq!(atm.shaped_bytes(1500), 33 * 53); // 1540 bytes: 33 cells
    let ptm = CakeConfig { framing: CellFraming::Ptm, overhead_bytes: -4, mpu_bytes: 0, ..config };
    assert_eq!(ptm.shaped_bytes(1500), 1496 + 24);
}

#[test]
fn memory_of_packets_is_that_of_linux() {
    assert_eq!([1514, 66].map(memory_of), [2304, 768]);
}

#[test]
fn hosts_share_the_link_equally_whatever_the_number_of_their_flows() {
    // Host 1 has one flow, host 2 has four, towards different destinations.
    let flows: Vec<_> =
        (0..5).map(|flow| (flow, [1 + u32::from(flow > 0), 10 + flow], 0)).collect();
    let arrivals = backlog(&flows, 400, Ecn::Ect0);
    let share_of_first = |isolation| {
        let config = CakeConfig { isolation, ..shaped() };
        let until = 300 * MS;
        let mut recorder = Recorder::default();
        let left =
            departures(cake(config), ConstantRate::new(None), &arrivals, until, &mut recorder);
        shares(&left, |token| token.hosts[0])[&1]
    };
    use Isolation::{DualDsthost, DualSrchost, Flows, Srchost, TripleIsolate};
    for (isolation, expected) in
        [(Flows, 0.2), (DualDsthost, 0.2), (DualSrchost, 0.5), (TripleIsolate, 0.5), (Srchost, 0.5)]
    {
        let share = share_of_first(isolation);
        assert!((share - expected).abs() < 0.02, "{isolation:?}: {share}");
    }
}

#[test]
fn flowblind_is_first_in_first_out() {
    let arrivals = backlog(&[(1, [1, 1], 0), (2, [2, 2], 0)], 5, Ecn::Ect0);
    let config = CakeConfig { isolation: Isolation::Flowblind, ..shaped() };
    let left = departures(
        cake(config),
        ConstantRate::new(None),
        &arrivals,
        60 * MS,
        &mut Recorder::default(),
    );
    let order: Vec<_> = left.iter().map(|(_, token)| (token.number, token.hosts[0])).collect();
    let expected: Vec<_> = (0..5).flat_map(|number| [(number, 1), (number, 2)]).collect();
    assert_eq!(order, expected);
}

#[test]
fn sparse_flow_overtakes_a_backlog() {
    let mut arrivals = backlog(&[(1, [1, 1], 0)], 100, Ecn::Ect0);
    let token = Token { hosts: [2, 2], ..Token::default() };
    arrivals.push((20 * MS + 1, Packet::new(token, 2, 100)));
    let left = departures(
        cake(shaped()),
        ConstantRate::new(None),
        &arrivals,
        60 * MS,
        &mut Recorder::default(),
    );
    let place = left.iter().position(|(_, token)| token.hosts[0] == 2).unwrap();
    assert!(left[place].0 <= 21 * MS + 10, "{:?}", left[place]);
}

#[test]
fn tins_share_by_their_thresholds() {
    // Voice (EF) has priority up to a quarter of the rate, bulk (CS1) up to a sixteenth.
    let flows = [(1, [1, 1], 0), (2, [2, 2], 8), (3, [3, 3], 46)];
    let arrivals = backlog(&flows, 600, Ecn::Ect0);
    let left = departures(
        cake(CakeConfig { tins: Tins::Diffserv3, ..shaped() }),
        ConstantRate::new(None),
        &arrivals,
        500 * MS,
        &mut Recorder::default(),
    );
    let shares = shares(&left, |token| token.dscp);
    for (dscp, expected) in [(8, 1.0 / 16.0), (46, 1.0 / 4.0), (0, 11.0 / 16.0)] {
        assert!((shares[&dscp] - expected).abs() < 0.01, "{dscp}: {shares:?}");
    }
    let diffserv4 = cake(CakeConfig { tins: Tins::Diffserv4, ..shaped() });
    let tins = [0, 1, 8, 10, 18, 26, 32, 34, 40, 46, 48, 56, 57].map(|dscp| diffserv4.tin_of(dscp));
    assert_eq!(tins, [0, 1, 1, 0, 2, 2, 3, 2, 3, 3, 3, 3, 0]);
}

#[test]
fn voice_within_its_threshold_has_priority() {
    let mut arrivals = backlog(&[(1, [1, 1], 0)], 500, Ecn::Ect0);
    let token = Token { number: 9999, dscp: 46, ..Token::default() };
    // 10 % of the rate.
    arrivals.extend((0..20).map(|n| (50 * MS + n * 10 * MS + 3, Packet::new(token, 2, 1500))));
    let left = departures(
        cake(shaped()),
        ConstantRate::new(None),
        &arrivals,
        250 * MS,
        &mut Recorder::default(),
    );
    let voice: Vec<_> = left.iter().filter(|(_, token)| token.dscp == 46).collect();
    assert_eq!(voice.len(), 20);
    for (number, (time, _)) in (0..).zip(voice) {
        assert!(time - (50 * MS + number * 10 * MS) <= MS + 100, "{number}: {time}");
    }
}

#[test]
fn link_without_shaper_balances_tins_by_weight() {
    let flows = [(1, [1, 1], 0), (3, [3, 3], 46)];
    let arrivals = backlog(&flows, 2000, Ecn::Ect0);
    let transmitter = ConstantRate::new(rate(12_000_000));
    let config = CakeConfig { overhead_bytes: 0, ..CakeConfig::default() };
    let mut recorder = Recorder::default();
    let left = departures(cake(config), transmitter, &arrivals, 500 * MS, &mut recorder);
    let shares = shares(&left, |token| token.dscp);
    assert!((shares[&46] - 0.2).abs() < 0.03, "{shares:?}");
}

/// Acknowledgements that remain of those that arrive while one packet is transmitted.
fn remaining_acks(filter: AckFilter, acks: &[(Option<u32>, u8)]) -> Vec<u32> {
    let config = CakeConfig { ack_filter: filter, ..shaped() };
    let mut queue = cake(config);
    let mut recorder = Recorder::default();
    for (number, (ack, echo)) in (0..).zip(acks) {
        let token = Token { number, ack: *ack, echo: *echo, ..Token::default() };
        queue.enqueue(0, Packet::new(token, 1, 66), &mut recorder);
    }
    assert!(recorder.0.iter().all(|(_, reason)| *reason == DropReason::Superseded));
    assert_eq!(queue.waiting_backlog().packets as usize + recorder.0.len(), acks.len());
    let packets = queue.pool.packets(&queue.tins[0].queues[0].chain);
    packets.map(|packet| packet.token.number).collect()
}

#[test]
fn ack_filter_keeps_two_acks_and_the_aggressive_filter_one() {
    let acks: Vec<_> = (1..=6).map(|ack| (Some(ack), 0)).collect();
    assert_eq!(remaining_acks(AckFilter::Off, &acks).len(), 6);
    assert_eq!(remaining_acks(AckFilter::On, &acks), [4, 5]);
    assert_eq!(remaining_acks(AckFilter::Aggressive, &acks), [5]);
}

#[test]
fn ack_filter_keeps_data_duplicates_and_changes_of_the_echo() {
    let data = [(Some(1), 0), (None, 0), (Some(2), 0), (Some(3), 0)];
    assert_eq!(remaining_acks(AckFilter::On, &data), [1, 2, 3]);
    let duplicates = [(Some(7), 0), (Some(7), 0), (Some(7), 0)];
    assert_eq!(remaining_acks(AckFilter::Aggressive, &duplicates), [0, 1, 2]);
    // The last acknowledgement before a change of the echo remains.
    let echo = [(Some(1), 0), (Some(2), 1), (Some(3), 1), (Some(4), 1)];
    assert_eq!(remaining_acks(AckFilter::On, &echo), [0, 2, 3]);
}

#[test]
fn full_memory_drops_from_the_longest_queue() {
    let limits = BufferLimits { bytes: Some(10 * 2304), ..BufferLimits::default() };
    let mut queue = Cake::new(limits, shaped(), RandomStream::from_seed(1));
    let mut recorder = Recorder::default();
    for number in 0..12 {
        let token = Token { number, ..Token::default() };
        queue.enqueue(0, Packet::new(token, u32::from(number > 8), 1500), &mut recorder);
    }
    // Flow 0 has nine packets, and loses its first two.
    assert_eq!(recorder.0, [(0, DropReason::Full), (1, DropReason::Full)]);
    assert_eq!(queue.memory, 10 * 2304);
}

#[test]
fn flows_of_a_set_have_separate_queues() {
    let mut tin = Tin::new(&shaped(), 1, 1);
    let index_of = |tin: &mut Tin, tag| {
        let index = tin.queue_of(tag, || [None; 2]);
        tin.queues[index as usize].rotation = Rotation::Sparse;
        index
    };
    // Eight flows with equal buckets, then a ninth, which shares the first queue.
    let indices: Vec<_> = (0..9).map(|flow| index_of(&mut tin, 5 + flow * QUEUES)).collect();
    assert_eq!(indices, [0, 1, 2, 3, 4, 5, 6, 7, 0]);
    assert_eq!(index_of(&mut tin, 5 + 3 * QUEUES), 3);
}

proptest! {
    /// Each packet leaves or is dropped exactly once, the counts of queues and hosts end at zero,
    /// and the shaper is never exceeded.
    #[test]
    fn cake_conserves_packets_and_counts(
        steps in prop::collection::vec((0_u64..3_000_000, 0_u32..6, 0_u8..4, 60_u32..1500), 1..300),
        filter in 0_u8..3,
        isolation in 0_u8..3,
        ingress in any::<bool>(),
        memory in 4_000_u64..60_000,
    ) {
        let config = CakeConfig {
            ack_filter: [AckFilter::Off, AckFilter::On, AckFilter::Aggressive][filter as usize],
            isolation: [Isolation::Flows, Isolation::DualSrchost, Isolation::TripleIsolate]
                [isolation as usize],
            ingress,
            ..shaped()
        };
        let limits = BufferLimits { bytes: Some(memory), ..BufferLimits::default() };
        let mut now = 0;
        let mut arrivals = Vec::new();
        for (number, (pause, flow, kind, bytes)) in (0..).zip(&steps) {
            now += pause;
            let ack = (*kind == 1).then_some(number);
            let dscp = if *kind == 2 { 46 } else { 0 };
            let token = Token { number, hosts: [flow % 2, flow % 3], dscp, ack, echo: 0 };
            arrivals.push((now, Packet::new(token, *flow, *bytes)));
        }
        let queue = Cake::new(limits, config, RandomStream::from_seed(3));
        let mut link = QueueingLink::new(queue, ConstantRate::new(None));
        let (mut recorder, mut left) = (Recorder::default(), Vec::new());
        let mut serve = |link: &mut QueueingLink<Cake<Token>, ConstantRate>,
                         until: Nanos,
                         recorder: &mut Recorder| {
            while link.next_departure() <= until.min(NEVER - 1) {
                let served = link.transmit_next_packet(recorder);
                left.extend(served.map(|(time, packet)| (time, packet.token.number)));
            }
            left.len()
        };
        let mut direct = Vec::new();
        for (time, packet) in &arrivals {
            serve(&mut link, *time, &mut recorder);
            if let OfferOutcome::Departs { leaves, .. } = link.offer(*time, *packet, &mut recorder) {
                direct.push((leaves, packet.token.number));
            }
        }
        serve(&mut link, NEVER, &mut recorder);
        left.extend(direct);
        left.sort_unstable();
        let mut numbers: Vec<_> = left.iter().map(|(_, number)| *number).collect();
        let starts: Vec<_> = left.iter().map(|(time, number)| (*time, steps[*number as usize].3)).collect();
        // With `ingress`, drops use the shaper's time but not the failsafe's, which may then release a
        // packet early.
        let is_exact = !ingress || recorder.0.is_empty();
        for pair in starts.windows(2).filter(|_| is_exact) {
            // One ns per packet is lost to Linux's arithmetic.
            let needed = u64::from(pair[0].1) * 8000 / 12;
            prop_assert!(pair[1].0 + 2 >= pair[0].0 + needed, "{pair:?}");
        }
        numbers.extend(recorder.0.iter().map(|(number, _)| *number));
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..steps.len() as u32).collect::<Vec<_>>());
        let queue = link.queue();
        prop_assert_eq!(queue.memory, 0);
        prop_assert!(queue.tins.iter().all(|tin| tin.packets == 0));
        let bulk: u32 = queue.tins.iter().map(|tin| tin.bulk).sum();
        let of_hosts: Vec<u32> = queue.tins.iter().flat_map(|tin| &tin.hosts).map(|table| {
            table.bulk_queues.iter().sum()
        }).collect();
        if isolation > 0 {
            prop_assert!(of_hosts.iter().all(|of_host| *of_host <= bulk), "{of_hosts:?} {bulk}");
        }
    }
}
