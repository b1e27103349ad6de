//! Properties of all queue disciplines, with random arrivals.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use tcpcast_link::link::{OfferOutcome, QueueingLink};
use tcpcast_link::queue::{
    AnyQueue, Backlog, BufferAssignment, BufferLimits, CakeConfig, CodelConfig, CodelRules,
    DropPolicy, DropReason, DrrConfig, DualPi2Config, FqCodelConfig, HeadOfLine, Isolation,
    PieConfig, PieRules, QueueConfig, QueueDiscipline, QueueProbe, RedConfig, RedRules,
    TieBreakRule, Tins,
};
use tcpcast_link::random::RandomStream;
use tcpcast_link::transmit::ConstantRate;
use tcpcast_link::{Ecn, NEVER, Nanos, Packet};

const MS: Nanos = 1_000_000;

fn drr(
    buffers: BufferAssignment,
    drop: DropPolicy,
    ties: TieBreakRule,
    quantum: u32,
) -> QueueConfig {
    let quantum_bytes = NonZeroU32::new(quantum).unwrap();
    QueueConfig::Drr(DrrConfig {
        quantum_bytes,
        buffers,
        drop,
        ties,
        head_of_line: HeadOfLine::InBuffer,
        heavy: None,
    })
}

fn fq_codel(rules: CodelRules, queues: u32, quantum: u32) -> QueueConfig {
    QueueConfig::FqCodel(FqCodelConfig {
        codel: CodelConfig {
            target: MS,
            interval: 10 * MS,
            ecn: true,
            rules,
            ..Default::default()
        },
        queues: NonZeroU32::new(queues).unwrap(),
        quantum_bytes: NonZeroU32::new(quantum).unwrap(),
        ..FqCodelConfig::default()
    })
}

/// FQ-CoDel without early drops, with enough queues that no two flows share a queue.
fn flow_queueing(quantum: u32) -> QueueConfig {
    QueueConfig::FqCodel(FqCodelConfig {
        codel: CodelConfig { target: NEVER / 2, ..CodelConfig::default() },
        queues: NonZeroU32::new(60_000).unwrap(),
        quantum_bytes: NonZeroU32::new(quantum).unwrap(),
        ..FqCodelConfig::default()
    })
}

fn config() -> impl Strategy<Value = QueueConfig> {
    let red = RedConfig {
        min_threshold: 2.0,
        max_threshold: 6.0,
        max_probability: 0.2,
        weight: 0.1,
        gentle: true,
        adaptive: true,
        rules: RedRules::Linux { packet_bytes: NonZeroU32::MIN.saturating_add(1499) },
        packets_per_second: 1e3,
        ecn: true,
    };
    let codel = |rules, ecn| {
        QueueConfig::Codel(CodelConfig {
            target: MS,
            interval: 10 * MS,
            ecn,
            rules,
            ..CodelConfig::default()
        })
    };
    let pie = |rules| {
        QueueConfig::Pie(PieConfig {
            target: MS,
            burst: 5 * MS,
            ecn_below: Some(0.1),
            rules,
            ..PieConfig::default()
        })
    };
    let drops = [DropPolicy::Arriving, DropPolicy::LongestTail, DropPolicy::LongestHead];
    let ties = [TieBreakRule::Latest, TieBreakRule::Random, TieBreakRule::RandomOthers];
    prop_oneof![
        Just(QueueConfig::DropTail),
        Just(QueueConfig::HeadDrop),
        Just(QueueConfig::Red(red)),
        (any::<bool>(), any::<bool>()).prop_map(move |(linux, ecn)| {
            codel(if linux { CodelRules::Linux } else { CodelRules::Rfc8289 }, ecn)
        }),
        any::<bool>().prop_map(move |linux| {
            pie(if linux { PieRules::Linux } else { PieRules::Rfc8033 })
        }),
        (any::<bool>(), any::<bool>(), 0_u8..=100).prop_map(|(early, overload, protection)| {
            QueueConfig::Dualpi2(DualPi2Config {
                target: MS,
                update: MS,
                alpha: 2.0,
                beta: 20.0,
                classic_protection: protection,
                drop_overload: overload,
                drop_early: early,
                ..DualPi2Config::default()
            })
        }),
        (any::<bool>(), 1_u32..20, 300_u32..2000).prop_map(move |(linux, queues, quantum)| {
            fq_codel(if linux { CodelRules::Linux } else { CodelRules::Rfc8289 }, queues, quantum)
        }),
        (any::<bool>(), any::<bool>()).prop_map(|(tins, flows)| {
            QueueConfig::Cake(CakeConfig {
                tins: if tins { Tins::Diffserv3 } else { Tins::Besteffort },
                isolation: if flows { Isolation::Flows } else { Isolation::TripleIsolate },
                rtt: 10 * MS,
                ..CakeConfig::default()
            })
        }),
        (any::<bool>(), 0..3_usize, 0..3_usize, 100_u32..2000).prop_map(
            move |(shared, drop, tie, quantum)| {
                let buffers =
                    if shared { BufferAssignment::Shared } else { BufferAssignment::PerFlow };
                drr(buffers, drops[drop], ties[tie], quantum)
            }
        ),
    ]
}

fn limits() -> impl Strategy<Value = BufferLimits> {
    let bytes = prop::option::of(100_u64..30_000);
    (prop::option::of(0_u64..30), bytes)
        .prop_map(|(packets, bytes)| BufferLimits { packets, bytes })
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Record {
    /// Token and time of each departure, in order.
    left: Vec<(u32, Nanos)>,
    /// Token and time of each drop.
    dropped: Vec<(u32, Nanos)>,
    marked: Vec<u32>,
    flows: BTreeMap<u32, u32>,
}

impl QueueProbe<u32> for Record {
    fn on_drop(&mut self, now: Nanos, packet: &Packet, _reason: DropReason) {
        assert!(packet.entered <= now);
        self.dropped.push((packet.token, now));
    }
}

type Arrivals = Vec<(Nanos, u32, u32, u8)>;

fn arrivals() -> impl Strategy<Value = Arrivals> {
    let gap = prop_oneof![8 => 0..MS, 1 => 0..20 * MS];
    prop::collection::vec((gap, 0_u32..6, 40_u32..=1500, 0_u8..4), 1..500)
}

struct Run {
    link: QueueingLink<AnyQueue, ConstantRate>,
    config: QueueConfig,
    limits: BufferLimits,
    record: Record,
    now: Nanos,
    /// Packets that have neither left nor been dropped.
    inside: Backlog,
    lengths: Vec<u32>,
    offered: Backlog,
    dropped: Backlog,
    begun: Backlog,
}

fn deadline(link: &QueueingLink<AnyQueue, ConstantRate>) -> Nanos {
    QueueDiscipline::<u32>::deadline(link.queue())
}

/// Adds the tokens that are not included in `sum` yet.
fn add_new(sum: &mut Backlog, tokens: &[(u32, Nanos)], lengths: &[u32]) {
    for (token, _) in &tokens[sum.packets as usize..] {
        sum.packets += 1;
        sum.bytes += u64::from(lengths[*token as usize]);
    }
}

impl Run {
    fn new(config: QueueConfig, limits: BufferLimits, seed: u64) -> Self {
        let queue = AnyQueue::new(config, limits, RandomStream::from_seed(seed));
        // 1 ms per 1500 bytes
        let link = QueueingLink::new(queue, ConstantRate::new(NonZeroU64::new(12_000_000)));
        let none = Backlog::default();
        Self {
            link,
            config,
            limits,
            record: Record::default(),
            now: 0,
            inside: none,
            lengths: Vec::new(),
            offered: none,
            dropped: none,
            begun: none,
        }
    }

    fn begins(&mut self, leaves: Nanos, packet: &Packet) {
        assert!(leaves > self.now, "departures are in the future");
        assert!(packet.entered <= self.now);
        self.record.left.push((packet.token, leaves));
        self.record.marked.extend(packet.marked.then_some(packet.token));
    }

    fn run_until(&mut self, end: Nanos) {
        loop {
            let (leaves, deadline) = (self.link.next_departure(), deadline(&self.link));
            let next = leaves.min(deadline);
            if next > end {
                break;
            }
            assert!(next >= self.now, "time never decreases");
            self.now = next;
            if leaves <= deadline {
                if let Some((leaves, packet)) = self.link.transmit_next_packet(&mut self.record) {
                    self.begins(leaves, &packet);
                }
                self.check();
            } else {
                QueueDiscipline::<u32>::on_deadline(self.link.queue_mut(), deadline);
                assert!(self::deadline(&self.link) > deadline);
            }
        }
        self.now = end;
    }

    fn offer(&mut self, packet: Packet) {
        self.lengths.push(packet.bytes);
        self.offered.packets += 1;
        self.offered.bytes += u64::from(packet.bytes);
        self.record.flows.insert(packet.token, packet.flow);
        let dropped = self.record.dropped.len();
        match self.link.offer(self.now, packet, &mut self.record) {
            OfferOutcome::Departs { leaves, marked } => {
                self.begins(leaves, &Packet { entered: self.now, marked, ..packet });
            }
            OfferOutcome::Held => {}
            OfferOutcome::Dropped(_) => {
                let tokens = &self.record.dropped[dropped..];
                assert!(tokens.iter().any(|(token, _)| *token == packet.token));
            }
        }
        self.check();
    }

    /// Checks conservation of packets and bytes, the limits, and that the link is idle only if the
    /// queue is empty.
    fn check(&mut self) {
        add_new(&mut self.dropped, &self.record.dropped, &self.lengths);
        add_new(&mut self.begun, &self.record.left, &self.lengths);
        let waiting = QueueDiscipline::<u32>::waiting_backlog(self.link.queue());
        let Self { offered, dropped, begun, .. } = self;
        assert_eq!(offered.packets, dropped.packets + begun.packets + waiting.packets);
        assert_eq!(offered.bytes, dropped.bytes + begun.bytes + waiting.bytes);
        let busy = self.link.next_departure() != NEVER;
        assert!(busy || waiting.packets == 0, "work is conserved");
        self.inside = QueueDiscipline::<u32>::held_backlog(self.link.queue());
        assert_eq!(self.inside.packets, waiting.packets + u64::from(busy));
        let per_flow = match self.config {
            QueueConfig::Drr(drr) => drr.buffers == BufferAssignment::PerFlow,
            // No wildcard: a discipline that is missing here is probably missing in `config`.
            QueueConfig::DropTail
            | QueueConfig::HeadDrop
            | QueueConfig::Red(_)
            | QueueConfig::Codel(_)
            | QueueConfig::FqCodel(_)
            | QueueConfig::Cake(_)
            | QueueConfig::Dualpi2(_)
            | QueueConfig::Pie(_) => false,
        };
        let within = |max: Option<u64>, is: u64| max.is_none_or(|max| is <= max);
        let flows = if per_flow { 6 } else { 1 };
        assert!(within(self.limits.packets.map(|max| flows * max), self.inside.packets));
        assert!(within(self.limits.bytes.map(|max| flows * max), self.inside.bytes));
    }
}

fn run(config: QueueConfig, limits: BufferLimits, arrivals: &Arrivals, seed: u64) -> Record {
    let mut run = Run::new(config, limits, seed);
    let mut now = 0;
    for (token, (gap, flow, bytes, ecn)) in (0..).zip(arrivals) {
        now += gap;
        run.run_until(now);
        run.offer(Packet::new(token, *flow, *bytes).with_ecn(Ecn::from_bits(*ecn)));
    }
    run.run_until(now + 10_000 * MS);
    assert_eq!(run.inside, Backlog::default(), "everything leaves or is dropped");
    run.record
}

proptest! {
    #[test]
    fn packets_leave_or_are_dropped_once_and_flows_keep_their_order(
        config in config(),
        limits in limits(),
        arrivals in arrivals(),
        seed: u64,
    ) {
        let record = run(config, limits, &arrivals, seed);
        let mut tokens: Vec<u32> =
            record.left.iter().chain(&record.dropped).map(|(token, _)| *token).collect();
        tokens.sort_unstable();
        prop_assert!(tokens.iter().copied().eq(0..arrivals.len() as u32));
        prop_assert!(record.left.is_sorted_by_key(|(_, leaves)| *leaves));
        prop_assert!(record.dropped.is_sorted_by_key(|(_, at)| *at));
        let mut last: BTreeMap<(u32, bool), u32> = BTreeMap::new();
        for (token, _) in &record.left {
            // DualPI2 puts ECT(1) and CE into a queue of their own.
            let ecn = arrivals[*token as usize].3;
            let second = matches!(config, QueueConfig::Dualpi2(_)) && ecn % 2 == 1;
            let before = last.insert((record.flows[token], second), *token);
            prop_assert!(before < Some(*token), "a flow's packets are in order");
        }
        for token in &record.marked {
            prop_assert!(arrivals[*token as usize].3 != 0, "only capable packets are marked");
        }
    }

    #[test]
    fn run_is_determined_by_seed(
        config in config(),
        limits in limits(),
        arrivals in arrivals(),
        seed: u64,
    ) {
        prop_assert_eq!(run(config, limits, &arrivals, seed), run(config, limits, &arrivals, seed));
    }

    /// Golestani's fairness measure: the service of two backlogged flows differs by at most two
    /// quanta and two packets.
    #[test]
    fn backlogged_flows_get_equal_shares(
        lengths in prop::collection::vec(40_u32..=1500, 2..7),
        quantum in 300_u32..3000,
        codel: bool,
        rate in 1_u32..100,
    ) {
        let flows = lengths.len() as u32;
        let config = if codel {
            flow_queueing(quantum)
        } else {
            drr(BufferAssignment::PerFlow, DropPolicy::Arriving, TieBreakRule::Latest, quantum)
        };
        let mut queue: AnyQueue = AnyQueue::new(config, BufferLimits::default(), RandomStream::from_seed(1));
        let mut dropped = Vec::new();
        for flow in 0..flows {
            for token in 0..400 {
                queue.enqueue(0, Packet::new(token, flow, lengths[flow as usize]), &mut dropped);
            }
        }
        let mut served = vec![0_u64; flows as usize];
        for step in 0..400_u64 {
            let packet = queue.dequeue(step * u64::from(rate), &mut dropped).unwrap();
            served[packet.flow as usize] += u64::from(packet.bytes);
            let (min, max) = (served.iter().min().unwrap(), served.iter().max().unwrap());
            prop_assert!(max - min <= u64::from(2 * quantum) + 2 * 1500, "{served:?}");
        }
    }

    /// A flow that sends less than its fair share loses nothing, and the others share the remaining
    /// rate equally.
    #[test]
    fn shares_are_max_min_fair(
        small in 1_u64..30,
        codel: bool,
        seed: u64,
    ) {
        let config = if codel {
            flow_queueing(1500)
        } else {
            drr(BufferAssignment::Shared, DropPolicy::LongestTail, TieBreakRule::Random, 1500)
        };
        let mut run = Run::new(config, BufferLimits::limit_packets(60), seed);
        let mut token = 0;
        for step in 0..600_u64 {
            run.run_until(step * MS);
            // The link sends 100 packets in 100 steps. Flow 0 sends `small` packets in 100 steps,
            // flows 1 and 2 send 100 packets each.
            for flow in [0, 1, 2].into_iter().filter(|flow| *flow > 0 || step * small % 100 < small) {
                run.offer(Packet::new(token, flow, 1500));
                token += 1;
            }
        }
        run.run_until(600 * MS);
        let count = |wanted: u32| {
            let of_flow = |(token, leaves): &&(u32, Nanos)| {
                run.record.flows[token] == wanted && *leaves <= 600 * MS
            };
            run.record.left.iter().filter(of_flow).count() as f64
        };
        let demand = (6 * small) as f64;
        let rest = (600.0 - demand) / 2.0;
        prop_assert!((count(0) - demand).abs() <= 2.0, "{} of {demand}", count(0));
        for flow in [1, 2] {
            prop_assert!((count(flow) - rest).abs() <= 0.05 * rest, "{} of {rest}", count(flow));
        }
    }
}
