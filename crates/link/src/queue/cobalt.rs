//! COBALT, the controller of each queue of CAKE: CoDel and BLUE in parallel (Høiland-Jørgensen, Täht
//! and Morton, "Piece of CAKE", 2018, section III-D; Linux's `sch_cake.c`).
//!
//! CoDel signals congestion to flows that react, by marks or drops at intervals of
//! `interval / sqrt(count)`. In contrast to RFC 8289, the count decreases by one per interval after
//! the delay has fallen, instead of restarting, so the drop rate of a flow is kept over short gaps.
//! BLUE drops at random, with a probability that grows when the buffer overflows and falls when the
//! queue is empty; it acts on flows that do not react.

use crate::packet::Packet;
use crate::random::{RandomSource, RandomStream};
use crate::time::Nanos;

/// Step of BLUE's probability at an overflow: 1/256, in units of 2^-32.
const BLUE_INCREMENT: u32 = 1 << 24;
/// Step of BLUE's probability when the queue is empty: 1/4096.
const BLUE_DECREMENT: u32 = 1 << 20;

/// Number of inverse square roots that are stored because a single Newton step is inexact for them.
const STORED_ROOTS: usize = 16;
const INVERSE_ROOTS: [u32; STORED_ROOTS] = store_inverse_roots();

/// Parameters of COBALT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CobaltConfig {
    /// Longest acceptable sojourn time.
    pub target: Nanos,
    /// Time above the target before the first signal, and the scale of the signal rate.
    pub interval: Nanos,
    /// Transmission time of a full-sized packet; sojourn times up to 4 times this are accepted.
    pub mtu_time: Nanos,
}

/// State of COBALT for one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cobalt {
    count: u32,
    /// `1 / sqrt(count)` in units of 2^-32.
    inverse_root: u32,
    /// Time of the next signal, or of the next decrease of the count.
    signal_next: Nanos,
    blue_changed: Nanos,
    /// BLUE's drop probability in units of 2^-32.
    blue: u32,
    dropping: bool,
}

impl Cobalt {
    /// The buffer has overflowed, and the queue loses its first packet.
    pub fn on_overflow(&mut self, now: Nanos, config: &CobaltConfig) {
        if now.saturating_sub(self.blue_changed) > config.target {
            self.blue = self.blue.saturating_add(BLUE_INCREMENT);
            self.blue_changed = now;
        }
        self.dropping = true;
        self.signal_next = now;
        self.count = self.count.max(1);
    }

    /// The queue had its turn, but was empty.
    pub fn on_empty(&mut self, now: Nanos, config: &CobaltConfig) {
        if self.blue > 0 && now.saturating_sub(self.blue_changed) > config.target {
            self.blue = self.blue.saturating_sub(BLUE_DECREMENT);
            self.blue_changed = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.signal_next {
            self.count -= 1;
            self.schedule_after(self.signal_next, config);
        }
    }

    /// Whether the state is that of an unused queue.
    pub fn is_at_rest(&self, now: Nanos) -> bool {
        self.blue == 0 && self.count == 0 && now >= self.signal_next
    }

    /// Decides about a packet that leaves the queue. Marks it, or returns true if it must be dropped.
    /// `bulk_flows`: number of flows with a backlog if the packet was shaped behind its bottleneck,
    /// otherwise 0.
    pub fn must_drop<T>(
        &mut self,
        now: Nanos,
        config: &CobaltConfig,
        packet: &mut Packet<T>,
        bulk_flows: u64,
        draws: &mut RandomStream,
    ) -> bool {
        let sojourn = now - packet.entered;
        let accepted = config.target.max(config.mtu_time * (2 * bulk_flows).max(4));
        let mut is_due = self.count > 0 && now >= self.signal_next;
        // As in Linux, the start of dropping does not change the time of the next signal: if a
        // queue has been idle for longer than an interval, its next packet is signalled.
        let mut is_past = now > self.signal_next;
        if sojourn > accepted {
            if !self.dropping {
                self.dropping = true;
                self.signal_next = now + self.spacing(config);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let mut drop = false;
        if is_due && self.dropping {
            drop = !packet.mark_if_ecn_capable();
            self.count = self.count.saturating_add(1);
            self.schedule_after(self.signal_next, config);
            is_past = now > self.signal_next;
        } else {
            while is_due {
                self.count -= 1;
                self.schedule_after(self.signal_next, config);
                is_past = now > self.signal_next;
                is_due = self.count > 0 && now >= self.signal_next;
            }
        }
        if self.blue > 0 {
            drop |= (draws.next_bits() as u32) < self.blue;
        }
        if self.count == 0 {
            self.signal_next = now + config.interval;
        } else if is_past && !drop {
            self.signal_next = now;
        }
        drop
    }

    /// Schedules the next signal after the one at `last`, for the present count.
    fn schedule_after(&mut self, last: Nanos, config: &CobaltConfig) {
        self.inverse_root = match INVERSE_ROOTS.get(self.count as usize) {
            Some(root) => *root,
            None => newton_step(self.inverse_root, self.count),
        };
        self.signal_next = last + self.spacing(config);
    }

    fn spacing(&self, config: &CobaltConfig) -> Nanos {
        ((u128::from(config.interval) * u128::from(self.inverse_root)) >> 32) as Nanos
    }
}

/// `x <- x (3 - count x^2) / 2` in units of 2^-32, as in Linux.
pub(super) const fn newton_step(root: u32, count: u32) -> u32 {
    let square = ((root as u64 * root as u64) >> 32) as u32;
    let rest = (3_u64 << 32).wrapping_sub(count as u64 * square as u64) >> 2;
    (rest.wrapping_mul(root as u64) >> 31) as u32
}

const fn store_inverse_roots() -> [u32; STORED_ROOTS] {
    let mut roots = [u32::MAX; STORED_ROOTS];
    let (mut count, mut root) = (1, u32::MAX);
    while count < STORED_ROOTS {
        let mut step = 0;
        while step < 4 {
            root = newton_step(root, count as u32);
            step += 1;
        }
        roots[count] = root;
        count += 1;
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::time::MILLISECOND;

    const CONFIG: CobaltConfig = CobaltConfig {
        target: 5 * MILLISECOND,
        interval: 100 * MILLISECOND,
        mtu_time: MILLISECOND / 2,
    };

    fn draws() -> RandomStream {
        RandomStream::from_seed(1)
    }

    #[test]
    fn stored_roots_are_exact_and_newton_steps_follow_them() {
        let is_close = |root: u32, count: u32| {
            let exact = f64::from(count).sqrt().recip();
            (f64::from(root) / 2_f64.powi(32) / exact - 1.0).abs() < 2e-3
        };
        assert!((1..16).all(|count| is_close(INVERSE_ROOTS[count as usize], count)));
        let mut root = INVERSE_ROOTS[15];
        for count in 16..2000 {
            root = newton_step(root, count);
            assert!(is_close(root, count), "{count}");
        }
    }

    /// Times of the drops of packets that leave every ms, and have waited for 50 ms from 200 ms on.
    fn drop_times(until_ms: u64, ecn: Ecn) -> Vec<u64> {
        let state = Cobalt { inverse_root: u32::MAX, ..Cobalt::default() };
        let (mut state, mut draws) = (state, draws());
        (190..until_ms)
            .filter(|ms| {
                let now = ms * MILLISECOND;
                let mut packet = Packet::new(0, 0, 1500).with_ecn(ecn);
                packet.entered = if *ms < 200 { now } else { now - 50 * MILLISECOND };
                let dropped = state.must_drop(now, &CONFIG, &mut packet, 0, &mut draws);
                assert!(!(dropped && packet.marked));
                dropped || packet.marked
            })
            .collect()
    }

    #[test]
    fn signals_follow_the_control_law_after_one_interval() {
        let mut exact = 200.0;
        let expected: Vec<u64> = (1..12)
            .map(|count| {
                exact += 100.0 / f64::from(count).sqrt();
                exact.ceil() as u64
            })
            .collect();
        // The first count is 1 when the delay exceeds the target, and 2 after the first signal.
        let times = drop_times(1200, Ecn::NotEct);
        assert!(times.iter().zip(&expected).all(|(a, b)| a.abs_diff(*b) <= 1), "{times:?}");
        assert!(times.len() >= 11);
        assert_eq!(times, drop_times(1200, Ecn::Ect0));
    }

    #[test]
    fn unused_or_idle_queue_is_signalled_with_its_second_late_packet_as_in_linux() {
        let (mut state, mut draws) = (Cobalt::default(), draws());
        let mut drops = |now_ms: u64| {
            let mut packet = Packet::new(0, 0, 1500);
            packet.entered = (now_ms - 50) * MILLISECOND;
            state.must_drop(now_ms * MILLISECOND, &CONFIG, &mut packet, 0, &mut draws)
        };
        assert_eq!([drops(200), drops(201), drops(202)], [false, true, false]);
    }

    #[test]
    fn count_decreases_by_one_per_interval_below_the_target() {
        let (mut state, mut draws) = (Cobalt::default(), draws());
        let mut pass = |now_ms: u64, waited_ms: u64| {
            let mut packet = Packet::new(0, 0, 1500);
            packet.entered = (now_ms - waited_ms) * MILLISECOND;
            state.must_drop(now_ms * MILLISECOND, &CONFIG, &mut packet, 0, &mut draws);
            state.count
        };
        let counts: Vec<u32> = (100..1000).map(|ms| pass(ms, 50)).collect();
        let highest = counts[counts.len() - 1];
        assert!(highest > 5);
        assert!(pass(1010, 1) >= highest - 1);
        assert_eq!(pass(1000 + 100 * u64::from(highest), 1), 0);
    }

    #[test]
    fn blue_reacts_to_overflow_and_to_empty_queues_at_most_once_per_target() {
        let mut state = Cobalt::default();
        for ms in 100..110 {
            state.on_overflow(ms * MILLISECOND, &CONFIG);
        }
        assert_eq!(state.blue, 2 * BLUE_INCREMENT);
        (0..3).for_each(|_| state.on_empty(200 * MILLISECOND, &CONFIG));
        assert_eq!(state.blue, 2 * BLUE_INCREMENT - BLUE_DECREMENT);
    }

    #[test]
    fn blue_drops_ecn_capable_packets_with_its_probability() {
        let (mut state, mut draws) = (Cobalt { blue: 1 << 30, ..Cobalt::default() }, draws());
        let drops = (0..10_000).filter(|_| {
            let mut packet = Packet::new(0, 0, 1500).with_ecn(Ecn::Ect0);
            state.must_drop(0, &CONFIG, &mut packet, 0, &mut draws)
        });
        let drops = drops.count();
        assert!(drops.abs_diff(2500) < 200, "{drops}");
    }
}
