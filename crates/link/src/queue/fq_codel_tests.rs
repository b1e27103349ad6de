//! Tests of FQ-CoDel with traces of packets.

use super::*;
use crate::packet::Ecn;
use crate::time::MILLISECOND;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const MS: Nanos = MILLISECOND;

fn nonzero(value: u32) -> NonZeroU32 {
    NonZeroU32::new(value).unwrap()
}

fn queue(limits: BufferLimits) -> FqCodel {
    FqCodel::new(limits, FqCodelConfig { quantum_bytes: nonzero(1500), ..Default::default() })
}

fn offer(queue: &mut FqCodel, now: Nanos, flow: u32, bytes: u32) -> (EnqueueOutcome, Vec<u32>) {
    let mut dropped = Vec::new();
    let verdict = queue.enqueue(now, Packet::new(flow, flow, bytes), &mut dropped);
    (verdict, dropped.iter().map(|packet| packet.flow).collect())
}

/// Flows of all packets, dequeued at `now` until the queue is empty.
fn served(queue: &mut FqCodel, now: Nanos) -> Vec<u32> {
    let mut dropped = Vec::new();
    std::iter::from_fn(|| queue.dequeue(now, &mut dropped)).map(|packet| packet.flow).collect()
}

#[test]
fn rfc_8290_4_2_queues_take_turns() {
    let mut queue = queue(BufferLimits::default());
    for flow in [1, 1, 1, 1, 2, 2, 3] {
        offer(&mut queue, 0, flow, 1500);
    }
    assert_eq!(served(&mut queue, 0), [1, 2, 3, 1, 2, 1, 1]);
}

#[test]
fn rfc_8290_4_2_turn_is_one_quantum() {
    let mut queue = queue(BufferLimits::default());
    for _ in 0..6 {
        offer(&mut queue, 0, 1, 500);
    }
    for _ in 0..2 {
        offer(&mut queue, 0, 2, 1500);
    }
    assert_eq!(served(&mut queue, 0), [1, 1, 1, 2, 1, 1, 1, 2]);
}

#[test]
fn rfc_8290_4_2_new_queue_has_priority_for_one_quantum() {
    let mut queue = queue(BufferLimits::default());
    let mut dropped = Vec::new();
    (0..6).for_each(|_| {
        offer(&mut queue, 0, 1, 1000);
    });
    let mut next = |queue: &mut FqCodel| queue.dequeue(0, &mut dropped).map(|p| p.flow);
    // The queue of flow 1 becomes old and is within a turn.
    (0..4).for_each(|_| assert_eq!(next(&mut queue), Some(1)));
    (0..2).for_each(|_| {
        offer(&mut queue, 0, 2, 1500);
    });
    // The first packet of flow 2 is next, and its second packet waits for a turn of the old queues.
    let flows = [next(&mut queue), next(&mut queue), next(&mut queue), next(&mut queue)];
    assert_eq!(flows, [Some(2), Some(1), Some(2), Some(1)]);
}

#[test]
fn rfc_8290_4_2_emptied_new_queue_becomes_old() {
    let mut queue = queue(BufferLimits::default());
    let mut dropped = Vec::new();
    (0..4).for_each(|_| {
        offer(&mut queue, 0, 1, 1500);
    });
    let mut next = |queue: &mut FqCodel| queue.dequeue(0, &mut dropped).map(|p| p.flow);
    // Flow 1 becomes old. Flow 2 sends small packets, each after the departure of the last: after
    // the first packet, an old queue has its turn, and flow 2 is not new again.
    assert_eq!([next(&mut queue), next(&mut queue)], [Some(1), Some(1)]);
    offer(&mut queue, 0, 2, 100);
    assert_eq!(next(&mut queue), Some(2));
    assert_eq!(next(&mut queue), Some(1));
    offer(&mut queue, 0, 2, 100);
    // Flow 2 is still in the list of old queues, and its turn is before the next turn of flow 1.
    assert_eq!([next(&mut queue), next(&mut queue)], [Some(2), Some(1)]);
}

#[test]
fn restart_resets_codel_state_of_each_queue() {
    // One packet per millisecond: the first drop is after 105 ms. Without a restart, the next
    // dropping state begins with a higher drop rate.
    let drops = |restart: bool| {
        let mut queue = queue(BufferLimits::default());
        let mut times = Vec::new();
        for begin in [0, 700] {
            (0..600).for_each(|_| {
                offer(&mut queue, begin * MS, 1, 1500);
            });
            for now in begin..begin + 650 {
                let mut dropped = Vec::new();
                queue.dequeue(now * MS, &mut dropped);
                times.extend(dropped.iter().map(|_| now - begin));
            }
            if restart {
                queue.reset_when_empty((begin + 650) * MS);
            }
        }
        let second = times.iter().rposition(|&time| time == times[0]).unwrap();
        (times[..second].to_vec(), times[second..].to_vec())
    };
    let (first, second) = drops(true);
    assert!(first.len() > 5);
    assert_eq!(second, first);
    assert_ne!(drops(false).1, first);
}

#[test]
fn rfc_8290_4_1_longest_queue_in_bytes_loses_half_at_head() {
    let mut queue = queue(BufferLimits { packets: Some(20), ..BufferLimits::default() });
    for _ in 0..12 {
        offer(&mut queue, 0, 1, 100);
    }
    for _ in 0..8 {
        offer(&mut queue, 0, 2, 1500);
    }
    let (verdict, dropped) = offer(&mut queue, 0, 3, 1500);
    assert_eq!((verdict, dropped), (EnqueueOutcome::Accepted, vec![2; 4]));
    assert_eq!(queue.waiting_backlog().packets, 17);
}

#[test]
fn rfc_8290_4_1_overflow_drops_at_most_one_batch() {
    let mut queue = queue(BufferLimits { packets: Some(200), ..BufferLimits::default() });
    (0..200).for_each(|_| {
        offer(&mut queue, 0, 1, 1500);
    });
    let (verdict, dropped) = offer(&mut queue, 0, 1, 1500);
    assert_eq!((verdict, dropped.len()), (EnqueueOutcome::Accepted, 64));
}

#[test]
fn rfc_8290_4_1_arriving_packet_is_dropped_if_its_queue_is_longest() {
    let mut queue = queue(BufferLimits { packets: Some(2), ..BufferLimits::default() });
    offer(&mut queue, 0, 1, 100);
    offer(&mut queue, 0, 2, 100);
    let (verdict, dropped) = offer(&mut queue, 0, 3, 1500);
    assert_eq!((verdict, dropped), (EnqueueOutcome::Dropped(DropReason::Full), vec![3]));
}

#[test]
fn byte_limit_holds_for_any_packet_lengths() {
    let mut queue = queue(BufferLimits::limit_bytes(30_000));
    for flow in 0..4000 {
        offer(&mut queue, 0, flow % 37, if flow % 3 == 0 { 1500 } else { 40 });
        assert!(queue.held_backlog().bytes <= 30_000);
    }
}

#[test]
fn rfc_8290_4_1_hash_is_uniform_and_depends_on_perturbation() {
    let hashes = |perturbation| {
        let config = FqCodelConfig { perturbation, ..FqCodelConfig::default() };
        let queue: FqCodel = FqCodel::new(BufferLimits::default(), config);
        (0..10_240).map(|flow| queue.hash_of(flow)).collect::<Vec<u32>>()
    };
    assert_eq!(hashes(1), hashes(1));
    assert_ne!(hashes(1), hashes(2));
    let mut counts = [0_u32; 1024];
    hashes(3).iter().for_each(|queue| counts[*queue as usize] += 1);
    // Chi-squared test with a mean of ten flows per queue.
    let chi: f64 = counts.iter().map(|count| (f64::from(*count) - 10.0).powi(2) / 10.0).sum();
    assert!((chi - 1023.0).abs() < 4.0 * 2046.0_f64.sqrt(), "{chi}");
}

#[test]
fn rfc_8290_4_codel_state_is_per_queue() {
    let mut queue = queue(BufferLimits::default());
    let mut dropped = Vec::new();
    let mut waits = 0;
    for ms in 0..2000_u64 {
        let now = ms * MS;
        // Flow 1 sends at twice the rate of the link, flow 2 sends a small packet every 50 ms.
        offer(&mut queue, now, 1, 1500);
        offer(&mut queue, now, 1, 1500);
        if ms % 50 == 25 {
            queue.enqueue(now, Packet::new(0, 2, 100).with_ecn(Ecn::NotEct), &mut dropped);
        }
        let packet = queue.dequeue(now, &mut dropped).unwrap();
        waits = waits.max(if packet.flow == 2 { now - packet.entered } else { 0 });
    }
    assert!(dropped.len() > 10 && dropped.iter().all(|packet| packet.flow == 1));
    assert_eq!(waits, 0);
}

#[test]
fn memory_is_independent_of_number_of_flows() {
    let mut queue = queue(BufferLimits { packets: Some(1000), ..BufferLimits::default() });
    for flow in 0..100_000 {
        offer(&mut queue, u64::from(flow), flow, 1500);
        let mut dropped = Vec::new();
        if flow % 2 == 0 {
            queue.dequeue(u64::from(flow), &mut dropped);
        }
    }
    assert_eq!(size_of::<FlowQueue>(), 64);
    assert_eq!(queue.queues.len(), 1024);
}

#[test]
fn queues_are_created_on_demand() {
    let mut queue = queue(BufferLimits::default());
    assert_eq!(queue.index_by_hash.capacity(), 0);
    for packet in 0..100 {
        offer(&mut queue, packet, packet as u32 % 3, 1500);
    }
    assert_eq!(queue.queues.len(), 3);
}

#[test]
fn among_equally_long_queues_the_lowest_hash_loses() {
    for flows in [[1, 2], [2, 1]] {
        let mut queue = queue(BufferLimits { packets: Some(2), ..BufferLimits::default() });
        for flow in flows {
            queue.enqueue(0, Packet::new(0, flow, 1500), &mut Vec::new());
        }
        let mut dropped = Vec::new();
        queue.enqueue(0, Packet::new(0, 3, 40), &mut dropped);
        let lowest = flows.into_iter().min_by_key(|flow| queue.hash_of(*flow));
        assert_eq!(dropped.iter().map(|packet| packet.flow).collect::<Vec<_>>(), lowest.as_slice());
    }
}

/// Reference scheduler, written from RFC 8290, section 4, with plain vectors.
struct ReferenceScheduler {
    rules: CodelRules,
    new: Vec<u32>,
    old: Vec<u32>,
    credits: BTreeMap<u32, i64>,
    waiting: BTreeMap<u32, VecDeque<Packet>>,
}

impl ReferenceScheduler {
    fn enqueue(&mut self, queue: u32, packet: Packet, quantum: i64) {
        self.waiting.entry(queue).or_default().push_back(packet);
        if !self.new.contains(&queue) && !self.old.contains(&queue) {
            self.new.push(queue);
            self.credits.insert(queue, quantum);
        }
    }

    fn dequeue(&mut self, quantum: i64) -> Option<Packet> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let queue = *list.first()?;
            let credits = self.credits.get_mut(&queue)?;
            if *credits <= 0 {
                *credits += quantum;
                list.remove(0);
                self.old.push(queue);
                continue;
            }
            if let Some(packet) = self.waiting.get_mut(&queue)?.pop_front() {
                *credits -= i64::from(packet.bytes);
                return Some(packet);
            }
            list.remove(0);
            if from_new && (self.rules == CodelRules::Rfc8289 || !self.old.is_empty()) {
                self.old.push(queue);
            }
        }
    }
}

proptest! {
    /// The scheduler agrees with the reference, and deficits stay between minus one packet and a
    /// quantum.
    #[test]
    fn rfc_8290_4_scheduler_agrees_with_reference(
        steps in prop::collection::vec((0_u32..9, 40_u32..=1500, 0_u8..5), 1..500),
        quantum in 300_u32..3000,
        linux: bool,
    ) {
        let rules = if linux { CodelRules::Linux } else { CodelRules::Rfc8289 };
        let codel = CodelConfig { target: Nanos::MAX, rules, ..CodelConfig::default() };
        // With five queues, some flows share a queue.
        let (queues, quantum_bytes) = (nonzero(5), nonzero(quantum));
        let config = FqCodelConfig { codel, queues, quantum_bytes, ..FqCodelConfig::default() };
        let mut queue = FqCodel::new(BufferLimits::default(), config);
        let mut reference = ReferenceScheduler {
            rules,
            new: Vec::new(),
            old: Vec::new(),
            credits: BTreeMap::new(),
            waiting: BTreeMap::new(),
        };
        let mut dropped = Vec::new();
        for (token, (flow, bytes, serves)) in (0..).zip(steps) {
            let packet = Packet::new(token, flow, bytes);
            queue.enqueue(0, packet, &mut dropped);
            reference.enqueue(queue.hash_of(flow), packet, i64::from(quantum));
            // 40 dequeues usually empty the queues.
            for _ in 0..[0, 1, 1, 2, 40][serves as usize] {
                prop_assert_eq!(queue.dequeue(0, &mut dropped), reference.dequeue(i64::from(quantum)));
            }
            for queue in &queue.queues {
                prop_assert!((-1500..=i64::from(quantum)).contains(&queue.deficit));
            }
        }
    }
}
