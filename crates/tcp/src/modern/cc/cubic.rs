//! CUBIC: RFC 9438, with Linux's arithmetic.

use super::super::kernel_version::HyStartRule;
use super::super::recovery_phase::PhaseName;
use super::super::u128_division::divide_u128;
use super::super::window::CongestionWindow;
use super::hystart::HyStart;
use super::{AckSample, CongestionControl, ControlRules, RecoveryPhaseChange, TransmitStart};
use tcpcast_link::time::{Nanos, SECOND};

/// beta_cubic = 0.7 = 717/1024.
const BETA: u32 = 717;
const BETA_UNIT: u32 = 1024;
/// 8 / alpha_cubic, where alpha_cubic = 3 (1 - beta) / (1 + beta): Reno's window estimate grows by
/// one packet after cwnd / alpha_cubic acknowledged packets (RFC 9438, section 4.3).
const RENO_SCALE: u32 = 8 * (BETA_UNIT + BETA) / 3 / (BETA_UNIT - BETA);
/// C = 0.4 = 410 / 2^10, in packets per second cubed.
const CUBE_RTT_SCALE: u64 = 410;
/// K has units of 1/1024 s.
const K_SHIFT: u32 = 10;
/// 1 / C, in (1/1024 s)^3 per packet.
const CUBE_FACTOR: u64 = (1 << (10 + 3 * K_SHIFT)) / CUBE_RTT_SCALE;
/// Time after which the curve is evaluated again for the same window.
const MAX_CURVE_AGE: Nanos = SECOND / 32;

/// Options of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubicOptions {
    /// RFC 9438, section 4.7.
    pub fast_convergence: bool,
    /// RFC 9438, section 4.3.
    pub reno_friendly: bool,
    /// Slow start ends after an acknowledgement train of half an RTT.
    pub hystart_train: bool,
    /// Slow start ends when the RTT of a round has increased by an eighth.
    pub hystart_delay: bool,
    /// Minimum window for HyStart, in packets.
    pub hystart_low_window: u32,
    /// Rule of the release of Linux.
    pub hystart: HyStartRule,
}

impl CubicOptions {
    /// Options of Linux.
    pub const LINUX: Self = Self {
        fast_convergence: true,
        reno_friendly: true,
        hystart_train: true,
        hystart_delay: true,
        hystart_low_window: 16,
        hystart: HyStartRule::AllRounds,
    };
}

/// A period of growth since the last reduction.
#[derive(Clone, Copy, Debug)]
struct CubicEpoch {
    start: Nanos,
    /// Time from the start to the plateau, in units of 1/1024 s.
    k: u64,
    /// Window at the plateau.
    origin: u32,
    /// Estimate of Reno's window.
    w_est: u32,
    /// Acknowledged packets that count towards `w_est`.
    acked: u32,
}

/// Last evaluation of the curve.
#[derive(Clone, Copy, Debug)]
struct CurveEvaluation {
    at: Nanos,
    cwnd: u32,
    /// Acknowledged packets needed per packet of growth.
    per_packet: u32,
}

/// CUBIC with HyStart.
#[derive(Clone, Copy, Debug)]
pub struct CubicControl {
    options: CubicOptions,
    tick: Nanos,
    /// Age at which an evaluation of the curve is out of date while the window is unchanged.
    max_curve_age: Nanos,
    w_max: u32,
    epoch: Option<CubicEpoch>,
    last: Option<CurveEvaluation>,
    min_delay: Option<Nanos>,
    hystart: HyStart,
    /// Whether HyStart has ended slow start.
    exited_slow_start: bool,
}

impl CubicControl {
    /// Creates the state of a new connection.
    #[must_use]
    pub fn new(options: CubicOptions, rules: &ControlRules, now: Nanos, start: u64) -> Self {
        Self {
            options,
            tick: rules.tick,
            // Linux compares whole ticks.
            max_curve_age: (MAX_CURVE_AGE / rules.tick + 1) * rules.tick,
            w_max: 0,
            epoch: None,
            last: None,
            min_delay: None,
            hystart: HyStart::begin_round(now, start),
            exited_slow_start: false,
        }
    }

    /// Rounds a time down to ticks of Linux's clock.
    fn round_down_to_ticks(&self, now: Nanos) -> Nanos {
        now / self.tick * self.tick
    }

    /// Returns the number of acknowledged packets needed to grow the window by one.
    #[inline(always)]
    fn acks_per_window_packet(&mut self, cwnd: u32, acked: u32, now: Nanos) -> u32 {
        if let Some(epoch) = &mut self.epoch {
            epoch.acked = epoch.acked.saturating_add(acked);
        }
        match self.last {
            // While the window is unchanged, Linux evaluates the curve at most once per 1/32 s.
            Some(last) if last.cwnd == cwnd && now - last.at < self.max_curve_age => {
                last.per_packet
            }
            _ => self.evaluate_curve(cwnd, acked, now),
        }
    }

    #[inline(never)]
    fn evaluate_curve(&mut self, cwnd: u32, acked: u32, now: Nanos) -> u32 {
        let now = self.round_down_to_ticks(now);
        let same_tick = self.last.filter(|last| self.epoch.is_some() && last.at == now);
        let curve = match same_tick {
            Some(last) => last.per_packet,
            None => {
                let epoch =
                    self.epoch.get_or_insert_with(|| begin_epoch(now, cwnd, acked, self.w_max));
                let elapsed = now - epoch.start;
                let delay = self.min_delay.map_or(0, |min| min.div_ceil(self.tick) * self.tick);
                let per_packet = acks_per_packet_on_curve(epoch, elapsed + delay, cwnd);
                // While the capacity of the path is unknown, the window grows by at least a
                // twentieth.
                if self.w_max == 0 { per_packet.min(20) } else { per_packet }
            }
        };
        let friendly =
            if self.options.reno_friendly { self.acks_per_packet_as_reno(cwnd) } else { None };
        // The window grows by at most one packet per two acknowledged packets: by half per round
        // trip.
        let per_packet = friendly.map_or(curve, |max| curve.min(max)).max(2);
        let at = same_tick.map_or(now, |last| last.at);
        let evaluated = same_tick.map_or(cwnd, |last| last.cwnd);
        self.last = Some(CurveEvaluation { at, cwnd: evaluated, per_packet });
        per_packet
    }

    /// RFC 9438, section 4.3: the window is at least Reno's estimated window.
    fn acks_per_packet_as_reno(&mut self, cwnd: u32) -> Option<u32> {
        let epoch = self.epoch.as_mut()?;
        let each = (cwnd * RENO_SCALE / 8).max(1);
        // Subtracts `each` while `acked` is above it; the next acknowledgement handles equality.
        if epoch.acked > each {
            let grown = (epoch.acked - 1) / each;
            epoch.acked -= grown * each;
            epoch.w_est += grown;
        }
        (epoch.w_est > cwnd).then(|| cwnd / (epoch.w_est - cwnd))
    }
}

/// RFC 9438, section 4.2: K, equation (2).
fn begin_epoch(now: Nanos, cwnd: u32, acked: u32, w_max: u32) -> CubicEpoch {
    let (k, origin) = if w_max <= cwnd {
        (0, cwnd)
    } else {
        let cube = CUBE_FACTOR * u64::from(w_max - cwnd);
        (libm::cbrt(cube as f64) as u64, w_max)
    };
    CubicEpoch { start: now, k, origin, w_est: cwnd, acked }
}

/// RFC 9438, section 4.2: W_cubic, equation (1), and the resulting growth.
fn acks_per_packet_on_curve(epoch: &CubicEpoch, elapsed: Nanos, cwnd: u32) -> u32 {
    let t = divide_u128(u128::from(elapsed) << K_SHIFT, SECOND) as u64;
    let offset = u128::from(t.abs_diff(epoch.k));
    let cubed = (u128::from(CUBE_RTT_SCALE) * offset * offset * offset) >> (10 + 3 * K_SHIFT);
    let delta = u32::try_from(cubed).unwrap_or(u32::MAX / 2);
    let target = if t < epoch.k {
        epoch.origin.saturating_sub(delta)
    } else {
        epoch.origin.saturating_add(delta)
    };
    if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) }
}

impl CongestionControl for CubicControl {
    /// A round-trip time is needed in slow start, or if it is a new minimum.
    #[inline(always)]
    fn needs_rtt_sample(&self, window: &CongestionWindow, rtt: Option<Nanos>) -> bool {
        let in_hystart = !self.exited_slow_start && window.in_slow_start();
        rtt.is_some_and(|rtt| in_hystart || self.min_delay.is_none_or(|min| rtt < min))
    }

    #[inline(always)]
    fn on_rtt_sample(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        let Some(rtt) = sample.rtt else { return };
        // Shortly after a reduction, round-trip times include the queue that caused it.
        if self
            .epoch
            .is_some_and(|epoch| self.round_down_to_ticks(sample.now) < epoch.start + SECOND)
        {
            return;
        }
        let rtt = rtt.max(1);
        let min = self.min_delay.map_or(rtt, |min| min.min(rtt));
        self.min_delay = Some(min);
        if !self.exited_slow_start
            && window.in_slow_start()
            && (self.options.hystart_train || self.options.hystart_delay)
            && self.hystart.ends_slow_start(&self.options, window, min, sample)
        {
            self.exited_slow_start = true;
            window.ssthresh = window.cwnd;
        }
    }

    #[inline(always)]
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        if !sample.cwnd_limited {
            return;
        }
        let mut acked = sample.delivered;
        if window.in_slow_start() {
            if self.options.hystart <= HyStartRule::LimitedRounds {
                self.hystart.begin_round_if_acked(sample);
            }
            acked = window.grow_in_slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        let per_packet = self.acks_per_window_packet(window.cwnd, acked, sample.now);
        window.grow_by_credit(per_packet, acked);
    }

    /// RFC 9438, sections 4.6 and 4.7.
    fn ssthresh(&mut self, window: &CongestionWindow) -> u32 {
        self.epoch = None;
        let cwnd = u64::from(window.cwnd);
        self.w_max = if window.cwnd < self.w_max && self.options.fast_convergence {
            (cwnd * u64::from(BETA_UNIT + BETA) / u64::from(2 * BETA_UNIT)) as u32
        } else {
            window.cwnd
        };
        ((cwnd * u64::from(BETA) / u64::from(BETA_UNIT)) as u32).max(2)
    }

    /// A timeout resets all state (RFC 9438, section 4.8).
    fn on_recovery_phase_change(
        &mut self,
        _window: &mut CongestionWindow,
        change: &RecoveryPhaseChange,
    ) {
        if change.phase == PhaseName::Loss {
            self.w_max = 0;
            self.epoch = None;
            self.last = None;
            self.min_delay = None;
            self.exited_slow_start = false;
            self.hystart = HyStart::begin_round(change.now, change.next);
        }
    }

    /// RFC 9438, section 4.2: idle times of the application do not count.
    fn on_transmit_start(
        &mut self,
        _window: &mut CongestionWindow,
        now: Nanos,
        start: TransmitStart,
    ) {
        let now = self.round_down_to_ticks(now);
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + start.idle).min(now);
        }
    }
}

#[cfg(test)]
#[path = "cubic_tests.rs"]
mod tests;
