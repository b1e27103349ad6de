//! Tests of DualPI2 rule by rule; `tests/queues/dualpi2_reference.rs` compares whole runs.

use super::*;

const MS: Nanos = MILLISECOND;

/// A random source that returns these fractions one after another, and then 1.
#[derive(Clone, Debug)]
struct Fractions(Vec<f64>);

impl RandomSource for Fractions {
    fn next_bits(&mut self) -> u64 {
        let fraction = if self.0.is_empty() { 1.0 } else { self.0.remove(0) };
        (fraction * 18_446_744_073_709_551_615.0) as u64
    }
}

/// A queue with 10 packets of each kind that arrived at time 0, and p.
fn queue(config: DualPi2Config, p: f64, draws: &[f64]) -> DualPi2<u32, Fractions> {
    let limits = BufferLimits::limit_packets(20);
    let mut queue = DualPi2::new(limits, config, Fractions(draws.to_vec()));
    for token in 0..10 {
        queue.enqueue(0, Packet::new(token, 0, 1500), &mut Vec::new());
        let packet = Packet::new(100 + token, 1, 1500).with_ecn(Ecn::Ect1);
        queue.enqueue(0, packet, &mut Vec::new());
    }
    queue.probability = p;
    queue
}

/// Tokens of the packets that depart at `now` (negative if marked), and tokens of dropped packets.
fn departures(
    queue: &mut DualPi2<u32, Fractions>,
    now: Nanos,
    count: usize,
) -> (Vec<i64>, Vec<u32>) {
    let mut dropped = Vec::new();
    let mut leave = |_| {
        let packet = queue.dequeue(now, &mut dropped)?;
        Some(i64::from(packet.token) * if packet.marked { -1 } else { 1 })
    };
    let left = (0..count).filter_map(&mut leave).collect();
    (left, dropped.iter().map(|packet: &Packet| packet.token).collect())
}

#[test]
fn weighted_round_robin_serves_nine_low_latency_packets_per_classic_packet() {
    let mut queue = queue(DualPi2Config::default(), 0.0, &[]);
    let (left, _) = departures(&mut queue, MS, 12);
    // The initial credit is 80 % of a packet for the L queue, and each packet costs 10 %.
    assert_eq!(left, [100, 101, 102, 103, 104, 105, 106, 107, 108, 0, 109, 1]);
}

#[test]
fn credit_stays_while_one_queue_is_empty_and_is_reset_when_both_are() {
    let mut queue = queue(DualPi2Config::default(), 0.0, &[]);
    departures(&mut queue, MS, 12);
    let credit = queue.credit;
    departures(&mut queue, MS, 8);
    assert_eq!((queue.credit, queue.held_backlog().packets), (credit, 1));
    assert_eq!(queue.dequeue(MS, &mut Vec::new()), None);
    assert_eq!(queue.credit, -80 * 1500);
}

#[test]
fn step_marks_low_latency_packets_above_threshold() {
    for (now, marked) in [(MS, false), (MS + 1, true)] {
        let mut queue = queue(DualPi2Config::default(), 0.0, &[]);
        assert_eq!(departures(&mut queue, now, 1).0, [if marked { -100 } else { 100 }]);
    }
    let config = DualPi2Config { min_step_packets: 2, ..DualPi2Config::default() };
    assert_eq!(departures(&mut queue(config, 0.0, &[]), 2 * MS, 3).0, [100, 101, -102]);
}

#[test]
fn ramp_marks_with_probability_proportional_to_delay_above_threshold() {
    let config = DualPi2Config { ramp: MS, ..DualPi2Config::default() };
    let left = |now, draw| departures(&mut queue(config, 0.0, &[draw]), now, 1).0;
    assert_eq!(left(MS * 5 / 4, 0.24), [-100]);
    assert_eq!(left(MS * 5 / 4, 0.26), [100]);
    assert_eq!(left(2 * MS, 0.99), [-100]);
}

#[test]
fn coupled_probability_is_k_p_and_classic_probability_is_p_squared() {
    let config = DualPi2Config { classic_protection: 0, ..DualPi2Config::default() };
    let p = 0.2;
    assert_eq!(departures(&mut queue(config, p, &[0.39]), 0, 1).0, [-100]);
    assert_eq!(departures(&mut queue(config, p, &[0.41]), 0, 1).0, [100]);
    // Both draws must be below p.
    let config = DualPi2Config { classic_protection: 100, ..DualPi2Config::default() };
    assert_eq!(departures(&mut queue(config, p, &[0.19, 0.21]), 0, 1), (vec![0], vec![]));
    assert_eq!(departures(&mut queue(config, p, &[0.19, 0.19]), 0, 1), (vec![1], vec![0]));
}

#[test]
fn classic_queue_marks_capable_packets_unless_overloaded() {
    let config = DualPi2Config::default();
    for (p, left, dropped) in [(0.3, vec![-1], vec![]), (0.6, vec![], vec![1])] {
        let limits = BufferLimits::limit_packets(20);
        let mut queue = DualPi2::new(limits, config, Fractions(vec![1.0; 3]));
        for token in 1..4 {
            let packet = Packet::new(token, 0, 1500).with_ecn(Ecn::Ect0);
            queue.enqueue(0, packet, &mut Vec::new());
        }
        (queue.probability, queue.draws) = (p, Fractions(vec![0.1, 0.1]));
        let (first, drops) = departures(&mut queue, 0, usize::from(!left.is_empty()).max(1));
        assert_eq!((first[0] == -1, drops), (!left.is_empty(), dropped));
    }
}

#[test]
fn overload_drops_low_latency_packets_by_p_squared_and_marks_the_others() {
    let config = DualPi2Config::default();
    let (left, dropped) = departures(&mut queue(config, 0.6, &[0.5, 0.5, 0.5, 0.7]), 0, 1);
    assert_eq!((left, dropped), (vec![-101], vec![100]));
    // Without drops in overload, all are marked.
    let config = DualPi2Config { drop_overload: false, ..config };
    assert_eq!(departures(&mut queue(config, 0.6, &[0.5, 0.5]), 0, 2).0, [-100, -101]);
}

#[test]
fn queue_of_less_than_two_packets_is_neither_marked_nor_dropped_by_p() {
    let mut queue = DualPi2::new(
        BufferLimits::limit_packets(20),
        DualPi2Config::default(),
        Fractions(vec![0.0; 9]),
    );
    for token in 0..3 {
        queue.enqueue(0, Packet::new(token, 0, 1500), &mut Vec::new());
    }
    queue.probability = 0.4;
    assert_eq!(departures(&mut queue, 0, 2), (vec![1, 2], vec![0]));
}

#[test]
fn drop_early_decides_on_arrival() {
    let config = DualPi2Config { drop_early: true, ..DualPi2Config::default() };
    let mut queue = queue(config, 0.4, &[0.1, 0.1]);
    departures(&mut queue, 0, 4);
    queue.draws = Fractions(vec![0.1, 0.1, 0.7]);
    let mut dropped: Vec<Packet> = Vec::new();
    let outcome = queue.enqueue(0, Packet::new(50, 0, 1500), &mut dropped);
    assert_eq!(outcome, EnqueueOutcome::Dropped(DropReason::Early));
    let outcome = queue.enqueue(0, Packet::new(51, 0, 1500).with_ecn(Ecn::Ect1), &mut dropped);
    assert_eq!(outcome, EnqueueOutcome::Marked);
}

#[test]
fn controller_follows_the_longer_delay_of_both_heads() {
    let mut queue = queue(DualPi2Config::default(), 0.1, &[]);
    queue.previous_delay = 10 * MS;
    queue.on_deadline(16 * MS);
    let expected = 0.1 + 41.0 / 256.0 * 0.001 + 819.0 / 256.0 * 0.006;
    assert!((queue.probability - expected).abs() < 1e-12, "{}", queue.probability);
    assert_eq!(queue.deadline(), 32 * MS);
}

#[test]
fn idle_queue_forgets_in_one_call_as_in_many() {
    let make = || {
        let mut queue = DualPi2::<u32, _>::new(
            BufferLimits::default(),
            DualPi2Config::default(),
            Fractions(vec![]),
        );
        (queue.probability, queue.previous_delay) = (0.9, 20 * MS);
        queue
    };
    let (mut once, mut often) = (make(), make());
    once.on_deadline(1600 * MS);
    (1..=100).for_each(|update| often.on_deadline(update * 16 * MS));
    assert!((once.probability - often.probability).abs() < 1e-12);
    assert!(once.probability < 0.6 && once.deadline() == often.deadline());
    // A year of updates takes no time.
    once.on_deadline(365 * 86_400_000 * MS);
    assert_eq!(once.probability, 0.0);
}
