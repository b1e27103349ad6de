//! Round-trip time: smoothed value, recent minimum, and retransmission timeout.

use super::stack::{RttRule, Stack};
use tcpcast_link::time::{Nanos, SECOND};

/// Window of the minimum round-trip time: Linux's `tcp_min_rtt_wlen`.
const MIN_RTT_WINDOW: Nanos = 300 * SECOND;

/// Round-trip estimator. Values are scaled as in Van Jacobson's algorithm: srtt by 8, deviations by
/// 4.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    /// 8 times the smoothed round-trip time; [`None`] before the first sample.
    smoothed: Option<i64>,
    /// 4 times the smoothed mean deviation.
    deviation: i64,
    /// Maximum of `deviation` in the current window.
    largest_deviation: i64,
    /// Term added to srtt in the timeout.
    variation: i64,
    /// The current window ends when this byte is acknowledged.
    window_end: u64,
    rto: Nanos,
    /// Timeout after the last sample, in whole ticks, not limited by the maximum.
    in_ticks: Nanos,
    min: WindowedMinFilter,
}

impl RttEstimator {
    /// Initial state without a sample: RFC 6298 (2.1).
    #[must_use]
    pub fn new(stack: &Stack) -> Self {
        Self {
            smoothed: None,
            deviation: 0,
            largest_deviation: 0,
            variation: 0,
            window_end: 0,
            rto: stack.initial_rto,
            in_ticks: 0,
            min: WindowedMinFilter::default(),
        }
    }

    /// The handshake gave no sample, because a SYN or SYN-ACK was retransmitted: RFC 6298 (5.7).
    pub fn set_fallback_rto(&mut self, stack: &Stack) {
        self.rto = stack.fallback_rto;
        self.variation = stack.fallback_rto as i64;
    }

    /// Current timeout, including back-off.
    #[inline(always)]
    #[must_use]
    pub fn rto(&self) -> Nanos {
        self.rto
    }

    /// Smoothed round-trip time.
    #[inline(always)]
    #[must_use]
    pub fn srtt(&self) -> Option<Nanos> {
        self.smoothed.map(|scaled| (scaled >> 3) as Nanos)
    }

    /// Smoothed mean deviation.
    #[must_use]
    pub fn deviation(&self) -> Nanos {
        (self.deviation >> 2) as Nanos
    }

    /// Minimum round-trip time of the last five minutes.
    #[inline(always)]
    #[must_use]
    pub fn min_rtt(&self) -> Option<Nanos> {
        self.min.min_value()
    }

    /// Adds a round-trip time to the minimum filter only.
    #[inline(always)]
    pub fn update_min(&mut self, now: Nanos, rtt: Nanos) {
        self.min.add_sample(now, rtt, MIN_RTT_WINDOW);
    }

    /// Adds a sample; `una` is the first unacknowledged byte and `next` the next byte to send.
    #[inline]
    pub fn add_sample(&mut self, rtt: Nanos, una: u64, next: u64, stack: &Stack) {
        match stack.rtt_rule {
            RttRule::Linux => self.add_sample_as_linux(rtt as i64, una, next, stack),
            RttRule::Rfc6298 => self.add_sample_as_rfc(rtt as i64, stack),
        }
        self.set_rto_from_estimate(stack);
    }

    /// Linux: deviations have less weight while the round-trip time falls. The term added to srtt
    /// rises immediately and falls once per window, by a quarter, to no less than the minimum RTO.
    fn add_sample_as_linux(&mut self, rtt: i64, una: u64, next: u64, stack: &Stack) {
        let floor = stack.min_rto as i64;
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some((rtt << 3).max(1));
            self.deviation = rtt << 1;
            self.variation = self.deviation.max(floor);
            self.largest_deviation = self.variation;
            self.window_end = next;
            return;
        };
        let error = rtt - (smoothed >> 3);
        self.smoothed = Some((smoothed + error).max(1));
        let mut change = error.abs() - (self.deviation >> 2);
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.deviation += change;
        if self.deviation > self.largest_deviation {
            self.largest_deviation = self.deviation;
            self.variation = self.variation.max(self.largest_deviation);
        }
        if una > self.window_end {
            if self.largest_deviation < self.variation {
                self.variation -= (self.variation - self.largest_deviation) >> 2;
            }
            self.window_end = next;
            self.largest_deviation = floor;
        }
    }

    /// RFC 6298 (2.2), (2.3).
    fn add_sample_as_rfc(&mut self, rtt: i64, stack: &Stack) {
        match self.smoothed {
            None => {
                self.smoothed = Some((rtt << 3).max(1));
                self.deviation = rtt << 1;
            }
            Some(smoothed) => {
                let error = rtt - (smoothed >> 3);
                self.deviation += error.abs() - (self.deviation >> 2);
                self.smoothed = Some((smoothed + error).max(1));
            }
        }
        self.variation = self.deviation.max(stack.tick as i64);
    }

    #[inline(always)]
    fn set_rto_from_estimate(&mut self, stack: &Stack) {
        let Some(smoothed) = self.smoothed else { return };
        let rto = ((smoothed >> 3) + self.variation) as Nanos;
        let floor = match stack.rtt_rule {
            RttRule::Linux => 0,
            RttRule::Rfc6298 => stack.min_rto,
        };
        let rto = rto.max(floor);
        self.in_ticks = round_up_to_ticks(rto, self.in_ticks, stack);
        self.rto = self.in_ticks.min(stack.max_rto);
    }

    /// Doubles the timeout, up to the maximum: RFC 6298 (5.5).
    pub fn double_timeout(&mut self, stack: &Stack) {
        self.rto = (self.rto * 2).min(stack.max_rto);
    }
}

/// Rounds a time up to whole ticks; `before` is the previous result. Usually the result differs by
/// at most one tick, which avoids a slow division.
#[inline(always)]
fn round_up_to_ticks(time: Nanos, before: Nanos, stack: &Stack) -> Nanos {
    let tick = stack.tick;
    if time > before {
        return if time - before <= tick { before + tick } else { stack.round_up_to_ticks(time) };
    }
    let less = before - time;
    if less < tick {
        before
    } else if less < 2 * tick {
        before - tick
    } else {
        stack.round_up_to_ticks(time)
    }
}

/// Windowed minimum filter: stores the three smallest recent values, each newer than the previous
/// value (Kathleen Nichols' algorithm, as in Linux's `lib/win_minmax.c`).
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowedMinFilter {
    best: Option<[(Nanos, Nanos); 3]>,
}

impl WindowedMinFilter {
    /// Minimum of the window.
    #[inline(always)]
    #[must_use]
    pub fn min_value(&self) -> Option<Nanos> {
        self.best.map(|best| best[0].1)
    }

    /// Adds a value at `now`.
    #[inline(always)]
    pub fn add_sample(&mut self, now: Nanos, value: Nanos, window: Nanos) {
        let new = (now, value);
        let Some(best) = &mut self.best else {
            self.best = Some([new; 3]);
            return;
        };
        // Common case: larger than all three values, none of which is old.
        if value > best[2].1 && now - best[0].0 <= window / 4 {
            return;
        }
        if value <= best[0].1 || now - best[2].0 > window {
            *best = [new; 3];
            return;
        }
        if value <= best[1].1 {
            (best[1], best[2]) = (new, new);
        } else if value <= best[2].1 {
            best[2] = new;
        }
        replace_old_values(best, new, now, window);
    }
}

/// Replaces old values after a quarter, half and all of the window.
#[inline(always)]
fn replace_old_values(
    best: &mut [(Nanos, Nanos); 3],
    new: (Nanos, Nanos),
    now: Nanos,
    window: Nanos,
) {
    let since = now - best[0].0;
    if since <= window / 4 {
        return;
    }
    if since > window {
        *best = [best[1], best[2], new];
        if now - best[0].0 > window {
            *best = [best[1], best[2], new];
        }
    } else if best[1].0 == best[0].0 && since > window / 4 {
        (best[1], best[2]) = (new, new);
    } else if best[2].0 == best[1].0 && since > window / 2 {
        best[2] = new;
    }
}

#[cfg(test)]
mod tests {
    use super::super::presets::Preset;
    use super::*;
    use tcpcast_link::time::MILLISECOND;

    #[test]
    fn linux_rto_is_srtt_plus_200_ms() {
        let stack = Preset::LinuxCubic.stack();
        let mut rtt = RttEstimator::new(&stack);
        assert_eq!(rtt.rto(), SECOND);
        for round in 0..200 {
            rtt.add_sample(60_760_000, round * 10 + 1, round * 10 + 11, &stack);
        }
        assert_eq!(rtt.rto(), 264 * MILLISECOND, "as measured: 260.76 ms, rounded up to 4 ms");
        rtt.double_timeout(&stack);
        assert_eq!(rtt.rto(), 528 * MILLISECOND);
        (0..20).for_each(|_| rtt.double_timeout(&stack));
        assert_eq!(rtt.rto(), 120 * SECOND);
    }

    #[test]
    fn linux_rto_rises_immediately_and_falls_once_per_window() {
        let stack = Stack { tick: 1, ..Preset::LinuxCubic.stack() };
        let mut rtt = RttEstimator::new(&stack);
        rtt.add_sample(100 * MILLISECOND, 1, 11, &stack);
        assert_eq!(rtt.rto(), 300 * MILLISECOND);
        rtt.add_sample(500 * MILLISECOND, 2, 11, &stack);
        // srtt is 150; 4 times the deviation is 200 + 400 - 50.
        assert_eq!(rtt.rto(), 700 * MILLISECOND);
        rtt.add_sample(150 * MILLISECOND, 3, 12, &stack);
        assert_eq!(rtt.rto(), 700 * MILLISECOND, "the window has not ended");
        rtt.add_sample(150 * MILLISECOND, 12, 22, &stack);
        assert_eq!(rtt.rto(), 700 * MILLISECOND, "maximum of the current window");
        rtt.add_sample(150 * MILLISECOND, 23, 33, &stack);
        assert!(rtt.rto() < 700 * MILLISECOND && rtt.rto() > 500 * MILLISECOND);
    }

    #[test]
    fn rto_is_rounded_up_to_ticks_for_any_samples() {
        let stack = Preset::LinuxCubic.stack();
        let mut rtt = RttEstimator::new(&stack);
        for n in 0..2000_u64 {
            let sample = (n * n * 7919) % (90 * MILLISECOND) + (n / 500) * 30 * MILLISECOND;
            rtt.add_sample(sample, n * 3, n * 3 + 30, &stack);
            let exact = rtt.srtt().unwrap() + rtt.variation as Nanos;
            assert_eq!(rtt.rto(), stack.round_up_to_ticks(exact));
        }
    }

    #[test]
    fn rfc_6298_first_sample_and_minimum() {
        let stack = Stack { min_rto: 0, ..Preset::RfcSack.stack() };
        let mut rtt = RttEstimator::new(&stack);
        rtt.add_sample(10 * SECOND, 1, 2, &stack);
        assert_eq!(rtt.rto(), 30 * SECOND, "(2.2): R + 4 R/2");
        let stack = Preset::RfcSack.stack();
        let mut rtt = RttEstimator::new(&stack);
        rtt.add_sample(10 * MILLISECOND, 1, 2, &stack);
        assert_eq!(rtt.rto(), SECOND, "(2.4)");
    }

    #[test]
    fn min_filter_forgets_old_minimum() {
        let mut min = WindowedMinFilter::default();
        min.add_sample(0, 10, 100);
        for now in 1..=100 {
            min.add_sample(now, 20, 100);
            assert_eq!(min.min_value(), Some(10));
        }
        min.add_sample(101, 20, 100);
        assert_eq!(min.min_value(), Some(20));
        min.add_sample(102, 5, 100);
        assert_eq!(min.min_value(), Some(5));
    }

    #[test]
    fn linux_tcp_rtt_estimator_reduces_weight_if_rtt_falls() {
        let stack = Preset::LinuxCubic.stack();
        let mut rtt = RttEstimator::new(&stack);
        rtt.add_sample(100 * MILLISECOND, 1, 11, &stack);
        assert_eq!(rtt.deviation(), 50 * MILLISECOND);
        // An error of 80 ms exceeds the deviation by 30 ms, of which 1/32 is added.
        rtt.add_sample(20 * MILLISECOND, 2, 11, &stack);
        assert_eq!(rtt.deviation(), 50 * MILLISECOND + 30 * MILLISECOND / 32);
        let mut rtt = RttEstimator::new(&stack);
        rtt.add_sample(100 * MILLISECOND, 1, 11, &stack);
        rtt.add_sample(180 * MILLISECOND, 2, 11, &stack);
        assert_eq!(rtt.deviation(), 50 * MILLISECOND + 30 * MILLISECOND / 4);
    }

    #[test]
    fn linux_tcp_rtt_estimator_decays_excess_mdev_per_window() {
        let stack = Preset::LinuxCubic.stack();
        let mut rtt = RttEstimator::new(&stack);
        for (sample, una, next) in [(100, 1, 11), (500, 2, 11), (150, 12, 22), (150, 13, 22)] {
            rtt.add_sample(sample * MILLISECOND, una, next, &stack);
        }
        let (before, largest) = (rtt.variation, rtt.largest_deviation);
        assert!(largest < before, "{largest} and {before}");
        rtt.add_sample(150 * MILLISECOND, 23, 33, &stack);
        assert_eq!(rtt.variation, before - (before - largest) / 4);
    }

    #[test]
    fn linux_tcp_min_rtt_wlen_is_five_minutes() {
        let mut rtt = RttEstimator::new(&Preset::LinuxCubic.stack());
        rtt.update_min(0, 10 * MILLISECOND);
        for second in 1..=300 {
            rtt.update_min(second * SECOND, 20 * MILLISECOND);
            assert_eq!(rtt.min_rtt(), Some(10 * MILLISECOND), "after {second} s");
        }
        rtt.update_min(301 * SECOND, 20 * MILLISECOND);
        assert_eq!(rtt.min_rtt(), Some(20 * MILLISECOND));
    }
}
