//! Tests of PIE with traces of updates and packets.

use super::*;
use crate::packet::Ecn;
use crate::queue::{BufferLimits, DropReason, EnqueueOutcome, Fifo, QueueDiscipline};

const MS: Nanos = MILLISECOND;

/// A random source that always returns this fraction.
#[derive(Clone, Copy, Debug)]
struct Always(f64);

impl RandomSource for Always {
    fn next_bits(&mut self) -> u64 {
        (self.0 * 18_446_744_073_709_551_615.0) as u64
    }
}

fn rfc() -> PieConfig {
    PieConfig { rules: PieRules::Rfc8033, ..PieConfig::default() }
}

/// A rule whose last packet had a sojourn time of `delay`, without burst allowance.
fn congested(config: PieConfig, probability: f64, delay: Nanos) -> Pie<Always> {
    let mut pie = Pie::new(config, Always(0.5));
    pie.probability = probability;
    (pie.delay, pie.delay_before, pie.burst_left) = (delay, delay, 0);
    pie
}

const BUSY: Backlog = Backlog { packets: 100, bytes: 150_000 };

fn arrival(ecn: Ecn, bytes: u32) -> ArrivalContext {
    ArrivalContext { bytes, ecn, waiting: BUSY, idle_since: None, has_room: true }
}

fn admit<D: RandomSource>(pie: &mut Pie<D>, context: ArrivalContext) -> AdmitDecision {
    pie.admit::<u32>(0, &context, &mut Vec::new())
}

#[test]
fn rfc_8033_4_2_step_is_scaled_down_for_small_probability() {
    for (probability, scale) in [
        (0.0, 2048.0),
        (5e-6, 512.0),
        (5e-5, 128.0),
        (5e-4, 32.0),
        (5e-3, 8.0),
        (5e-2, 2.0),
        (0.5, 1.0),
    ] {
        for rules in [PieRules::Rfc8033, PieRules::Linux] {
            let config = PieConfig { rules, ..rfc() };
            let mut pie = congested(config, probability, 20 * MS);
            pie.delay = 25 * MS;
            pie.update_probability(BUSY);
            // alpha x 10 ms above the target + beta x 5 ms increase
            let step = 0.125 * 0.010 + 1.25 * 0.005;
            assert!((pie.probability - probability - step / scale).abs() < 1e-12);
            assert_eq!(pie.delay_before, 25 * MS);
        }
    }
}

#[test]
fn rfc_8033_5_5_step_is_at_most_two_percent_above_ten_percent() {
    let mut pie = congested(rfc(), 0.1, 200 * MS);
    pie.delay_before = 0;
    pie.update_probability(BUSY);
    assert!((pie.probability - 0.12).abs() < 1e-12);
}

#[test]
fn linux_delay_above_250_ms_adds_two_percent() {
    let mut pie = congested(PieConfig::default(), 0.2, 251 * MS);
    pie.update_probability(BUSY);
    assert!((pie.probability - 0.24).abs() < 1e-12);
}

#[test]
fn rfc_8033_4_2_probability_decays_without_congestion() {
    let mut pie = congested(rfc(), 0.5, 0);
    pie.update_probability(Backlog::default());
    assert!((pie.probability - (0.5 - 0.125 * 0.015) * 0.98).abs() < 1e-12);
    let mut pie = congested(PieConfig::default(), 0.5, 0);
    pie.update_probability(Backlog::default());
    assert!((pie.probability - (0.5 - 0.125 * 0.015) * 63.0 / 64.0).abs() < 1e-12);
    // Linux requires an empty queue.
    let mut pie = congested(PieConfig::default(), 0.5, 0);
    pie.update_probability(BUSY);
    assert!((pie.probability - (0.5 - 0.125 * 0.015)).abs() < 1e-12);
}

#[test]
fn rfc_8033_4_4_burst_passes_and_allowance_is_restored() {
    let mut pie = Pie::new(rfc(), Always(0.0));
    (pie.probability, pie.delay, pie.delay_before) = (1.0, 100 * MS, 100 * MS);
    for update in 0..10 {
        assert_eq!(admit(&mut pie, arrival(Ecn::NotEct, 1500)), AdmitDecision::Accept, "{update}");
        pie.update_probability(BUSY);
    }
    assert_eq!(admit(&mut pie, arrival(Ecn::NotEct, 1500)), AdmitDecision::Drop);
    (pie.probability, pie.delay, pie.delay_before) = (0.0, 7 * MS, 7 * MS);
    admit(&mut pie, arrival(Ecn::NotEct, 1500));
    assert_eq!(pie.burst_left, 150 * MS);
}

#[test]
fn linux_burst_allowance_decreases_as_packets_leave() {
    let mut pie = Pie::new(PieConfig::default(), Always(0.0));
    let packet = Packet::new(0_u32, 0, 1500);
    // The first dequeue only sets the time. Idle periods also count.
    for (time, left) in [(100, 150), (110, 140), (200, 50), (300, 0)] {
        pie.on_dequeue(time * MS, &packet, BUSY);
        assert_eq!(pie.burst_left, left * MS);
    }
    (pie.probability, pie.delay, pie.delay_before) = (0.0, 0, 0);
    pie.update_probability(Backlog::default());
    assert_eq!((pie.burst_left, pie.served_at), (150 * MS, None));
}

#[test]
fn rfc_8033_4_1_no_drops_while_backlog_or_delay_is_small() {
    let mut pie = congested(rfc(), 0.19, 7 * MS);
    assert_eq!(admit(&mut pie, arrival(Ecn::NotEct, 1500)), AdmitDecision::Accept);
    assert_eq!(pie.accumulated, 0.0);
    for (rules, bytes) in [(PieRules::Rfc8033, 3000), (PieRules::Linux, 2999)] {
        let mut pie = congested(PieConfig { rules, ..rfc() }, 1.0, 100 * MS);
        let waiting = Backlog { packets: 2, bytes };
        let context = ArrivalContext { waiting, ..arrival(Ecn::NotEct, 1500) };
        assert_eq!(admit(&mut pie, context), AdmitDecision::Accept);
        let waiting = Backlog { packets: 3, bytes: bytes + 1 };
        assert_eq!(admit(&mut pie, ArrivalContext { waiting, ..context }), AdmitDecision::Drop);
    }
}

#[test]
fn rfc_8033_5_4_drops_are_spread_by_accumulated_probability() {
    // p = 0.1 with a draw that drops: no drop until the sum reaches 0.85 at the ninth packet.
    let mut pie = congested(rfc(), 0.1, 100 * MS);
    pie.draws = Always(0.05);
    let drops: Vec<usize> = (1..=27)
        .filter(|_| admit(&mut pie, arrival(Ecn::NotEct, 1500)) == AdmitDecision::Drop)
        .collect();
    assert_eq!(drops, [9, 18, 27]);
    // A draw that never drops: forced drop when the sum reaches 8.5.
    let mut pie = congested(rfc(), 0.125, 100 * MS);
    pie.draws = Always(0.9);
    let drops: Vec<usize> = (1..=140)
        .filter(|_| admit(&mut pie, arrival(Ecn::NotEct, 1500)) == AdmitDecision::Drop)
        .collect();
    assert_eq!(drops, [68, 136]);
}

#[test]
fn linux_marks_until_a_drop_after_the_accumulated_probability_reaches_its_limit() {
    // A draw that never drops, so only the sum of 8.5 does.
    let outcomes = |rules, probability| {
        let config = PieConfig { rules, ecn_below: Some(0.1), ..PieConfig::default() };
        let mut pie = congested(config, probability, 100 * MS);
        pie.draws = Always(0.9);
        let signals =
            |_: &usize| admit(&mut pie, arrival(Ecn::Ect0, 1500)) != AdmitDecision::Accept;
        (1..=140).filter(signals).collect::<Vec<_>>()
    };
    // Below 10 %, packets are marked: RFC 8033 resets the sum, Linux does not.
    assert_eq!(outcomes(PieRules::Rfc8033, 0.0625), [136]);
    assert_eq!(outcomes(PieRules::Linux, 0.0625), [136, 137, 138, 139, 140]);
    // Above 10 %, they are dropped, which resets the sum in both.
    for rules in [PieRules::Rfc8033, PieRules::Linux] {
        assert_eq!(outcomes(rules, 0.125), [68, 136]);
    }
}

#[test]
fn rfc_8033_5_1_capable_packets_are_dropped_above_threshold() {
    let config = PieConfig { ecn_below: Some(0.1), ..rfc() };
    for (probability, ecn, expected) in [
        (0.1, Ecn::Ect0, AdmitDecision::Mark),
        (0.1, Ecn::NotEct, AdmitDecision::Drop),
        (0.11, Ecn::Ect0, AdmitDecision::Drop),
    ] {
        let mut pie = congested(config, probability, 100 * MS);
        pie.draws = Always(0.0);
        let first = (0..20).map(|_| admit(&mut pie, arrival(ecn, 1500)));
        assert_eq!(first.into_iter().find(|admit| *admit != AdmitDecision::Accept), Some(expected));
    }
}

#[test]
fn deadlines_are_multiples_of_update_interval_and_full_buffer_drops() {
    let pie = Pie::new(PieConfig::default(), RandomStream::from_seed(1));
    let mut queue: Fifo<u32, Pie> = Fifo::new(BufferLimits::limit_packets(1), pie);
    assert_eq!(queue.deadline(), 15 * MS);
    queue.on_deadline(15 * MS);
    assert_eq!(queue.deadline(), 30 * MS);
    // A late call makes all missed updates.
    queue.on_deadline(61 * MS);
    assert_eq!(queue.deadline(), 75 * MS);
    let mut dropped = Vec::new();
    let mut offer = || queue.enqueue(62 * MS, Packet::new(0, 0, 1500), &mut dropped);
    assert_eq!(
        [offer(), offer()],
        [EnqueueOutcome::Accepted, EnqueueOutcome::Dropped(DropReason::Full)]
    );
}

#[test]
fn restart_resets_all_state() {
    let mut pie = congested(PieConfig::default(), 0.5, 100 * MS);
    pie.draws = Always(0.9);
    assert_eq!(admit(&mut pie, arrival(Ecn::NotEct, 1500)), AdmitDecision::Accept);
    pie.on_dequeue(100 * MS, &Packet::new(0_u32, 0, 1500), BUSY);
    pie.reset(200 * MS);
    let state = (pie.probability, pie.accumulated, pie.delay, pie.delay_before);
    assert_eq!(state, (0.0, 0.0, 0, 0));
    assert_eq!((pie.burst_left, pie.served_at, pie.update_at), (150 * MS, None, 215 * MS));
}

/// The load is an unresponsive flow at 1.2 times the rate.
#[test]
fn rfc_8033_3_delay_converges_to_target() {
    for rules in [PieRules::Rfc8033, PieRules::Linux] {
        let config = PieConfig { rules, ..PieConfig::default() };
        let pie = Pie::new(config, RandomStream::from_seed(2));
        let mut queue: Fifo<u32, Pie> = Fifo::new(BufferLimits::default(), pie);
        let mut dropped = Vec::new();
        let (mut delay, mut served) = (0, 0);
        let (mut arrives, mut departs) = (0, 0);
        while arrives < 100 * SECOND {
            let now = arrives.min(departs).min(queue.deadline());
            if now == queue.deadline() {
                queue.on_deadline(now);
            } else if now == departs {
                departs += MS;
                if let Some(packet) = queue.dequeue(now, &mut dropped).filter(|_| now > 50 * SECOND)
                {
                    delay += now - packet.entered;
                    served += 1;
                }
            } else {
                arrives += MS * 10 / 12;
                queue.enqueue(now, Packet::new(0, 0, 1500), &mut dropped);
            }
        }
        let mean = delay as f64 / served as f64 / MS as f64;
        assert!((mean - 15.0).abs() < 2.0, "{rules:?}: {mean} ms");
        // A drop rate of 1/6 is needed. The probability is higher because section 5.4 separates
        // drops.
        let probability = queue.admission().drop_probability();
        assert!((1.0 / 6.0..0.34).contains(&probability), "{rules:?}: {probability}");
    }
}

#[test]
fn late_updates_equal_timely_updates() {
    for rules in [PieRules::Rfc8033, PieRules::Linux] {
        for (delay, waiting) in [(0, Backlog::default()), (16 * MS, BUSY), (SECOND, BUSY)] {
            let config = PieConfig { rules, ..PieConfig::default() };
            let mut in_time = congested(config, 0.05, delay);
            in_time.burst_left = config.burst;
            let mut late = in_time.clone();
            let end = 40_000 * config.update;
            while in_time.update_at <= end {
                let due = in_time.update_at;
                AdmissionRule::on_deadline(&mut in_time, due, waiting);
            }
            AdmissionRule::on_deadline(&mut late, end, waiting);
            let state = |pie: &Pie<_>| (pie.probability, pie.delay_before, pie.burst_left);
            assert_eq!(state(&late), state(&in_time), "{rules:?} {delay}");
            assert_eq!(late.update_at, in_time.update_at);
        }
    }
}

#[test]
fn updates_of_thirty_years_are_extrapolated() {
    for (delay, target, probability) in [(2, 1, 1.0), (1, 2, 0.0)] {
        let config = PieConfig { target, update: 1, ..rfc() };
        let mut pie = congested(config, 0.5, delay);
        pie.burst_left = config.burst;
        // 30 years of nanoseconds.
        let end = 1_000_000_000 * SECOND;
        AdmissionRule::on_deadline(&mut pie, end, BUSY);
        assert_eq!((pie.probability, pie.burst_left, pie.update_at), (probability, 0, end + 1));
    }
}

#[test]
fn linux_4_divides_backlog_by_departure_rate() {
    let mut pie = Pie::new(PieConfig { rules: PieRules::Linux4, ..rfc() }, Always(0.5));
    let packet = Packet::new(0_u32, 0, 1500);
    // 1500 bytes per ms: a measurement of 16,384 bytes takes 11 packets and 10 ms.
    for ms in 0..11 {
        pie.on_dequeue(ms * MS, &packet, BUSY);
    }
    assert_eq!(pie.burst_left, 140 * MS);
    // 16,500 bytes in 10 ms; 33,000 bytes then wait for 20 ms.
    pie.update_probability(Backlog { packets: 22, bytes: 33_000 });
    assert!((pie.delay.cast_signed() - 20 * MS.cast_signed()).abs() <= 1);
    // Three scales of the step: alpha x 5 ms above the target + beta x 20 ms increase.
    let step = 0.125 * 0.005 + 1.25 * 0.020;
    assert!((pie.probability - step / 8.0).abs() < 1e-9);
}

#[test]
fn linux_4_drops_are_independent_of_each_other() {
    let mut pie = congested(PieConfig { rules: PieRules::Linux4, ..rfc() }, 0.6, 20 * MS);
    // The other rules drop at most one of two packets with this probability.
    let outcomes = [(); 2].map(|()| admit(&mut pie, arrival(Ecn::NotEct, 1500)));
    assert_eq!(outcomes, [AdmitDecision::Drop; 2]);
}
