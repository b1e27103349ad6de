//! Fair queueing, stepped from departure to departure, against what fairness means.

use super::*;
use crate::clock::transmitter;
use crate::queue::{AnyQueue, QueueConfig};
use crate::random::{Named, Purpose};
use proptest::prelude::*;

/// 1500 bytes take this long.
const TIME: Nanos = 1000;
const RATE: u64 = 12_000_000_000;
const PACKET: u32 = 1500;

#[derive(Default)]
struct Heard {
    /// Packet nanoseconds, and until when.
    integral: u64,
    until: Nanos,
}

impl QueueProbe for Heard {
    fn queue_held(&mut self, packets: usize, until: Nanos) {
        self.integral += packets as u64 * (until - self.until);
        self.until = until;
    }
    fn queue_seen(&mut self, _packets: usize) {}
}

/// A queue before its link: who sent each packet that came, went or was dropped, and when.
struct Bench {
    queue: AnyQueue,
    link: Transmitter,
    heard: Heard,
    came: Vec<(Nanos, u32)>,
    /// When service began.
    served: Vec<(Nanos, u32)>,
    dropped: Vec<(Nanos, u32)>,
    /// Packet numbers of each flow, in the order in which they were served.
    numbers: Vec<Vec<u32>>,
    /// Packets of each flow that wait, and whether the longest queue loses a packet.
    lengths: [u32; 16],
    from_longest: bool,
    arrivals: u32,
}

impl Bench {
    fn new(config: FairConfig, most: Option<u64>) -> Self {
        Self {
            queue: {
                let stream = || Stream::named(1, 0, 0, Purpose::Tie);
                AnyQueue::new(QueueConfig::Fair(config), most, stream(), stream())
            },
            link: transmitter(Some(RATE), PACKET),
            heard: Heard::default(),
            came: Vec::new(),
            served: Vec::new(),
            dropped: Vec::new(),
            numbers: vec![Vec::new(); 16],
            lengths: [0; 16],
            from_longest: config.drop != DropPolicy::Arriving && config.buffers == Buffers::Shared,
            arrivals: 0,
        }
    }

    /// Departures up to and at `now`.
    fn go_to(&mut self, now: Nanos) {
        while self.queue.next_departure() <= now {
            let at = self.queue.next_departure();
            if let Some((leaves, packet)) = self.queue.serve(&mut self.link, &mut self.heard) {
                assert_eq!(leaves, at + TIME, "the link is never idle while packets wait");
                self.lengths[packet.source() as usize] -= 1;
                self.serves(at, packet);
            }
        }
    }

    fn serves(&mut self, at: Nanos, packet: Packet) {
        self.served.push((at, packet.source()));
        self.numbers[packet.source() as usize].push(packet.number());
    }

    fn arrive(&mut self, now: Nanos, source: u32) -> Verdict {
        self.go_to(now);
        self.arrivals += 1;
        let packet = Packet::new(source, 0, self.arrivals, crate::packet::Label::default());
        self.came.push((now, source));
        let verdict = self.queue.offer(now, &packet, &mut self.link, &mut self.heard);
        self.lengths[source as usize] += 1;
        match verdict {
            Verdict::Departs { leaves, found } => {
                assert_eq!((leaves, found), (now + TIME, 0));
                self.lengths[source as usize] -= 1;
                self.serves(now, packet);
            }
            Verdict::Held { evicted: Some(packet), .. } => self.drops(now, packet.source()),
            Verdict::Held { .. } => {}
            Verdict::Dropped => self.drops(now, source),
        }
        let accounted = self.served.len() + self.dropped.len() + self.queue.waiting() as usize;
        assert_eq!(self.came.len(), accounted, "packets are conserved");
        verdict
    }

    /// With the packet that arrived counted in.
    fn drops(&mut self, now: Nanos, source: u32) {
        let length = self.lengths[source as usize];
        assert!(!self.from_longest || Some(&length) == self.lengths.iter().max());
        self.lengths[source as usize] -= 1;
        self.dropped.push((now, source));
    }

    fn has_flow(&self, source: u32) -> bool {
        match &self.queue {
            AnyQueue::Fair(queue) => queue.flows.find(source) != NONE,
            other => panic!("{other:?} has no flows"),
        }
    }

    fn order(&self) -> Vec<u32> {
        self.served.iter().map(|(_, source)| *source).collect()
    }
}

fn config(packets_a_turn: u32, buffers: Buffers, drop: DropPolicy) -> FairConfig {
    let quantum_bytes = packets_a_turn * PACKET;
    FairConfig { quantum_bytes, packet_bytes: PACKET, buffers, drop, ties: Ties::Latest }
}

fn drawn(ties: Ties) -> FairConfig {
    FairConfig { ties, ..config(1, Buffers::Shared, DropPolicy::LongestTail) }
}

fn round_robin() -> FairConfig {
    config(1, Buffers::Shared, DropPolicy::Arriving)
}

fn count(events: &[(Nanos, u32)], source: u32) -> usize {
    events.iter().filter(|(_, from)| *from == source).count()
}

#[test]
fn one_packet_of_each_in_turn() {
    let mut bench = Bench::new(round_robin(), None);
    for source in [0, 0, 0, 0, 1, 1, 2] {
        bench.arrive(10, source);
    }
    bench.go_to(100 * TIME);
    assert_eq!(bench.order(), [0, 1, 2, 0, 1, 0, 0]);
    assert_eq!(bench.heard.integral, TIME * (7 + 6 + 5 + 4 + 3 + 2 + 1));
    assert_eq!((bench.queue.held(), bench.queue.next_departure()), (0, NEVER));
}

#[test]
fn who_comes_during_a_packet_s_service_is_before_the_next_packet_of_its_flow() {
    let mut bench = Bench::new(round_robin(), None);
    bench.arrive(0, 0);
    bench.arrive(0, 0);
    bench.arrive(TIME / 2, 1);
    bench.go_to(10 * TIME);
    assert_eq!(bench.order(), [0, 1, 0]);
    // The same when its second packet comes while its queue is empty and the first is being sent.
    bench.arrive(10 * TIME, 0);
    bench.arrive(10 * TIME + 1, 0);
    bench.arrive(10 * TIME + 2, 1);
    bench.go_to(20 * TIME);
    assert_eq!(bench.order()[3..], [0, 1, 0]);
}

#[test]
fn a_quantum_is_used_up_in_a_turn_and_its_rest_is_kept() {
    let drr = FairConfig { quantum_bytes: 2250, ..round_robin() };
    let mut bench = Bench::new(drr, None);
    for source in [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1] {
        bench.arrive(0, source);
    }
    bench.go_to(100 * TIME);
    // One packet and half a packet's credit, then two.
    assert_eq!(bench.order(), [0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1]);
}

#[test]
fn a_flow_s_room_holds_the_packet_in_transmission_too() {
    let mut bench = Bench::new(config(1, Buffers::PerFlow, DropPolicy::Arriving), Some(2));
    let fits = |verdict| verdict != Verdict::Dropped;
    assert!(fits(bench.arrive(0, 0)) && fits(bench.arrive(0, 0)) && !fits(bench.arrive(0, 0)));
    assert!(fits(bench.arrive(0, 1)) && fits(bench.arrive(0, 1)) && !fits(bench.arrive(0, 1)));
    assert!(fits(bench.arrive(TIME, 0)), "its first packet has left");
    assert!(!fits(bench.arrive(TIME, 1)));
}

#[test]
fn a_full_shared_buffer_drops_what_arrives_or_from_the_longest_queue() {
    let numbers = |drop| {
        let mut bench = Bench::new(config(1, Buffers::Shared, drop), Some(5));
        // Packet 1 is in transmission; 2, 3 and 4 wait, and 5 of the second flow.
        for source in [0, 0, 0, 0, 1, 1, 1, 1, 2] {
            bench.arrive(0, source);
        }
        bench.go_to(100 * TIME);
        bench.numbers
    };
    let arriving = numbers(DropPolicy::Arriving);
    assert_eq!(arriving[..3], [vec![1, 2, 3, 4], vec![5], vec![]]);
    // Packet 6 pushes 4 out; 7 and 8 find their own flow as long as the longest; 9 pushes out the
    // tail of the flow that came to two packets last.
    let tail = numbers(DropPolicy::LongestTail);
    assert_eq!(tail[..3], [vec![1, 2], vec![5, 6], vec![9]]);
    let head = numbers(DropPolicy::LongestHead);
    assert_eq!(head[..3], [vec![1, 3, 4], vec![8], vec![9]]);
}

#[test]
fn a_flow_that_loses_its_only_packet_leaves_the_round() {
    let mut bench = Bench::new(drawn(Ties::RandomOthers), Some(4));
    // Packet 1 is in transmission, and one packet of each of three flows waits.
    for source in [0, 1, 2, 3, 4] {
        bench.arrive(0, source);
    }
    let lost = bench.dropped[0].1;
    assert!((1..4).contains(&lost) && !bench.has_flow(lost));
    // It comes back, at the end of the round, and another one goes.
    bench.arrive(0, lost);
    let second = bench.dropped[1].1;
    assert!(second != lost);
    bench.go_to(100 * TIME);
    let left = [1, 2, 3, 4, lost].into_iter();
    let mut expected: Vec<u32> = left.filter(|source| *source != second).collect();
    expected.remove(expected.iter().position(|source| *source == lost).unwrap());
    assert_eq!(bench.order(), [vec![0], expected].concat());
    assert!((0..5).all(|source| !bench.has_flow(source)));
}

#[test]
fn of_equal_queues_each_loses_as_often() {
    let lost = |ties| {
        let mut bench = Bench::new(drawn(ties), Some(9));
        for at in 0..6000 {
            // A packet of flow 0 is in transmission; of 0 and 4 one more waits, of the others two.
            let now = 100 * TIME * at;
            for source in [0, 0, 1, 1, 2, 2, 3, 3, 4, 0] {
                bench.arrive(now, source);
            }
        }
        [0, 1, 2, 3, 4].map(|source| count(&bench.dropped, source))
    };
    // Standard deviations are below 40.
    let near = |found: [usize; 5], expected: [usize; 5]| {
        let apart = found.iter().zip(expected).map(|(a, b)| a.abs_diff(b)).max();
        assert!(apart < Some(160), "{found:?} for {expected:?}");
    };
    assert_eq!(lost(Ties::Latest), [6000, 0, 0, 0, 0]);
    near(lost(Ties::Random), [1500, 1500, 1500, 1500, 0]);
    near(lost(Ties::RandomOthers), [0, 2000, 2000, 2000, 0]);
}

/// Gaps and sources of arrivals: a link's time is 1000, so that some loads are above one.
fn workload(flows: u32, longest_gap: u64) -> impl Strategy<Value = Vec<(u64, u32)>> {
    // Sources of a low number send more.
    let source = (0..flows, 0..flows).prop_map(|(a, b)| a.min(b));
    prop::collection::vec((0..longest_gap, source), 1..400)
}

fn any_config() -> impl Strategy<Value = FairConfig> {
    let buffers = prop_oneof![Just(Buffers::PerFlow), Just(Buffers::Shared)];
    let drop = prop_oneof![
        Just(DropPolicy::Arriving),
        Just(DropPolicy::LongestTail),
        Just(DropPolicy::LongestHead)
    ];
    let ties = prop_oneof![Just(Ties::Latest), Just(Ties::Random), Just(Ties::RandomOthers)];
    let parts = (PACKET..5 * PACKET, buffers, drop, ties);
    parts.prop_map(|(quantum_bytes, buffers, drop, ties)| FairConfig {
        quantum_bytes,
        packet_bytes: PACKET,
        buffers,
        drop,
        ties,
    })
}

/// Fluid fair sharing without loss: all flows that have fluid are served at the same rate, and
/// together at that of the link.
struct Fluid {
    backlog: Vec<f64>,
    served: Vec<f64>,
    now: f64,
}

impl Fluid {
    fn go_to(&mut self, now: f64) {
        while self.now < now {
            let active = self.backlog.iter().filter(|left| **left > 1e-9).count() as f64;
            if active == 0.0 {
                self.now = now;
                break;
            }
            let positive = self.backlog.iter().copied().filter(|left| *left > 1e-9);
            let least = positive.fold(f64::INFINITY, f64::min);
            let each = least.min((now - self.now) / TIME as f64 / active);
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
    /// Packets of a flow keep their order, the buffer is never exceeded, and every packet that is
    /// not dropped is served.
    #[test]
    fn packets_are_served_in_their_flow_s_order(
        config in any_config(),
        most in 1_u64..12,
        arrivals in workload(8, 1500),
    ) {
        let mut bench = Bench::new(config, Some(most));
        let mut now = 0;
        for (gap, source) in arrivals {
            now += gap;
            bench.arrive(now, source);
            if config.buffers == Buffers::Shared {
                prop_assert!(bench.queue.held() as u64 <= most);
            }
        }
        bench.go_to(NEVER - 1);
        prop_assert_eq!(bench.came.len(), bench.served.len() + bench.dropped.len());
        prop_assert!(bench.numbers.iter().all(|n| n.windows(2).all(|pair| pair[0] < pair[1])));
        prop_assert_eq!(bench.queue.held(), 0);
        prop_assert!((0..8).all(|source| !bench.has_flow(source)));
    }

    /// While two flows both have packets, neither is served more than a quantum and a packet more
    /// than the other; packet by packet, one packet.
    #[test]
    fn backlogged_flows_get_the_same(
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
        bench.go_to(NEVER - 1);
        let most = if quantum_bytes == PACKET { 1 } else { quantum_bytes.div_ceil(PACKET) + 1 };
        for a in 0..6 {
            for b in 0..a {
                prop_assert!(largest_lead(&bench, a, b) <= i64::from(most), "{} and {}", a, b);
            }
        }
    }

    /// A packet at the head of its flow's queue waits for one turn of each other flow at the most.
    #[test]
    fn nobody_starves(turn in 1_u32..4, arrivals in workload(8, 900)) {
        let mut bench = Bench::new(config(turn, Buffers::Shared, DropPolicy::Arriving), None);
        let mut now = 0;
        for (gap, source) in arrivals {
            now += gap;
            bench.arrive(now, source);
        }
        bench.go_to(NEVER - 1);
        for source in 0..8 {
            let came = bench.came.iter().filter(|(_, from)| *from == source);
            let served = bench.served.iter().filter(|(_, from)| *from == source);
            let mut before = 0;
            for ((came, _), (served, _)) in came.zip(served) {
                let at_head = (*came).max(before);
                prop_assert!(served - at_head <= TIME * u64::from(turn) * 8);
                before = *served;
            }
        }
    }

    /// Each flow has what a fluid would have given it, but for a packet of each flow in a round.
    #[test]
    fn it_is_within_a_round_of_fluid_fair_sharing(arrivals in workload(6, 1100)) {
        let mut bench = Bench::new(round_robin(), None);
        let mut fluid = Fluid { backlog: vec![0.0; 6], served: vec![0.0; 6], now: 0.0 };
        let mut now = 0;
        for (gap, source) in arrivals {
            now += gap;
            bench.arrive(now, source);
            fluid.go_to(now as f64);
            fluid.backlog[source as usize] += 1.0;
            for source in 0..6 {
                let packets = sent_by(&bench, now, source);
                let apart = packets - fluid.served[source as usize];
                prop_assert!(apart.abs() <= 6.0, "{apart} packets at {now}");
            }
        }
    }

    /// Flows of constant rates get their max-min shares where rooms are of flows, and where the
    /// longest queue is shortened.
    #[test]
    fn constant_rates_get_max_min_shares(
        gaps in prop::collection::vec(700_u64..40_000, 2..8),
        by_longest in any::<bool>(),
        ties in prop_oneof![Just(Ties::Latest), Just(Ties::Random), Just(Ties::RandomOthers)],
    ) {
        let rule = if by_longest {
            drawn(ties)
        } else {
            config(1, Buffers::PerFlow, DropPolicy::Arriving)
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
        bench.go_to(end);
        let wanted: Vec<f64> = gaps.iter().map(|gap| TIME as f64 / *gap as f64).collect();
        for (source, share) in (0..).zip(max_min(&wanted)) {
            let packets = count(&bench.served, source) as f64;
            // A buffer's worth may still wait, or have been there first.
            prop_assert!((packets - share * 2_000.0).abs() <= 8.0 * gaps.len() as f64 + 2.0);
        }
    }
}

/// Packets of a flow that the link has sent by `now`, in part.
fn sent_by(bench: &Bench, now: Nanos, source: u32) -> f64 {
    let of_flow = bench.served.iter().filter(|(_, from)| *from == source);
    of_flow.map(|(at, _)| ((now - at) as f64 / TIME as f64).min(1.0)).sum()
}

/// How much the services of two flows drift apart while both have packets, at the most.
fn largest_lead(bench: &Bench, a: u32, b: u32) -> i64 {
    let mut events: Vec<(Nanos, u8, u32)> = Vec::new();
    events.extend(bench.served.iter().map(|(at, from)| (*at, 1, *from)));
    events.extend(bench.came.iter().map(|(at, from)| (*at, 0, *from)));
    events.sort_unstable();
    let (mut waiting, mut lead, mut extremes, mut largest) = ([0_i64; 2], 0_i64, (0, 0), 0);
    for (_, kind, from) in events {
        let Some(at) = [a, b].iter().position(|flow| *flow == from) else { continue };
        waiting[at] += if kind == 0 { 1 } else { -1 };
        if kind == 1 {
            lead += if at == 0 { 1 } else { -1 };
            extremes = (lead.min(extremes.0), lead.max(extremes.1));
            largest = largest.max(extremes.1 - extremes.0);
        }
        if waiting.contains(&0) {
            extremes = (lead, lead);
        }
    }
    largest
}

/// Max-min shares of a link of rate 1: nobody has more than it wants, and what is left over is
/// shared by those who want more.
fn max_min(wanted: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut shares = vec![0.0; wanted.len()];
    let mut left = 1.0;
    for (served, at) in order.iter().enumerate() {
        shares[*at] = wanted[*at].min(left / (wanted.len() - served) as f64);
        left -= shares[*at];
    }
    shares
}
