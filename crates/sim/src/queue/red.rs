//! Random early detection: Floyd and Jacobson, "Random early detection gateways for congestion
//! avoidance", IEEE/ACM Transactions on Networking 1 (1993), as ns-2 2.35 has it.
//!
//! A packet that arrives first moves the average, `avg <- (1 - w) avg + w q`; one that finds the
//! link idle has the average shrink before, as if the `m` packets that could have been sent in the
//! idle time had found the queue empty: `avg <- (1 - w)^m avg`. Then, with the average between the
//! thresholds,
//!
//! ```text
//! p_b = max_p (avg - min_th) / (max_th - min_th)
//! ```
//!
//! and the packet is dropped with a probability that makes the gaps between drops nearly uniform.
//! The paper has `p_a = p_b / (1 - count p_b)`, where `count` packets have come since the last
//! drop; ns-2 waits at least `1 / p_b` packets (its `wait_`, on unless told): see [`spread`].
//!
//! Where ns-2 goes beyond the paper, or reads it in one way, so does this:
//! - `q` counts packets that wait; the one in transmission is left out.
//! - `gentle`: above `max_th`, `p_b` rises from `max_p` to 1 at twice `max_th`, instead of at once.
//! - Nothing is dropped early while fewer than two packets wait, nor is the first packet that finds
//!   the average above `min_th`.
//! - A packet dropped for want of room begins `count` anew as well.
//!
//! ns-2 measures in bytes unless told; with packets of one size that is the same, if its
//! `mean_pktsize_` is that size.

use super::{DropTail, QueueDiscipline, QueueProbe, Verdict};
use crate::clock::{Nanos, SECOND, Transmitter};
use crate::packet::Packet;
use crate::random::{Draws, Stream};

/// The parameters of RED; thresholds in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Below this average nothing is dropped early: `min_th`.
    pub min_threshold: f64,
    /// Where the probability has reached `max_probability`: `max_th`, above `min_th`.
    pub max_threshold: f64,
    /// `max_p`, up to 1.
    pub max_probability: f64,
    /// How much a new length counts in the average: `w`, above 0 and up to 1.
    pub weight: f64,
    /// Whether the probability rises to 1 at twice `max_threshold`, or jumps there.
    pub gentle: bool,
    /// Packets that the link sends in a second.
    pub packets_per_second: f64,
}

/// A RED queue over a buffer that may also be full.
#[derive(Clone, Debug)]
pub struct Red {
    config: RedConfig,
    fifo: DropTail,
    stream: Stream,
    average: f64,
    /// Packets since the last drop, or since the average came above `min_threshold`.
    count: u64,
    /// Whether the average was above `min_threshold` when the last packet came.
    above: bool,
    /// When the last packet accepted leaves.
    last_leaves: Nanos,
}

impl Red {
    /// An empty queue that holds `most` packets, the one in transmission included.
    #[must_use]
    pub fn new(config: RedConfig, most: Option<u64>, stream: Stream) -> Self {
        Self {
            config,
            fifo: DropTail::new(most),
            stream,
            average: 0.0,
            count: 0,
            above: false,
            last_leaves: 0,
        }
    }

    /// Moves the average for a packet that finds `found` packets.
    fn move_average(&mut self, now: Nanos, found: usize) {
        let keep = 1.0 - self.config.weight;
        if found == 0 {
            let idle = (now - self.last_leaves) as f64 / SECOND as f64;
            let missed = libm::floor(idle * self.config.packets_per_second);
            self.average *= libm::pow(keep, missed + 1.0);
        } else {
            self.average = keep * self.average + self.config.weight * (found - 1) as f64;
        }
    }

    /// `p_b`.
    fn base_probability(&self) -> f64 {
        let RedConfig { min_threshold, max_threshold, max_probability, .. } = self.config;
        if self.average < max_threshold {
            max_probability * (self.average - min_threshold) / (max_threshold - min_threshold)
        } else if self.config.gentle {
            let above = (self.average - max_threshold) / max_threshold;
            (max_probability + (1.0 - max_probability) * above).min(1.0)
        } else {
            1.0
        }
    }

    fn drops_early(&mut self, found: usize) -> bool {
        self.count += 1;
        if self.average < self.config.min_threshold || found < 3 {
            self.above = false;
            return false;
        }
        if !self.above {
            self.above = true;
            self.count = 1;
            return false;
        }
        let drops = self.stream.chance(spread(self.base_probability(), self.count));
        if drops {
            self.count = 0;
        }
        drops
    }
}

/// The probability of dropping the packet `count`: none until `1 / p` packets have come, then such
/// that the drop is equally likely at each of the next `1 / p`. ns-2's `modify_p` with `wait_`.
fn spread(p: f64, count: u64) -> f64 {
    let expected = count as f64 * p;
    if expected < 1.0 {
        0.0
    } else if expected < 2.0 {
        (p / (2.0 - expected)).min(1.0)
    } else {
        1.0
    }
}

impl QueueDiscipline for Red {
    fn offer(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Verdict {
        self.fifo.settle(now, probe);
        let found = self.fifo.held();
        self.move_average(now, found);
        probe.queue_averaged(self.average);
        if self.drops_early(found) && self.fifo.has_room() {
            probe.queue_seen(found);
            probe.dropped_early();
            return Verdict::Dropped;
        }
        let verdict = self.fifo.offer(now, packet, link, probe);
        if let Verdict::Departs { leaves, .. } = verdict {
            self.last_leaves = leaves;
        } else {
            self.count = 0;
        }
        verdict
    }

    fn settle(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
        self.fifo.settle(now, probe);
    }

    fn restart(&mut self) {
        self.average = 0.0;
        self.count = 0;
        self.above = false;
    }

    fn held(&self) -> usize {
        self.fifo.held()
    }

    fn ahead(&self, now: Nanos) -> Nanos {
        self.fifo.ahead(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Named, Purpose};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// 1500 bytes take 1000 ns.
    const RATE: u64 = 12_000_000_000;
    const TIME: Nanos = 1000;

    #[derive(Default)]
    struct Heard {
        averages: Vec<f64>,
        early: u64,
    }

    impl QueueProbe for Heard {
        fn queue_held(&mut self, _packets: usize, _until: Nanos) {}
        fn queue_seen(&mut self, _packets: usize) {}
        fn queue_averaged(&mut self, packets: f64) {
            self.averages.push(packets);
        }
        fn dropped_early(&mut self) {
            self.early += 1;
        }
    }

    fn stream(seed: u64) -> Stream {
        Stream::named(seed, 0, 0, Purpose::EarlyDrop)
    }

    #[test]
    fn a_restart_forgets_the_average() {
        let mut link = Transmitter::new(Some(RATE), 1500);
        let mut red = Red::new(RedConfig { weight: 0.5, ..config() }, None, stream(1));
        (0..40).for_each(|_| {
            red.offer(0, &Packet::default(), &mut link, &mut Heard::default());
        });
        red.settle(100 * TIME, &mut Heard::default());
        assert!(red.average > 1.0);
        red.restart();
        let mut heard = Heard::default();
        red.offer(100 * TIME, &Packet::default(), &mut link, &mut heard);
        assert_eq!(heard.averages, [0.0]);
    }

    fn config() -> RedConfig {
        RedConfig {
            min_threshold: 5.0,
            max_threshold: 15.0,
            max_probability: 0.1,
            weight: 0.002,
            gentle: true,
            packets_per_second: 1e6,
        }
    }

    fn at_average(config: RedConfig, average: f64) -> f64 {
        let mut red = Red::new(config, None, stream(1));
        red.average = average;
        red.base_probability()
    }

    #[test]
    fn the_probability_rises_to_max_p_and_then_gently_to_one() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(at_average(config(), 5.0), 0.0));
        assert!(near(at_average(config(), 10.0), 0.05));
        assert!(near(at_average(config(), 15.0), 0.1));
        assert!(near(at_average(config(), 22.5), 0.55));
        assert!(near(at_average(config(), 30.0), 1.0));
        assert!(near(at_average(config(), 40.0), 1.0));
        let abrupt = RedConfig { gentle: false, ..config() };
        assert!(near(at_average(abrupt, 14.999_999), 0.1 * 9.999_999 / 10.0));
        assert!(near(at_average(abrupt, 15.0), 1.0));
    }

    #[test]
    fn gaps_between_drops_are_uniform_from_one_to_two_times_the_mean() {
        // p = 1/50: the drop is packet 50, 51, ..., 99, each as likely, or at last 100.
        let mut gaps = Vec::new();
        let mut stream = stream(7);
        for _ in 0..200_000 {
            let mut count = 1;
            while !stream.chance(spread(0.02, count)) {
                count += 1;
            }
            gaps.push(count);
        }
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&50), Some(&99)));
        let share = |gap| gaps.iter().filter(|g| **g == gap).count() as f64 / gaps.len() as f64;
        assert!((50..100).all(|gap| (share(gap) - 0.02).abs() < 0.0015));
    }

    #[test]
    fn the_average_shrinks_while_the_link_is_idle() {
        let mut link = Transmitter::new(Some(RATE), 1500);
        let mut red = Red::new(RedConfig { weight: 0.5, ..config() }, None, stream(1));
        let mut heard = Heard::default();
        for now in [0, 0, 0, 0, 4000, 7999] {
            red.offer(now, &Packet::default(), &mut link, &mut heard);
        }
        // The fifth finds the link idle for no time, the sixth for just under three packets' time.
        let expected = [0.0, 0.0, 0.5, 1.25, 0.625, 0.625 / 8.0];
        assert_eq!(heard.averages, expected);
    }

    /// RED in ns-2's words, on a queue that is stepped from departure to departure.
    struct Stepped {
        config: RedConfig,
        room: usize,
        waiting: VecDeque<()>,
        /// When the packet in transmission leaves.
        busy_until: Option<Nanos>,
        idle_since: Nanos,
        average: f64,
        count: u64,
        old: bool,
        stream: Stream,
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Fate {
        Queued,
        Early,
        Forced,
    }

    impl Stepped {
        fn step(&mut self, now: Nanos) {
            while self.busy_until.is_some_and(|end| end <= now) {
                let end = self.busy_until.take().unwrap_or(0);
                match self.waiting.pop_front() {
                    Some(()) => self.busy_until = Some(end + TIME),
                    None => self.idle_since = end,
                }
            }
        }

        fn enqueue(&mut self, now: Nanos) -> Fate {
            self.step(now);
            let RedConfig { min_threshold: low, max_threshold: high, .. } = self.config;
            let mut m = 1;
            if self.busy_until.is_none() {
                m += (now - self.idle_since) / TIME;
            }
            for _ in 0..m {
                self.average *= 1.0 - self.config.weight;
            }
            let length = self.waiting.len();
            self.average += self.config.weight * length as f64;
            self.count += 1;
            let mut fate = Fate::Queued;
            if self.average >= low && length > 1 {
                if !self.old {
                    self.count = 1;
                    self.old = true;
                } else {
                    let max_p = self.config.max_probability;
                    let p = if self.average < high {
                        (self.average / (high - low) - low / (high - low)) * max_p
                    } else if self.config.gentle {
                        (1.0 - max_p) / high * self.average + 2.0 * max_p - 1.0
                    } else {
                        1.0
                    };
                    let expected = self.count as f64 * p.min(1.0);
                    let p = if expected < 1.0 {
                        0.0
                    } else if expected < 2.0 {
                        p.min(1.0) / (2.0 - expected)
                    } else {
                        1.0
                    };
                    if self.stream.unit() <= p {
                        self.count = 0;
                        fate = Fate::Early;
                    }
                }
            } else {
                self.old = false;
            }
            let full = length + usize::from(self.busy_until.is_some()) >= self.room;
            if full {
                self.count = 0;
                fate = Fate::Forced;
            }
            if fate == Fate::Queued {
                if self.busy_until.is_none() {
                    self.busy_until = Some(now + TIME);
                } else {
                    self.waiting.push_back(());
                }
            }
            fate
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_queue_that_is_stepped(
            gaps in prop::collection::vec(prop_oneof![9 => 0_u64..1300, 1 => 0_u64..40_000], 1..800),
            room in 1_usize..40,
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
                packets_per_second: 1e6,
            };
            let mut link = Transmitter::new(Some(RATE), 1500);
            let mut red = Red::new(config, Some(room as u64), stream(seed));
            let mut stepped = Stepped {
                config,
                room,
                waiting: VecDeque::new(),
                busy_until: None,
                idle_since: 0,
                average: 0.0,
                count: 0,
                old: false,
                stream: stream(seed),
            };
            let mut heard = Heard::default();
            let (mut now, mut early) = (0, 0);
            for gap in gaps {
                now += gap;
                let fate = stepped.enqueue(now);
                early += u64::from(fate == Fate::Early);
                let verdict = red.offer(now, &Packet::default(), &mut link, &mut heard);
                prop_assert_eq!(matches!(verdict, Verdict::Dropped), fate != Fate::Queued);
                prop_assert_eq!(heard.early, early);
                let average = heard.averages[heard.averages.len() - 1];
                prop_assert!((average - stepped.average).abs() <= 1e-9 * (1.0 + average));
                let held = stepped.waiting.len() + usize::from(stepped.busy_until.is_some());
                prop_assert_eq!(red.held(), held);
                if let Verdict::Departs { leaves, found } = verdict {
                    let end = stepped.busy_until.unwrap_or(0);
                    prop_assert_eq!(leaves, end + TIME * found as u64);
                }
            }
        }
    }
}
