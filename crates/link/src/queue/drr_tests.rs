//! Fair queueing as traces of packets.

use super::*;
use crate::queue::InService;
use proptest::prelude::*;

const QUANTUM: NonZeroU32 = NonZeroU32::new(1500).unwrap();

fn config(drop: DropPolicy) -> DrrConfig {
    DrrConfig { quantum_bytes: QUANTUM, buffers: Buffers::Shared, drop, ties: Ties::Latest }
}

fn queue(limits: Limits, config: DrrConfig) -> Drr {
    Drr::new(limits, config, Stream::of(1))
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

    /// A packet arrives; tokens count them from 0.
    fn offer(&mut self, flow: u32, bytes: u32) -> Verdict {
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
fn drr_1995_flows_take_turns_and_a_new_one_joins_at_the_end() {
    let mut trace = Trace::new(queue(Limits::default(), config(DropPolicy::Arriving)));
    for flow in [1, 1, 1, 2, 2] {
        trace.offer(flow, 1500);
    }
    assert_eq!(trace.serve(), Some(1));
    trace.offer(3, 1500);
    // Flow 1 goes behind flow 3 when its packet has left, which came meanwhile.
    assert_eq!(trace.serve_all(), [2, 3, 1, 2, 1]);
    assert_eq!(trace.queue.held(), Backlog::default());
}

#[test]
fn drr_1995_what_a_turn_leaves_is_kept_for_the_next() {
    let mut trace = Trace::new(queue(Limits::default(), config(DropPolicy::Arriving)));
    (0..6).for_each(|_| {
        trace.offer(1, 1000);
        trace.offer(2, 1500);
    });
    // Flow 1: 1500 - 1000 = 500, then 2000 - 2000 = 0, and so on.
    assert_eq!(trace.serve_all(), [1, 2, 1, 1, 2, 1, 2, 1, 1, 2, 2, 2]);
}

#[test]
fn drr_1995_a_small_quantum_takes_several_turns() {
    let small = DrrConfig { quantum_bytes: NonZeroU32::MIN, ..config(DropPolicy::Arriving) };
    let mut trace = Trace::new(queue(Limits::default(), small));
    for (flow, bytes) in [(1, 1500), (2, 400), (2, 400), (2, 1000), (1, 1500)] {
        trace.offer(flow, bytes);
    }
    // Bytes in turn: flow 2 has its 400 and 800 before flow 1 its 1500, and so on.
    assert_eq!(trace.serve_all(), [2, 2, 1, 2, 1]);
}

#[test]
fn drr_1995_a_turn_adds_the_quantum_to_the_byte() {
    // Two turns suffice for flows 1 and 3; flow 2 lacks a byte then. Of its third it keeps 499, to
    // the byte what its next packet needs beside the fourth.
    let quantum_bytes = NonZeroU32::new(500).unwrap();
    let config = DrrConfig { quantum_bytes, ..config(DropPolicy::Arriving) };
    let mut trace = Trace::new(queue(Limits::default(), config));
    for (flow, bytes) in [(1, 1000), (1, 1000), (2, 1001), (2, 999), (3, 1000)] {
        trace.offer(flow, bytes);
    }
    assert_eq!(trace.serve_all(), [1, 3, 2, 1, 2]);
}

#[test]
fn a_weight_is_a_share() {
    let weighted = queue(Limits::default(), config(DropPolicy::Arriving)).with_weight(7..9, 0.25);
    let mut trace = Trace::new(weighted);
    (0..400).for_each(|at| {
        trace.offer(if at % 2 == 0 { 1 } else { 7 }, 1500);
    });
    let heavy = (0..200).filter(|_| trace.serve() == Some(1)).count();
    assert!((159..=161).contains(&heavy), "{heavy}");
}

#[test]
fn rounds_in_which_no_turn_suffices_pass_at_once() {
    let weighted = queue(Limits::default(), config(DropPolicy::Arriving)).with_weight(0..9, 1e-12);
    let mut trace = Trace::new(weighted);
    for flow in [1, 1, 2, 2] {
        trace.offer(flow, 1500);
    }
    assert_eq!(trace.serve_all(), [1, 2, 1, 2]);
}

#[test]
fn of_a_full_shared_buffer_the_packet_goes_that_the_policy_says() {
    let limits = Limits { in_service: InService::IsExtra, ..Limits::packets(4) };
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
fn the_queue_that_the_packet_comes_to_is_counted_with_it() {
    for (drop, lost) in [(DropPolicy::LongestTail, 4), (DropPolicy::LongestHead, 0)] {
        let mut trace = Trace::new(queue(Limits::packets(4), config(drop)));
        for flow in [1, 1, 2, 2, 1] {
            trace.offer(flow, 1500);
        }
        assert_eq!(trace.dropped(), [lost]);
    }
}

#[test]
fn a_flow_that_loses_its_only_packet_leaves_the_round() {
    let random = DrrConfig { ties: Ties::RandomOthers, ..config(DropPolicy::LongestTail) };
    let mut trace = Trace::new(queue(Limits::packets(2), random));
    assert_eq!([trace.offer(1, 100), trace.offer(2, 100)], [Verdict::Accepted; 2]);
    trace.offer(3, 100);
    let lost = trace.dropped()[0] + 1;
    let kept = 3 - lost;
    // It comes back at the end of the round, behind flow 3.
    let mut again = Trace { tokens: 9, ..Trace::new(trace.queue.clone()) };
    again.queue.occupancy.most = Most::new(Limits::packets(3));
    again.offer(lost, 100);
    assert_eq!(again.serve_all(), [kept, 3, lost]);
    assert_eq!(trace.serve_all(), [kept, 3]);
}

#[test]
fn a_buffer_per_flow_is_the_flows_own_and_counts_its_packet_in_transmission() {
    let own = DrrConfig { buffers: Buffers::PerFlow, ..config(DropPolicy::LongestTail) };
    let mut trace = Trace::new(queue(Limits::packets(2), own));
    trace.offer(1, 1500);
    assert_eq!(trace.serve(), Some(1));
    assert_eq!(trace.offer(1, 1500), Verdict::Accepted);
    assert_eq!(trace.offer(1, 1500), Verdict::Dropped(Reason::Full));
    assert_eq!([trace.offer(2, 1500), trace.offer(2, 1500)], [Verdict::Accepted; 2]);
    assert_eq!(trace.offer(2, 1500), Verdict::Dropped(Reason::Full));
    assert_eq!(trace.serve_all(), [2, 1, 2]);
}

#[test]
fn a_long_packet_pushes_out_as_many_short_ones_as_it_needs() {
    let mut trace = Trace::new(queue(Limits::bytes(2000), config(DropPolicy::LongestHead)));
    (0..5).for_each(|_| {
        trace.offer(1, 400);
    });
    assert_eq!(trace.offer(2, 1500), Verdict::Accepted);
    assert_eq!(trace.dropped(), [0, 1, 2, 3]);
    assert_eq!(trace.queue.held(), Backlog { packets: 2, bytes: 1900 });
    assert_eq!(trace.offer(2, 2001), Verdict::Dropped(Reason::Full));
}

#[test]
fn memory_is_that_of_the_flows_that_wait() {
    let mut trace = Trace::new(queue(Limits::packets(100), config(DropPolicy::LongestTail)));
    for flow in 0..200_000_u32 {
        trace.offer(flow.wrapping_mul(0x9e37_79b9), 1500);
        if flow % 3 > 0 {
            trace.serve();
        }
    }
    assert!(trace.queue.flows.all_mut().len() <= 102);
    assert!(size_of::<Flow>() <= 64);
}

proptest! {
    /// A flow never has more left over than a quantum, nor more than it takes for a packet.
    #[test]
    fn drr_1995_lemma_1_deficits_are_bounded(
        steps in prop::collection::vec((0_u32..5, 40_u32..=1500, any::<bool>()), 1..300),
        quantum in 1_u32..4000,
    ) {
        let quantum_bytes = NonZeroU32::new(quantum).unwrap();
        let config = DrrConfig { quantum_bytes, ..config(DropPolicy::LongestTail) };
        let mut trace = Trace::new(queue(Limits::packets(20), config));
        for (flow, bytes, serves) in steps {
            trace.offer(flow, bytes);
            if serves {
                trace.serve();
            }
            for flow in trace.queue.flows.all_mut() {
                prop_assert!((0..i64::from(quantum) + 1500).contains(&flow.deficit));
            }
        }
    }
}
