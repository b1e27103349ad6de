//! Tests of deficit round robin with traces of packets.

use super::*;
use proptest::prelude::*;

const QUANTUM: NonZeroU32 = NonZeroU32::new(1500).unwrap();

fn config(drop: DropPolicy) -> DrrConfig {
    DrrConfig {
        quantum_bytes: QUANTUM,
        buffers: BufferAssignment::Shared,
        drop,
        ties: TieBreakRule::Latest,
        head_of_line: HeadOfLine::InBuffer,
        heavy: None,
    }
}

fn queue(limits: BufferLimits, config: DrrConfig) -> Drr {
    Drr::new(limits, config, RandomStream::from_seed(1))
}

struct Trace {
    queue: Drr,
    dropped: Vec<Packet>,
    tokens: u32,
}

impl Trace {
    fn new(queue: Drr) -> Self {
        Self { queue, dropped: Vec::new(), tokens: 0 }
    }

    /// Offers a packet; tokens number the packets from 0.
    fn offer(&mut self, flow: u32, bytes: u32) -> EnqueueOutcome {
        let packet = Packet::new(self.tokens, flow, bytes);
        self.tokens += 1;
        self.queue.enqueue(0, packet, &mut self.dropped)
    }

    fn serve(&mut self) -> Option<u32> {
        self.queue.dequeue(0, &mut self.dropped).map(|packet| packet.flow)
    }

    fn serve_all(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.serve()).collect()
    }

    fn dropped(&mut self) -> Vec<u32> {
        self.dropped.drain(..).map(|packet| packet.token).collect()
    }
}

#[test]
fn drr_1995_new_flow_joins_at_end_of_round() {
    let mut trace = Trace::new(queue(BufferLimits::default(), config(DropPolicy::Arriving)));
    for flow in [1, 1, 1, 2, 2] {
        trace.offer(flow, 1500);
    }
    assert_eq!(trace.serve(), Some(1));
    trace.offer(3, 1500);
    // Flow 3 arrives during the turn of flow 1, so flow 1 returns to the round behind flow 3.
    assert_eq!(trace.serve_all(), [2, 3, 1, 2, 1]);
    assert_eq!(trace.queue.held_backlog(), Backlog::default());
}

#[test]
fn first_packet_of_each_flow_needs_no_buffer_if_it_is_in_service() {
    let in_service = |drop, buffers| {
        let head_of_line = HeadOfLine::InService;
        let config = DrrConfig { head_of_line, buffers, ..config(drop) };
        Trace::new(queue(BufferLimits::limit_packets(2), config))
    };
    let mut shared = in_service(DropPolicy::Arriving, BufferAssignment::Shared);
    for flow in [0, 1, 2, 3, 4, 0, 1, 2] {
        shared.offer(flow, 1500);
    }
    // Two packets fill the buffer behind the heads of their flows; a new flow still has space.
    assert_eq!(shared.dropped(), [7]);
    shared.offer(5, 1500);
    assert_eq!((shared.queue.held_backlog().packets, shared.dropped()), (8, vec![]));
    // After one round, flow 0 has no packet behind its head.
    assert_eq!((0..7).filter_map(|_| shared.serve()).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 0]);
    shared.offer(0, 1500);
    assert_eq!(shared.dropped(), []);
    let mut own = in_service(DropPolicy::Arriving, BufferAssignment::PerFlow);
    for flow in [0, 0, 0, 0, 1, 1, 1, 1] {
        own.offer(flow, 1500);
    }
    assert_eq!(own.dropped(), [3, 7]);
    let mut longest = in_service(DropPolicy::LongestTail, BufferAssignment::Shared);
    for flow in [0, 1, 1, 1, 2, 2] {
        longest.offer(flow, 1500);
    }
    assert_eq!((longest.dropped(), longest.queue.held_backlog().packets), (vec![3], 5));
}

#[test]
fn heavy_flows_are_charged_more_than_their_length() {
    let heavy = Some(HeavyFlows { first: 7, last: 8, charge: 4500 });
    let config = DrrConfig { heavy, ..config(DropPolicy::Arriving) };
    let mut trace = Trace::new(queue(BufferLimits::default(), config));
    (0..4).for_each(|_| {
        trace.offer(7, 1500);
        (0..3).for_each(|_| {
            trace.offer(9, 1500);
        });
    });
    // A packet of flow 7 needs the credit of three rounds.
    assert_eq!(trace.serve_all()[..8], [9, 9, 7, 9, 9, 9, 7, 9]);
}

#[test]
fn drr_1995_unused_deficit_is_kept_for_next_turn() {
    let mut trace = Trace::new(queue(BufferLimits::default(), config(DropPolicy::Arriving)));
    (0..6).for_each(|_| {
        trace.offer(1, 1000);
        trace.offer(2, 1500);
    });
    // Flow 1: 1500 - 1000 = 500, then 2000 - 2000 = 0, and so on.
    assert_eq!(trace.serve_all(), [1, 2, 1, 1, 2, 1, 2, 1, 1, 2, 2, 2]);
}

#[test]
fn drr_1995_small_quantum_takes_several_turns() {
    let small = DrrConfig { quantum_bytes: NonZeroU32::MIN, ..config(DropPolicy::Arriving) };
    let mut trace = Trace::new(queue(BufferLimits::default(), small));
    for (flow, bytes) in [(1, 1500), (2, 400), (2, 400), (2, 1000), (1, 1500)] {
        trace.offer(flow, bytes);
    }
    // With a quantum of 1 byte, flow 2 accumulates 400 and 800 bytes before flow 1 accumulates
    // 1500.
    assert_eq!(trace.serve_all(), [2, 2, 1, 2, 1]);
}

#[test]
fn drr_1995_turn_adds_exactly_one_quantum() {
    // Two turns suffice for flows 1 and 3, but flow 2 needs one more byte. It keeps 499 bytes of
    // its third turn, which together with the fourth turn are exactly the length of its next
    // packet.
    let quantum_bytes = NonZeroU32::new(500).unwrap();
    let config = DrrConfig { quantum_bytes, ..config(DropPolicy::Arriving) };
    let mut trace = Trace::new(queue(BufferLimits::default(), config));
    for (flow, bytes) in [(1, 1000), (1, 1000), (2, 1001), (2, 999), (3, 1000)] {
        trace.offer(flow, bytes);
    }
    assert_eq!(trace.serve_all(), [1, 3, 2, 1, 2]);
}

#[test]
fn charge_determines_share_of_rate() {
    let heavy = Some(HeavyFlows { first: 7, last: 8, charge: 6000 });
    let config = DrrConfig { heavy, ..config(DropPolicy::Arriving) };
    let mut trace = Trace::new(queue(BufferLimits::default(), config));
    (0..400).for_each(|packet| {
        trace.offer(if packet % 2 == 0 { 1 } else { 7 }, 1500);
    });
    let light = (0..200).filter(|_| trace.serve() == Some(1)).count();
    assert!((159..=161).contains(&light), "{light}");
}

#[test]
fn rounds_without_sufficient_deficit_are_skipped() {
    let heavy = Some(HeavyFlows { first: 0, last: 8, charge: u32::MAX });
    let config = DrrConfig { heavy, ..config(DropPolicy::Arriving) };
    let mut trace = Trace::new(queue(BufferLimits::default(), config));
    for flow in [1, 1, 2, 2] {
        trace.offer(flow, 1500);
    }
    assert_eq!(trace.serve_all(), [1, 2, 1, 2]);
}

#[test]
fn full_shared_buffer_drops_by_policy() {
    let limits = BufferLimits::limit_packets(4);
    for (drop, lost) in
        [(DropPolicy::Arriving, 4), (DropPolicy::LongestTail, 2), (DropPolicy::LongestHead, 0)]
    {
        let mut trace = Trace::new(queue(limits, config(drop)));
        for flow in [1, 1, 1, 2, 3] {
            trace.offer(flow, 1500);
        }
        assert_eq!(trace.dropped(), [lost], "{drop:?}");
        let left = trace.serve_all();
        assert_eq!(left.len(), 4);
        assert_eq!(left.contains(&3), drop != DropPolicy::Arriving);
    }
}

#[test]
fn longest_queue_includes_arriving_packet() {
    for (drop, lost) in [(DropPolicy::LongestTail, 4), (DropPolicy::LongestHead, 0)] {
        let mut trace = Trace::new(queue(BufferLimits::limit_packets(4), config(drop)));
        for flow in [1, 1, 2, 2, 1] {
            trace.offer(flow, 1500);
        }
        assert_eq!(trace.dropped(), [lost]);
    }
}

#[test]
fn flow_leaves_round_when_its_only_packet_is_evicted() {
    let random = DrrConfig { ties: TieBreakRule::RandomOthers, ..config(DropPolicy::LongestTail) };
    let mut trace = Trace::new(queue(BufferLimits::limit_packets(2), random));
    assert_eq!([trace.offer(1, 100), trace.offer(2, 100)], [EnqueueOutcome::Accepted; 2]);
    trace.offer(3, 100);
    let lost = trace.dropped()[0] + 1;
    let kept = 3 - lost;
    // The flow joins again at the end of the round, behind flow 3.
    let mut again = Trace { tokens: 9, ..Trace::new(trace.queue.clone()) };
    again.queue.occupancy.max = MaxBacklog::new(BufferLimits::limit_packets(3));
    again.offer(lost, 100);
    assert_eq!(again.serve_all(), [kept, 3, lost]);
    assert_eq!(trace.serve_all(), [kept, 3]);
}

#[test]
fn per_flow_buffer_counts_only_own_packets_including_transmission() {
    let per_flow =
        DrrConfig { buffers: BufferAssignment::PerFlow, ..config(DropPolicy::LongestTail) };
    let mut trace = Trace::new(queue(BufferLimits::limit_packets(2), per_flow));
    trace.offer(1, 1500);
    assert_eq!(trace.serve(), Some(1));
    assert_eq!(trace.offer(1, 1500), EnqueueOutcome::Accepted);
    assert_eq!(trace.offer(1, 1500), EnqueueOutcome::Dropped(DropReason::Full));
    assert_eq!([trace.offer(2, 1500), trace.offer(2, 1500)], [EnqueueOutcome::Accepted; 2]);
    assert_eq!(trace.offer(2, 1500), EnqueueOutcome::Dropped(DropReason::Full));
    assert_eq!(trace.serve_all(), [2, 1, 2]);
}

#[test]
fn long_packet_evicts_several_short_packets() {
    let mut trace =
        Trace::new(queue(BufferLimits::limit_bytes(2000), config(DropPolicy::LongestHead)));
    (0..5).for_each(|_| {
        trace.offer(1, 400);
    });
    assert_eq!(trace.offer(2, 1500), EnqueueOutcome::Accepted);
    assert_eq!(trace.dropped(), [0, 1, 2, 3]);
    assert_eq!(trace.queue.held_backlog(), Backlog { packets: 2, bytes: 1900 });
    assert_eq!(trace.offer(2, 2001), EnqueueOutcome::Dropped(DropReason::Full));
}

#[test]
fn memory_is_bounded_by_backlogged_flows() {
    let mut trace =
        Trace::new(queue(BufferLimits::limit_packets(100), config(DropPolicy::LongestTail)));
    for flow in 0..200_000_u32 {
        trace.offer(flow.wrapping_mul(0x9e37_79b9), 1500);
        if flow % 3 > 0 {
            trace.serve();
        }
    }
    assert!(trace.queue.flows.all_slots_mut().len() <= 102);
    assert!(size_of::<DrrFlow>() <= 64);
}

proptest! {
    /// The deficit of a flow is at least 0 and less than a quantum plus the maximum packet length.
    #[test]
    fn drr_1995_lemma_1_deficits_are_bounded(
        steps in prop::collection::vec((0_u32..5, 40_u32..=1500, any::<bool>()), 1..300),
        quantum in 1_u32..4000,
    ) {
        let quantum_bytes = NonZeroU32::new(quantum).unwrap();
        let config = DrrConfig { quantum_bytes, ..config(DropPolicy::LongestTail) };
        let mut trace = Trace::new(queue(BufferLimits::limit_packets(20), config));
        for (flow, bytes, serves) in steps {
            trace.offer(flow, bytes);
            if serves {
                trace.serve();
            }
            for flow in trace.queue.flows.all_slots_mut() {
                prop_assert!((0..i64::from(quantum) + 1500).contains(&flow.deficit));
            }
        }
    }
}
