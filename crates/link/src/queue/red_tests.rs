//! Tests of RED: probabilities, and comparison with a reference model of ns-2.

use super::*;
use crate::link::{OfferOutcome, QueueingLink};
use crate::packet::{Ecn, Packet};
use crate::queue::{Backlog, BufferLimits, DropReason, EnqueueOutcome, Fifo, QueueDiscipline};
use crate::transmit::ConstantRate;
use proptest::prelude::*;
use std::num::NonZeroU64;

/// Transmission time of a packet.
const TIME: Nanos = 1000;

#[derive(Default)]
struct Recorder {
    averages: Vec<f64>,
    early: u64,
}

impl QueueProbe<u32> for Recorder {
    fn on_drop(&mut self, _now: Nanos, _packet: &Packet, reason: DropReason) {
        self.early += u64::from(reason == DropReason::Early);
    }
    fn on_average_updated(&mut self, average: f64) {
        self.averages.push(average);
    }
}

fn config() -> RedConfig {
    RedConfig {
        min_threshold: 5.0,
        max_threshold: 15.0,
        max_probability: 0.1,
        weight: 0.002,
        gentle: true,
        adaptive: false,
        rules: RedRules::Ns2,
        packets_per_second: 1e6,
        ecn: false,
    }
}

fn at_average(config: RedConfig, average: f64) -> f64 {
    let mut red = Red::new(config, RandomStream::from_seed(1));
    red.average = average;
    red.base_drop_probability()
}

#[test]
fn red_1993_probability_rises_to_max_p_and_then_gently_to_one() {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
    assert!(near(at_average(config(), 5.0), 0.0));
    assert!(near(at_average(config(), 10.0), 0.05));
    assert!(near(at_average(config(), 15.0), 0.1));
    assert!(near(at_average(config(), 22.5), 0.55));
    assert!(near(at_average(config(), 40.0), 1.0));
    let abrupt = RedConfig { gentle: false, ..config() };
    assert!(near(at_average(abrupt, 14.999_999), 0.1 * 9.999_999 / 10.0));
    assert!(near(at_average(abrupt, 15.0), 1.0));
}

/// `max_p` at the arrival of a packet, `seconds` after the start, while `average` is constant.
fn adapted(average: f64, seconds: u64, idle_since: Option<Nanos>) -> f64 {
    let mut red = Red::new(RedConfig { adaptive: true, ..config() }, RandomStream::from_seed(1));
    red.average = average;
    red.adapt_probability(seconds * SECOND, idle_since);
    red.max_probability
}

#[test]
fn adaptive_red_2001_keeps_the_average_in_the_middle_fifth() {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
    // Between 9 and 11, the probability stays.
    assert!(near(adapted(10.0, 60, None), 0.1));
    // Above, it rises by 0.01 each half second until it exceeds one half.
    assert!(near(adapted(12.0, 1, None), 0.12));
    assert!((0.5..=0.511).contains(&adapted(12.0, 60, None)));
    // Below, it falls by a tenth until it is below 0.01.
    assert!(near(adapted(8.0, 1, None), 0.081));
    assert!((0.009..0.01).contains(&adapted(8.0, 60, None)));
    // A small probability rises by a quarter.
    let small = RedConfig { adaptive: true, max_probability: 0.02, ..config() };
    let mut red = Red::new(small, RandomStream::from_seed(1));
    red.average = 12.0;
    red.adapt_probability(SECOND / 2, None);
    assert!(near(red.max_probability, 0.025));
    // The average of an idle link decays.
    assert!(near(adapted(12.0, 2, Some(SECOND)), 0.12 * 0.9 * 0.9));
}

#[test]
fn linux_averages_bytes() {
    let packet_bytes = NonZeroU32::new(1500).unwrap();
    let bursts = Backlog { packets: 2, bytes: 30_000 };
    for (rules, expected) in [(RedRules::Ns2, 2.0), (RedRules::Linux { packet_bytes }, 20.0)] {
        let mut red =
            Red::new(RedConfig { rules, weight: 1.0, ..config() }, RandomStream::from_seed(1));
        let context = ArrivalContext {
            bytes: 15_000,
            ecn: Ecn::NotEct,
            waiting: bursts,
            idle_since: None,
            has_room: true,
        };
        red.update_average(0, &context);
        assert!((red.average - expected).abs() < 1e-12);
    }
}

#[test]
fn gaps_between_drops_are_uniform() {
    // p = 1/50: with `wait_` gaps of 50, 51, ..., 99 packets are equally likely, else of 1 to 49.
    for (wait, least, most) in [(true, 50, 99), (false, 1, 49)] {
        let mut gaps = Vec::new();
        let mut stream = RandomStream::from_seed(7);
        for _ in 0..200_000 {
            let mut count = 1;
            while !stream.draw_chance(uniformised_probability(0.02, f64::from(count), wait)) {
                count += 1;
            }
            gaps.push(count);
        }
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&least), Some(&most)));
        let share = |gap| gaps.iter().filter(|g| **g == gap).count() as f64 / gaps.len() as f64;
        let equal = 1.0 / f64::from(most - least + 1);
        assert!((least..=most).all(|gap| (share(gap) - equal).abs() < 0.0015));
    }
}

/// Averages after arrivals at `times`; each packet takes `TIME` to transmit.
fn averages(link: &mut QueueingLink<Fifo<u32, Red>, ConstantRate>, times: &[Nanos]) -> Vec<f64> {
    let mut recorder = Recorder::default();
    for now in times {
        while link.next_departure() <= *now {
            link.transmit_next_packet(&mut recorder);
        }
        let offered = link.offer(*now, Packet::new(0, 0, TIME as u32), &mut recorder);
        assert!(!matches!(offered, OfferOutcome::Dropped(_)));
    }
    recorder.averages
}

#[test]
fn average_decays_while_link_is_idle_and_is_reset_by_restart() {
    let red = Red::new(RedConfig { weight: 0.5, ..config() }, RandomStream::from_seed(1));
    let rate = ConstantRate::new(NonZeroU64::new(8 * SECOND));
    let mut link = QueueingLink::new(Fifo::new(BufferLimits::default(), red), rate);
    // The fifth packet finds the link idle for no time, the sixth for just under 3 transmission
    // times.
    let expected = [0.0, 0.0, 0.5, 1.25, 0.625, 0.625 / 8.0];
    assert_eq!(averages(&mut link, &[0, 0, 0, 0, 4000, 7999]), expected);
    link.reset_when_empty(9000);
    assert_eq!(averages(&mut link, &[9000]), [0.0]);
}

/// Decision about a packet that finds ten waiting packets, in the range of early drops.
fn admit(red: &mut Red, bytes: u32, ecn: Ecn) -> AdmitDecision {
    let waiting = Backlog { packets: 10, bytes: 10_000 };
    let context = ArrivalContext { bytes, ecn, waiting, idle_since: None, has_room: true };
    red.above = true;
    red.admit::<u32>(0, &context, &mut Vec::new())
}

#[test]
fn rfc_3168_7_capable_packets_are_marked_below_probability_one() {
    let ecn = RedConfig { ecn: true, gentle: false, weight: 1e-12, ..config() };
    for (average, ecn_field, expected) in [
        (14.0, Ecn::Ect0, AdmitDecision::Mark),
        (14.0, Ecn::Ect1, AdmitDecision::Mark),
        (14.0, Ecn::NotEct, AdmitDecision::Drop),
        (15.1, Ecn::Ect0, AdmitDecision::Drop),
    ] {
        let mut red = Red::new(ecn, RandomStream::from_seed(3));
        red.average = average;
        let outcomes: Vec<AdmitDecision> =
            (0..30).map(|_| admit(&mut red, 1500, ecn_field)).collect();
        let signals = outcomes.iter().filter(|outcome| **outcome == expected).count();
        let accepted = outcomes.iter().filter(|outcome| **outcome == AdmitDecision::Accept).count();
        assert!(signals > 0 && signals + accepted == 30, "{average} {ecn_field:?}: {outcomes:?}");
    }
}

/// Reference model of RED as in ns-2, on a queue that advances from departure to departure.
struct Reference {
    config: RedConfig,
    limit: usize,
    waiting: usize,
    /// Departure time of the packet in transmission.
    busy_until: Option<Nanos>,
    idle_since: Nanos,
    average: f64,
    count: u64,
    old: bool,
    stream: RandomStream,
}

impl Reference {
    fn step(&mut self, now: Nanos) {
        while let Some(end) = self.busy_until.filter(|end| *end <= now) {
            if self.waiting > 0 {
                self.waiting -= 1;
                self.busy_until = Some(end + TIME);
            } else {
                self.busy_until = None;
                self.idle_since = end;
            }
        }
    }

    fn probability(&self) -> f64 {
        let RedConfig { min_threshold: low, max_threshold: high, max_probability: max_p, .. } =
            self.config;
        let p = if self.average < high {
            (self.average / (high - low) - low / (high - low)) * max_p
        } else if self.config.gentle {
            (1.0 - max_p) / high * self.average + 2.0 * max_p - 1.0
        } else {
            1.0
        };
        let expected = self.count as f64 * p.min(1.0);
        match expected {
            e if e < 1.0 => 0.0,
            e if e < 2.0 => p.min(1.0) / (2.0 - e),
            _ => 1.0,
        }
    }

    fn enqueue(&mut self, now: Nanos) -> EnqueueOutcome {
        self.step(now);
        let idle = if self.busy_until.is_none() { (now - self.idle_since) / TIME } else { 0 };
        for _ in 0..=idle {
            self.average *= 1.0 - self.config.weight;
        }
        self.average += self.config.weight * self.waiting as f64;
        self.count += 1;
        let mut verdict = EnqueueOutcome::Accepted;
        if self.average < self.config.min_threshold || self.waiting <= 1 {
            self.old = false;
        } else if !self.old {
            self.count = 1;
            self.old = true;
        } else if self.stream.draw_unit() <= self.probability() {
            self.count = 0;
            verdict = EnqueueOutcome::Dropped(DropReason::Early);
        }
        if self.waiting + usize::from(self.busy_until.is_some()) >= self.limit {
            self.count = 0;
            verdict = EnqueueOutcome::Dropped(DropReason::Full);
        }
        if verdict == EnqueueOutcome::Accepted {
            if self.busy_until.is_none() {
                self.busy_until = Some(now + TIME);
            } else {
                self.waiting += 1;
            }
        }
        verdict
    }
}

proptest! {
    #[test]
    fn red_agrees_with_reference_model_of_ns2(
        gaps in prop::collection::vec(prop_oneof![9 => 0_u64..1300, 1 => 0_u64..40_000], 1..800),
        limit in 1_usize..40,
        seed in 0_u64..1000,
        low in 0.5_f64..6.0,
        width in 0.5_f64..9.0,
        max_probability in 0.01_f64..=1.0,
        weight in prop_oneof![0.001_f64..0.05, 0.05_f64..=1.0],
        gentle: bool,
    ) {
        let config = RedConfig {
            min_threshold: low,
            max_threshold: low + width,
            max_probability,
            weight,
            gentle,
            ..config()
        };
        let red = Red::new(config, RandomStream::from_seed(seed));
        let mut queue = Fifo::new(BufferLimits::limit_packets(limit as u64), red);
        let mut reference = Reference {
            config,
            limit,
            waiting: 0,
            busy_until: None,
            idle_since: 0,
            average: 0.0,
            count: 0,
            old: false,
            stream: RandomStream::from_seed(seed),
        };
        let mut recorder = Recorder::default();
        let (mut now, mut leaves) = (0, None);
        for gap in gaps {
            now += gap;
            while let Some(free) = leaves.filter(|free| *free <= now) {
                leaves = queue.dequeue(free, &mut recorder).map(|_| free + TIME);
            }
            let verdict = reference.enqueue(now);
            prop_assert_eq!(queue.enqueue(now, Packet::new(0, 0, 1500), &mut recorder), verdict);
            if leaves.is_none() {
                leaves = queue.dequeue(now, &mut recorder).map(|_| now + TIME);
            }
            let average = recorder.averages[recorder.averages.len() - 1];
            prop_assert!((average - reference.average).abs() <= 1e-9 * (1.0 + average));
            prop_assert_eq!(queue.waiting_backlog().packets as usize, reference.waiting);
        }
    }
}
