use super::*;
use crate::clock::{MILLISECOND, create_fixed_rate_transmitter};
use crate::packet::{PacketKind, PacketLabel};
use crate::queue::{OpportunityTrace, TokenBucketConfig};
use crate::random::{NamedStream, StreamPurpose};
use proptest::prelude::*;
use std::sync::Arc;
use tcpcast_link::Ecn;
use tcpcast_link::queue::{
    Codel, CodelConfig, CodelRules, FqCodelConfig, PieConfig, QueueConfig, QueueDiscipline as _,
};

#[derive(Default)]
struct Lengths(Vec<(usize, Nanos)>);

impl QueueProbe for Lengths {
    fn on_queue_length_interval(&mut self, packets: usize, until: Nanos) {
        self.0.push((packets, until));
    }
    fn on_arrival_queue_length(&mut self, _packets: usize) {}
}

/// A queue whose link transmits a packet per millisecond.
fn managed(discipline: QueueConfig, limit: u64) -> ManagedQueue {
    with_rate(LinkRate::Constant(Some(12_000_000)), discipline, limit)
}

fn with_rate(rate: LinkRate, discipline: QueueConfig, limit: u64) -> ManagedQueue {
    let config = ManagedConfig { discipline, rate, limit_bytes: None };
    ManagedQueue::new(
        config,
        Some(limit),
        RandomStream::for_entity(1, 0, 0, StreamPurpose::EarlyDrop),
    )
}

fn codel(ecn: bool) -> QueueConfig {
    QueueConfig::Codel(CodelConfig { ecn, rules: CodelRules::Rfc8289, ..CodelConfig::default() })
}

fn packet(source: u32, number: u32, capable: bool) -> Packet {
    let label = PacketLabel::new(PacketKind::Data, 0);
    let label = if capable { label.with_ecn_capable() } else { label };
    Packet::new(source, 1, number, label)
}

/// Served and dropped packets with times, and waiting times.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    served: Vec<(Nanos, Packet)>,
    dropped: Vec<(Nanos, Packet)>,
    waits: Vec<Nanos>,
}

fn drive(queue: &mut ManagedQueue, arrivals: &[(Nanos, Packet)]) -> Outcome {
    let (mut outcome, probe) = (Outcome::default(), &mut Lengths::default());
    let mut unused = create_fixed_rate_transmitter(None, 1500);
    let link = &mut unused;
    let serve = |queue: &mut ManagedQueue, until, outcome: &mut Outcome, probe: &mut Lengths| {
        while queue.next_departure() <= until {
            let served =
                queue.transmit_next_packet(&mut create_fixed_rate_transmitter(None, 1500), probe);
            outcome
                .waits
                .extend(served.and(queue.last_transmitted_packet()).map(|passed| passed.waited));
            outcome.served.extend(served);
            queue.take_dropped_packets(&mut outcome.dropped, probe);
        }
    };
    for (at, packet) in arrivals {
        serve(queue, *at, &mut outcome, probe);
        match queue.enqueue(*at, packet, link, probe) {
            EnqueueOutcome::Departs { leaves, .. } => {
                outcome.served.push((leaves, *packet));
                outcome.waits.push(0);
            }
            EnqueueOutcome::Held { .. } => (),
            EnqueueOutcome::Dropped => outcome.dropped.push((*at, *packet)),
        }
        queue.take_dropped_packets(&mut outcome.dropped, probe);
    }
    serve(queue, Nanos::MAX / 4, &mut outcome, probe);
    outcome
}

/// Packets at twice the link rate for one second.
fn overload(capable: bool) -> Vec<(Nanos, Packet)> {
    (0..2000).map(|at| (u64::from(at) * MILLISECOND / 2, packet(at % 4, at + 1, capable))).collect()
}

/// A token bucket of one packet per millisecond with a burst of three packets.
fn bucket() -> LinkRate {
    let rate_bps = std::num::NonZeroU64::new(12_000_000).unwrap();
    LinkRate::Bucket(TokenBucketConfig { rate_bps, burst_bytes: 4500, overhead_bytes: 0 })
}

fn opportunities(text: &str) -> LinkRate {
    LinkRate::Opportunities(Arc::new(OpportunityTrace::parse_trace_file(text).unwrap()))
}

/// Departure times in milliseconds.
fn departures(outcome: &Outcome) -> Vec<Nanos> {
    outcome.served.iter().map(|(leaves, _)| leaves / MILLISECOND).collect()
}

#[test]
fn shaper_delays_packets_beyond_burst_and_drops_when_full() {
    let arrivals: Vec<_> = (1..=8).map(|number| (0, packet(0, number, false))).collect();
    let outcome = drive(&mut with_rate(bucket(), QueueConfig::DropTail, 2), &arrivals);
    // A packet that finds tokens leaves before the next packet arrives.
    assert_eq!(departures(&outcome), [0, 0, 0, 1, 2]);
    let dropped: Vec<u32> = outcome.dropped.iter().map(|(_, packet)| packet.number()).collect();
    assert_eq!(dropped, [6, 7, 8]);
    assert_eq!(outcome.waits[4], 2 * MILLISECOND, "the wait for tokens counts as queueing");
}

#[test]
fn packets_leave_at_opportunities_of_repeating_trace() {
    let arrivals: Vec<_> = (1..=6).map(|number| (0, packet(0, number, false))).collect();
    let mut queue = with_rate(opportunities("2\n2\n7\n"), QueueConfig::DropTail, 100);
    let outcome = drive(&mut queue, &arrivals);
    assert_eq!(departures(&outcome), [2, 2, 7, 9, 9, 14]);
    let carried = queue.link_load_until(14 * MILLISECOND);
    assert_eq!(carried, Some(LinkLoad { bytes: 6 * 1500, capacity: 6 * 1500 }));
}

#[test]
fn restart_fills_the_token_bucket() {
    let mut queue = with_rate(bucket(), QueueConfig::DropTail, 100);
    let arrivals =
        |at| -> Vec<_> { (1..=5).map(|number| (at, packet(0, number, false))).collect() };
    let first = departures(&drive(&mut queue, &arrivals(0)));
    assert_eq!(first, [0, 0, 0, 1, 2]);
    queue.reset_for_next_transfer();
    let second = drive(&mut queue, &arrivals(2 * MILLISECOND));
    assert_eq!(departures(&second), [2, 2, 2, 3, 4]);
}

#[test]
fn head_drop_evicts_the_oldest_packet() {
    let arrivals: Vec<_> = (1..=5).map(|number| (0, packet(0, number, false))).collect();
    let outcome = drive(&mut managed(QueueConfig::HeadDrop, 3), &arrivals);
    let numbers = |packets: &[(Nanos, Packet)]| -> Vec<_> {
        packets.iter().map(|(_, packet)| packet.number()).collect()
    };
    assert_eq!(numbers(&outcome.served), [1, 4, 5]);
    assert_eq!(numbers(&outcome.dropped), [2, 3]);
    assert_eq!(outcome.waits, [0, MILLISECOND, 2 * MILLISECOND]);
}

#[test]
fn rfc_8289_codel_marks_ecn_capable_packets_and_drops_others() {
    let dropped = drive(&mut managed(codel(true), 1000), &overload(false));
    assert!(dropped.dropped.len() > 10, "{}", dropped.dropped.len());
    assert!(dropped.served.iter().all(|(_, packet)| packet.label().ecn() == Ecn::NotEct));
    let marked = drive(&mut managed(codel(true), 1000), &overload(true));
    let marks = marked.served.iter().filter(|(_, packet)| packet.label().ecn() == Ecn::Ce).count();
    let full = marked.dropped.len();
    assert!(marks > 10 && marks + marked.served.len() > 1000, "{marks} marked, {full} dropped");
    let without = drive(&mut managed(codel(false), 1000), &overload(true));
    assert!(without.served.iter().all(|(_, packet)| packet.label().ecn() == Ecn::Ect0));
}

#[test]
fn managed_codel_drops_the_same_packets_as_codel() {
    let outcome = drive(&mut managed(codel(false), 1000), &overload(false));
    let config = CodelConfig { rules: CodelRules::Rfc8289, ..CodelConfig::default() };
    let mut reference = Codel::new(BufferLimits::limit_packets(1000), config);
    let mut dropped: Vec<tcpcast_link::Packet> = Vec::new();
    let (mut served, mut free) = (0, 0);
    let mut take = |reference: &mut Codel, until, dropped: &mut Vec<_>| {
        while free <= until && reference.held_backlog().packets > 0 {
            match reference.dequeue(free, dropped) {
                Some(_) => (served, free) = (served + 1, free + MILLISECOND),
                None => break,
            }
        }
        free = free.max(until.min(1 << 40));
    };
    for (at, packet) in overload(false) {
        if reference.held_backlog().packets > 0 {
            take(&mut reference, at, &mut dropped);
        }
        let was_idle = reference.held_backlog().packets == 0;
        reference.enqueue(at, tcpcast_link::Packet::new(packet.number(), 0, 1500), &mut dropped);
        if was_idle {
            take(&mut reference, at, &mut dropped);
        }
    }
    let ours: Vec<u32> = outcome.dropped.iter().map(|(_, packet)| packet.number()).collect();
    let theirs: Vec<u32> = dropped.iter().map(|packet| packet.token).collect();
    let common = ours.len().min(theirs.len());
    assert!(common > 10);
    assert_eq!(ours[..common], theirs[..common]);
}

/// PIE updates its drop probability every 15 ms, even without arrivals.
#[test]
fn rfc_8033_pie_updates_run_during_idle_times() {
    let pie = QueueConfig::Pie(PieConfig::default());
    let mut arrivals = overload(false);
    let pause = arrivals.iter().map(|(at, packet)| (at + 60_000 * MILLISECOND, *packet));
    let later: Vec<_> = pause.collect();
    arrivals.extend(later);
    let outcome = drive(&mut managed(pie, 100_000), &arrivals);
    let (first, second): (Vec<(Nanos, Packet)>, Vec<_>) =
        outcome.dropped.iter().partition(|(at, _)| *at < 30_000 * MILLISECOND);
    assert!(first.len() > 50, "{}", first.len());
    // The probability has decayed by then, so both overloads have about the same drops.
    assert!(
        first.len().abs_diff(second.len()) < first.len() / 3,
        "{} {}",
        first.len(),
        second.len()
    );
}

proptest! {
    /// Each packet is served or dropped exactly once, and packets of a flow are served in order.
    #[test]
    fn packets_are_conserved_and_flows_stay_in_order(
        gaps in prop::collection::vec((0_u64..2 * MILLISECOND, 0_u32..6, any::<bool>()), 1..400),
        limit in 1_u64..40,
        discipline in prop::sample::select(vec![
            QueueConfig::HeadDrop,
            codel(true),
            QueueConfig::FqCodel(FqCodelConfig::default()),
            QueueConfig::Pie(PieConfig { ecn_below: Some(0.1), ..PieConfig::default() }),
        ]),
    ) {
        let mut now = 0;
        let arrivals: Vec<_> = (1..).zip(&gaps).map(|(number, (gap, source, capable))| {
            now += gap;
            (now, packet(*source, number, *capable))
        }).collect();
        let mut queue = managed(discipline, limit);
        let outcome = drive(&mut queue, &arrivals);
        prop_assert_eq!((queue.held_packets(), queue.waiting_packets()), (0, 0));
        let gone = outcome.served.iter().chain(&outcome.dropped);
        let mut numbers: Vec<u32> = gone.map(|(_, packet)| packet.number()).collect();
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (1..=arrivals.len() as u32).collect::<Vec<_>>());
        for flow in 0..6 {
            let served = outcome.served.iter().filter(|(_, packet)| packet.source() == flow);
            let numbers: Vec<u32> = served.map(|(_, packet)| packet.number()).collect();
            prop_assert!(numbers.is_sorted());
        }
    }
}
