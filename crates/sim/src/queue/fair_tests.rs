//! Tests of fair queueing against definitions of fairness.

use super::*;
use crate::clock::create_fixed_rate_transmitter;
use crate::queue::{AnyQueue, QueueConfig};
use crate::random::{NamedStream, StreamPurpose};
use proptest::prelude::*;

/// Transmission time of a packet.
const TIME: Nanos = 1000;
const RATE: u64 = 12_000_000_000;
const PACKET: u32 = 1500;

#[derive(Default)]
struct QueueIntegral {
    /// Queue length integrated over time, in packet nanoseconds, up to `until`.
    sum: u64,
    until: Nanos,
}

impl QueueProbe for QueueIntegral {
    fn on_queue_length_interval(&mut self, packets: usize, until: Nanos) {
        self.sum += packets as u64 * (until - self.until);
        self.until = until;
    }
    fn on_arrival_queue_length(&mut self, _packets: usize) {}
}

/// A queue with its link, and the log of its packets: time and source of arrivals, services and
/// drops.
struct Bench {
    queue: AnyQueue,
    link: Transmitter,
    integral: QueueIntegral,
    arrived: Vec<(Nanos, u32)>,
    /// Times are starts of service.
    served: Vec<(Nanos, u32)>,
    dropped: Vec<(Nanos, u32)>,
    /// Packet numbers of each flow in the order of service.
    numbers: Vec<Vec<u32>>,
    /// Queued packets of each flow, and whether the longest queue must lose a packet.
    lengths: [u32; 16],
    from_longest: bool,
    arrivals: u32,
}

impl Bench {
    fn new(config: FairConfig, limit: Option<u64>) -> Self {
        Self {
            queue: {
                let stream = || RandomStream::for_entity(1, 0, 0, StreamPurpose::Tie);
                AnyQueue::new(QueueConfig::Fair(config), limit, stream(), stream())
            },
            link: create_fixed_rate_transmitter(Some(RATE), PACKET),
            integral: QueueIntegral::default(),
            arrived: Vec::new(),
            served: Vec::new(),
            dropped: Vec::new(),
            numbers: vec![Vec::new(); 16],
            lengths: [0; 16],
            from_longest: config.drop != DropPolicy::Arriving
                && config.buffers == BufferAssignment::Shared,
            arrivals: 0,
        }
    }

    /// Serves packets up to and including `now`.
    fn advance_to(&mut self, now: Nanos) {
        while self.queue.next_departure() <= now {
            let at = self.queue.next_departure();
            if let Some((leaves, packet)) =
                self.queue.transmit_next_packet(&mut self.link, &mut self.integral)
            {
                assert_eq!(leaves, at + TIME, "the link is idle while packets wait");
                self.lengths[packet.source() as usize] -= 1;
                self.serves(at, packet);
            }
        }
    }

    fn serves(&mut self, at: Nanos, packet: Packet) {
        self.served.push((at, packet.source()));
        self.numbers[packet.source() as usize].push(packet.number());
    }

    fn arrive(&mut self, now: Nanos, source: u32) -> EnqueueOutcome {
        self.advance_to(now);
        self.arrivals += 1;
        let packet = Packet::new(source, 0, self.arrivals, crate::packet::PacketLabel::default());
        self.arrived.push((now, source));
        let verdict = self.queue.enqueue(now, &packet, &mut self.link, &mut self.integral);
        self.lengths[source as usize] += 1;
        match verdict {
            EnqueueOutcome::Departs { leaves, backlog } => {
                assert_eq!((leaves, backlog), (now + TIME, 0));
                self.lengths[source as usize] -= 1;
                self.serves(now, packet);
            }
            EnqueueOutcome::Held { evicted: Some(packet), .. } => self.drops(now, packet.source()),
            EnqueueOutcome::Held { .. } => {}
            EnqueueOutcome::Dropped => self.drops(now, source),
        }
        let accounted =
            self.served.len() + self.dropped.len() + self.queue.waiting_packets() as usize;
        assert_eq!(self.arrived.len(), accounted, "packets are conserved");
        verdict
    }

    /// Checks a drop; `lengths` includes the arrived packet.
    fn drops(&mut self, now: Nanos, source: u32) {
        let length = self.lengths[source as usize];
        assert!(!self.from_longest || Some(&length) == self.lengths.iter().max());
        self.lengths[source as usize] -= 1;
        self.dropped.push((now, source));
    }

    fn has_flow(&self, source: u32) -> bool {
        match &self.queue {
            AnyQueue::Fair(queue) => queue.flows.find_slot(source) != NO_INDEX,
            other => panic!("{other:?} has no flows"),
        }
    }

    fn order(&self) -> Vec<u32> {
        self.served.iter().map(|(_, source)| *source).collect()
    }
}

fn config(packets_per_turn: u32, buffers: BufferAssignment, drop: DropPolicy) -> FairConfig {
    let quantum_bytes = packets_per_turn * PACKET;
    let (ties, head_of_line) = (TieBreakRule::Latest, HeadOfLine::InBuffer);
    FairConfig { quantum_bytes, packet_bytes: PACKET, buffers, drop, ties, head_of_line }
}

fn with_ties(ties: TieBreakRule) -> FairConfig {
    FairConfig { ties, ..config(1, BufferAssignment::Shared, DropPolicy::LongestTail) }
}

fn round_robin() -> FairConfig {
    config(1, BufferAssignment::Shared, DropPolicy::Arriving)
}

fn count(events: &[(Nanos, u32)], source: u32) -> usize {
    events.iter().filter(|(_, from)| *from == source).count()
}

fn with_heads_in_service(buffers: BufferAssignment, drop: DropPolicy) -> Bench {
    let head_of_line = HeadOfLine::InService;
    Bench::new(FairConfig { head_of_line, ..config(1, buffers, drop) }, Some(2))
}

#[test]
fn first_packet_of_each_flow_needs_no_buffer_if_it_is_in_service() {
    let mut bench = with_heads_in_service(BufferAssignment::Shared, DropPolicy::Arriving);
    for source in 0..5 {
        bench.arrive(0, source);
    }
    assert_eq!(bench.queue.held_packets(), 5);
    // Two more packets fill the buffer behind the heads of their flows.
    for source in [0, 1, 2] {
        bench.arrive(0, source);
    }
    assert_eq!((bench.queue.held_packets(), bench.dropped.as_slice()), (7, &[(0, 2)][..]));
    // A new flow still has room. The second packet of flow 0 moves to the head.
    bench.arrive(1, 5);
    bench.arrive(TIME + 1, 2);
    assert_eq!((bench.queue.held_packets(), bench.dropped.len()), (8, 1));
    bench.advance_to(100 * TIME);
    bench.arrive(100 * TIME, 9);
    assert_eq!(bench.queue.held_packets(), 1);
}

#[test]
fn individual_buffer_excludes_the_packet_in_service() {
    let mut bench = with_heads_in_service(BufferAssignment::PerFlow, DropPolicy::Arriving);
    for source in [0, 0, 0, 0, 1, 1, 1, 1] {
        bench.arrive(0, source);
    }
    assert_eq!(bench.dropped, [(0, 0), (0, 1)]);
}

#[test]
fn full_buffer_behind_the_heads_evicts_from_the_longest_queue() {
    let mut bench = with_heads_in_service(BufferAssignment::Shared, DropPolicy::LongestTail);
    for source in [0, 1, 1, 1, 2, 2] {
        bench.arrive(0, source);
    }
    assert_eq!(bench.dropped, [(0, 1)]);
    assert_eq!(bench.queue.held_packets(), 5);
}

#[test]
fn round_robin_serves_one_packet_per_flow_and_turn() {
    let mut bench = Bench::new(round_robin(), None);
    for source in [0, 0, 0, 0, 1, 1, 2] {
        bench.arrive(10, source);
    }
    bench.advance_to(100 * TIME);
    assert_eq!(bench.order(), [0, 1, 2, 0, 1, 0, 0]);
    assert_eq!(bench.integral.sum, TIME * (7 + 6 + 5 + 4 + 3 + 2 + 1));
    assert_eq!((bench.queue.held_packets(), bench.queue.next_departure()), (0, NEVER));
}

#[test]
fn flow_joining_during_service_precedes_the_served_flow() {
    let mut bench = Bench::new(round_robin(), None);
    bench.arrive(0, 0);
    bench.arrive(0, 0);
    bench.arrive(TIME / 2, 1);
    bench.advance_to(10 * TIME);
    assert_eq!(bench.order(), [0, 1, 0]);
    // Same order if the second packet arrives while the queue is empty and the first is in
    // transmission.
    bench.arrive(10 * TIME, 0);
    bench.arrive(10 * TIME + 1, 0);
    bench.arrive(10 * TIME + 2, 1);
    bench.advance_to(20 * TIME);
    assert_eq!(bench.order()[3..], [0, 1, 0]);
}

#[test]
fn unused_quantum_is_kept_for_the_next_turn() {
    let drr = FairConfig { quantum_bytes: 2250, ..round_robin() };
    let mut bench = Bench::new(drr, None);
    for source in [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1] {
        bench.arrive(0, source);
    }
    bench.advance_to(100 * TIME);
    // One packet with a remaining credit of half a packet, then two.
    assert_eq!(bench.order(), [0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1]);
}

#[test]
fn per_flow_limit_includes_packet_in_transmission() {
    let mut bench = Bench::new(config(1, BufferAssignment::PerFlow, DropPolicy::Arriving), Some(2));
    let fits = |verdict| verdict != EnqueueOutcome::Dropped;
    assert!(fits(bench.arrive(0, 0)) && fits(bench.arrive(0, 0)) && !fits(bench.arrive(0, 0)));
    assert!(fits(bench.arrive(0, 1)) && fits(bench.arrive(0, 1)) && !fits(bench.arrive(0, 1)));
    assert!(fits(bench.arrive(TIME, 0)), "the first packet has left");
    assert!(!fits(bench.arrive(TIME, 1)));
}

#[test]
fn full_shared_buffer_drops_by_policy() {
    let numbers = |drop| {
        let mut bench = Bench::new(config(1, BufferAssignment::Shared, drop), Some(5));
        // Packet 1 is in transmission; 2, 3 and 4 wait, and so does 5 of the second flow.
        for source in [0, 0, 0, 0, 1, 1, 1, 1, 2] {
            bench.arrive(0, source);
        }
        bench.advance_to(100 * TIME);
        bench.numbers
    };
    let arriving = numbers(DropPolicy::Arriving);
    assert_eq!(arriving[..3], [vec![1, 2, 3, 4], vec![5], vec![]]);
    // Packet 6 evicts 4; 7 and 8 arrive when their flow is as long as the longest; 9 evicts the
    // tail of the flow that reached two packets last.
    let tail = numbers(DropPolicy::LongestTail);
    assert_eq!(tail[..3], [vec![1, 2], vec![5, 6], vec![9]]);
    let head = numbers(DropPolicy::LongestHead);
    assert_eq!(head[..3], [vec![1, 3, 4], vec![8], vec![9]]);
}

#[test]
fn flow_without_packets_after_eviction_leaves_the_round() {
    let mut bench = Bench::new(with_ties(TieBreakRule::RandomOthers), Some(4));
    // Packet 1 is in transmission, and one packet of each of three flows waits.
    for source in [0, 1, 2, 3, 4] {
        bench.arrive(0, source);
    }
    let lost = bench.dropped[0].1;
    assert!((1..4).contains(&lost) && !bench.has_flow(lost));
    // The flow rejoins at the end of the round, and another flow loses its packet.
    bench.arrive(0, lost);
    let second = bench.dropped[1].1;
    assert!(second != lost);
    bench.advance_to(100 * TIME);
    let flows = [1, 2, 3, 4, lost].into_iter();
    let mut expected: Vec<u32> = flows.filter(|source| *source != second).collect();
    expected.remove(expected.iter().position(|source| *source == lost).unwrap());
    assert_eq!(bench.order(), [vec![0], expected].concat());
    assert!((0..5).all(|source| !bench.has_flow(source)));
}

#[test]
fn ties_select_among_equally_long_queues() {
    let lost = |ties| {
        let mut bench = Bench::new(with_ties(ties), Some(9));
        for at in 0..6000 {
            // A packet of flow 0 is in transmission; one packet of flows 0 and 4 waits, and two
            // packets of each other flow.
            let now = 100 * TIME * at;
            for source in [0, 0, 1, 1, 2, 2, 3, 3, 4, 0] {
                bench.arrive(now, source);
            }
        }
        [0, 1, 2, 3, 4].map(|source| count(&bench.dropped, source))
    };
    // Standard deviations are below 40.
    let near = |counts: [usize; 5], expected: [usize; 5]| {
        let error = counts.iter().zip(expected).map(|(a, b)| a.abs_diff(b)).max();
        assert!(error < Some(160), "{counts:?} for {expected:?}");
    };
    assert_eq!(lost(TieBreakRule::Latest), [6000, 0, 0, 0, 0]);
    near(lost(TieBreakRule::Random), [1500, 1500, 1500, 1500, 0]);
    near(lost(TieBreakRule::RandomOthers), [0, 2000, 2000, 2000, 0]);
}

/// Gaps and sources of arrivals. A packet takes 1000 ns, so some loads are above one.
fn workload(flows: u32, max_gap: u64) -> impl Strategy<Value = Vec<(u64, u32)>> {
    // Sources with low indices send more.
    let source = (0..flows, 0..flows).prop_map(|(a, b)| a.min(b));
    prop::collection::vec((0..max_gap, source), 1..400)
}

fn any_config() -> impl Strategy<Value = FairConfig> {
    let buffers = prop_oneof![Just(BufferAssignment::PerFlow), Just(BufferAssignment::Shared)];
    let drop = prop_oneof![
        Just(DropPolicy::Arriving),
        Just(DropPolicy::LongestTail),
        Just(DropPolicy::LongestHead)
    ];
    let ties = prop_oneof![
        Just(TieBreakRule::Latest),
        Just(TieBreakRule::Random),
        Just(TieBreakRule::RandomOthers)
    ];
    let parts = (PACKET..5 * PACKET, buffers, drop, ties);
    parts.prop_map(|(quantum_bytes, buffers, drop, ties)| FairConfig {
        quantum_bytes,
        packet_bytes: PACKET,
        buffers,
        drop,
        ties,
        head_of_line: HeadOfLine::InBuffer,
    })
}

/// Fluid fair sharing without loss: all backlogged flows are served at the same rate, and in total
/// at the rate of the link.
struct Fluid {
    backlog: Vec<f64>,
    served: Vec<f64>,
    now: f64,
}

impl Fluid {
    fn advance_to(&mut self, now: f64) {
        while self.now < now {
            let active = self.backlog.iter().filter(|left| **left > 1e-9).count() as f64;
            if active == 0.0 {
                self.now = now;
                break;
            }
            let positive = self.backlog.iter().copied().filter(|left| *left > 1e-9);
            let min = positive.fold(f64::INFINITY, f64::min);
            let each = min.min((now - self.now) / TIME as f64 / active);
            for (left, served) in self.backlog.iter_mut().zip(&mut self.served) {
                if *left > 1e-9 {
                    *left -= each;
                    *served += each;
                }
            }
            self.now += each * active * TIME as f64;
            if each * active * (TIME as f64) < 1e-6 {
                self.now = now;
            }
        }
    }
}

proptest! {
    /// Flows stay in order, the buffer limit holds, and each packet is served or dropped.
    #[test]
    fn flows_stay_in_order_within_the_limit(
        config in any_config(),
        limit in 1_u64..12,
        arrivals in workload(8, 1500),
    ) {
        let mut bench = Bench::new(config, Some(limit));
        let mut now = 0;
        for (gap, source) in arrivals {
            now += gap;
            bench.arrive(now, source);
            if config.buffers == BufferAssignment::Shared {
                prop_assert!(bench.queue.held_packets() as u64 <= limit);
            }
        }
        bench.advance_to(NEVER - 1);
        prop_assert_eq!(bench.arrived.len(), bench.served.len() + bench.dropped.len());
        prop_assert!(bench.numbers.iter().all(|n| n.windows(2).all(|pair| pair[0] < pair[1])));
        prop_assert_eq!(bench.queue.held_packets(), 0);
        prop_assert!((0..8).all(|source| !bench.has_flow(source)));
    }

    /// While two flows are backlogged, their services differ by at most a quantum plus a packet, or
    /// by one packet if the quantum is a packet.
    #[test]
    fn backlogged_flows_get_equal_service(
        quantum_bytes in prop_oneof![Just(PACKET), PACKET..4 * PACKET],
        arrivals in workload(6, 600),
    ) {
        let drr = FairConfig { quantum_bytes, ..round_robin() };
        let mut bench = Bench::new(drr, None);
        let mut now = 0;
        for (gap, source) in arrivals {
            now += gap;
            bench.arrive(now, source);
        }
        bench.advance_to(NEVER - 1);
        let max = if quantum_bytes == PACKET { 1 } else { quantum_bytes.div_ceil(PACKET) + 1 };
        for a in 0..6 {
            for b in 0..a {
                prop_assert!(max_lead(&bench, a, b) <= i64::from(max), "{} and {}", a, b);
            }
        }
    }

    /// A packet at the head of a flow waits for at most one turn of each other flow.
    #[test]
    fn head_packets_wait_at_most_one_round(turn in 1_u32..4, arrivals in workload(8, 900)) {
        let mut bench = Bench::new(config(turn, BufferAssignment::Shared, DropPolicy::Arriving), None);
        let mut now = 0;
        for (gap, source) in arrivals {
            now += gap;
            bench.arrive(now, source);
        }
        bench.advance_to(NEVER - 1);
        for source in 0..8 {
            let came = bench.arrived.iter().filter(|(_, from)| *from == source);
            let served = bench.served.iter().filter(|(_, from)| *from == source);
            let mut before = 0;
            for ((came, _), (served, _)) in came.zip(served) {
                let at_head = (*came).max(before);
                prop_assert!(served - at_head <= TIME * u64::from(turn) * 8);
                before = *served;
            }
        }
    }

    /// The service of each flow differs from fluid fair sharing by at most one packet per flow.
    #[test]
    fn service_is_within_one_round_of_fluid_fair_sharing(arrivals in workload(6, 1100)) {
        let mut bench = Bench::new(round_robin(), None);
        let mut fluid = Fluid { backlog: vec![0.0; 6], served: vec![0.0; 6], now: 0.0 };
        let mut now = 0;
        for (gap, source) in arrivals {
            now += gap;
            bench.arrive(now, source);
            fluid.advance_to(now as f64);
            fluid.backlog[source as usize] += 1.0;
            for source in 0..6 {
                let packets = sent_by(&bench, now, source);
                let error = packets - fluid.served[source as usize];
                prop_assert!(error.abs() <= 6.0, "{error} packets at {now}");
            }
        }
    }

    /// Flows of constant rates get their max-min shares with per-flow buffers and with drops from
    /// the longest queue.
    #[test]
    fn constant_rates_get_max_min_shares(
        gaps in prop::collection::vec(700_u64..40_000, 2..8),
        by_longest in any::<bool>(),
        ties in prop_oneof![Just(TieBreakRule::Latest), Just(TieBreakRule::Random), Just(TieBreakRule::RandomOthers)],
    ) {
        let rule = if by_longest {
            with_ties(ties)
        } else {
            config(1, BufferAssignment::PerFlow, DropPolicy::Arriving)
        };
        let mut bench = Bench::new(rule, Some(8 * gaps.len() as u64));
        let end = 2_000 * TIME;
        let mut arrivals: Vec<(Nanos, u32)> = Vec::new();
        for (source, gap) in (0..).zip(&gaps) {
            arrivals.extend((0..end / gap).map(|n| (n * gap + u64::from(source), source)));
        }
        arrivals.sort_unstable();
        for (at, source) in &arrivals {
            bench.arrive(*at, *source);
        }
        bench.advance_to(end);
        let wanted: Vec<f64> = gaps.iter().map(|gap| TIME as f64 / *gap as f64).collect();
        for (source, share) in (0..).zip(max_min(&wanted)) {
            let packets = count(&bench.served, source) as f64;
            // The tolerance is the content of the buffer at the end, or during the initial
            // transient.
            prop_assert!((packets - share * 2_000.0).abs() <= 8.0 * gaps.len() as f64 + 2.0);
        }
    }
}

/// Packets of a flow that the link has sent by `now`, including the sent part of a packet.
fn sent_by(bench: &Bench, now: Nanos, source: u32) -> f64 {
    let of_flow = bench.served.iter().filter(|(_, from)| *from == source);
    of_flow.map(|(at, _)| ((now - at) as f64 / TIME as f64).min(1.0)).sum()
}

/// Maximum difference of the services of two flows while both are backlogged.
fn max_lead(bench: &Bench, a: u32, b: u32) -> i64 {
    let mut events: Vec<(Nanos, u8, u32)> = Vec::new();
    events.extend(bench.served.iter().map(|(at, from)| (*at, 1, *from)));
    events.extend(bench.arrived.iter().map(|(at, from)| (*at, 0, *from)));
    events.sort_unstable();
    let (mut waiting, mut lead, mut extremes, mut largest) = ([0_i64; 2], 0_i64, (0, 0), 0);
    for (_, kind, from) in events {
        let Some(index) = [a, b].iter().position(|flow| *flow == from) else { continue };
        waiting[index] += if kind == 0 { 1 } else { -1 };
        if kind == 1 {
            lead += if index == 0 { 1 } else { -1 };
            extremes = (lead.min(extremes.0), lead.max(extremes.1));
            largest = largest.max(extremes.1 - extremes.0);
        }
        if waiting.contains(&0) {
            extremes = (lead, lead);
        }
    }
    largest
}

/// Max-min shares of a link of rate 1: no flow gets more than its demand, and the rest is shared by
/// the flows with higher demands.
fn max_min(wanted: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut shares = vec![0.0; wanted.len()];
    let mut remaining = 1.0;
    for (served, flow) in order.iter().enumerate() {
        shares[*flow] = wanted[*flow].min(remaining / (wanted.len() - served) as f64);
        remaining -= shares[*flow];
    }
    shares
}
