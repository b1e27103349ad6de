//! TFRC: RFC 5348, as the sender-based variant of section 7.
//!
//! The sender computes the loss event rate from acknowledgements and paces its packets at the rate
//! of a Reno flow with this loss event rate. Differences from the RFC:
//!
//! - Lost packets are retransmitted. Each transmission counts as a packet of the loss history.
//! - Acknowledgements replace feedback packets: once per round trip, and at each loss event.
//! - Loss events are separated by the times of detection instead of the nominal arrival times.
//! - The retransmission timer of TCP triggers the check of the nofeedback timer.
//! - The window limits the packets in flight to those of one nofeedback interval.
//! - The options of sections 4.5 (oscillations) and 5.5 (history discounting) are not used.

use super::super::recovery_phase::PhaseName;
use super::super::window::CongestionWindow;
use super::{AckSample, CongestionControl, ControlRules, RecoveryPhaseChange, TransmitStart};
use tcpcast_link::time::{Nanos, SECOND};

/// Weights of the loss intervals, most recent first: section 5.4.
const LOSS_INTERVAL_WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Weight of the previous round-trip time: section 4.3, step 2.
const OLD_RTT_WEIGHT: f64 = 0.9;

/// Maximum time between two packets in seconds: section 4.3.
const MAX_BACKOFF_S: f64 = 64.0;

/// Steps of the bisection for the first loss interval; halves a factor of 2^64 to 2^-16 or less.
const BISECTION_STEPS: u32 = 80;

/// Minimum window, which allows the pacer to send a chunk while another one is in flight.
const MIN_WINDOW: f64 = 4.0;

/// Throughput equation with b = 1: section 3.1. Times in seconds; the rate is in `mss` per second.
fn throughput(mss: f64, rtt: f64, rto: f64, p: f64) -> f64 {
    let timeouts = 3.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
    mss / (rtt * (2.0 * p / 3.0).sqrt() + rto * timeouts)
}

fn seconds(span: Nanos) -> f64 {
    span as f64 / SECOND as f64
}

/// Intervals between the first packets of loss events, in transmitted packets: section 5.
#[derive(Clone, Debug, Default)]
struct LossHistory {
    /// Closed intervals, most recent first.
    closed: Vec<f64>,
    /// Packets delivered or lost before the open interval; wraps.
    open_from: u32,
    event_at: Nanos,
}

impl LossHistory {
    /// Begins a loss event with a packet that `resolved` packets precede. The first interval is
    /// given.
    fn begin_event(&mut self, now: Nanos, resolved: u32, first: impl FnOnce() -> f64) {
        let interval = if self.closed.is_empty() {
            first()
        } else {
            self.open_loss_interval(resolved).max(1.0)
        };
        self.closed.insert(0, interval);
        self.closed.truncate(LOSS_INTERVAL_WEIGHTS.len());
        (self.open_from, self.event_at) = (resolved, now);
    }

    fn open_loss_interval(&self, resolved: u32) -> f64 {
        f64::from(resolved.wrapping_sub(self.open_from))
    }

    /// Loss event rate p; [`None`] before the first loss event. Section 5.4.
    fn loss_event_rate(&self, resolved: u32) -> Option<f64> {
        let total = |intervals: &mut dyn Iterator<Item = f64>| -> f64 {
            intervals.zip(LOSS_INTERVAL_WEIGHTS).map(|(interval, weight)| interval * weight).sum()
        };
        let closed = || self.closed.iter().copied();
        let weight: f64 = LOSS_INTERVAL_WEIGHTS[..self.closed.len()].iter().sum();
        let with_open = std::iter::once(self.open_loss_interval(resolved)).chain(closed());
        let longest = total(&mut closed()).max(total(&mut with_open.take(self.closed.len())));
        (longest > 0.0).then(|| weight / longest)
    }
}

/// TFRC; rates in bytes per second.
#[derive(Clone, Debug)]
pub struct Tfrc {
    mss: f64,
    initial_window: f64,
    min_rto_s: f64,
    /// Allowed transmit rate X.
    rate: f64,
    /// Smoothed round-trip time R in seconds.
    rtt_s: Option<f64>,
    /// X_recv_set: receive rates with their times.
    received: Vec<(Nanos, f64)>,
    feedback_at: Nanos,
    doubled_at: Nanos,
    /// Start of the nofeedback timer.
    silent_since: Nanos,
    lost: u32,
    /// Loss event rate at the last acknowledgement.
    p: Option<f64>,
    losses: LossHistory,
}

impl Tfrc {
    /// Creates the state of a new connection. The rate is one packet per second until a round-trip
    /// time is known: section 4.2.
    #[must_use]
    pub fn new(rules: &ControlRules, now: Nanos) -> Self {
        let mss = f64::from(rules.mss);
        Self {
            mss,
            initial_window: f64::from(rules.initial_window) * mss,
            min_rto_s: seconds(rules.min_rto),
            rate: mss,
            rtt_s: None,
            received: vec![(now, f64::INFINITY)],
            feedback_at: now,
            doubled_at: now,
            silent_since: now,
            lost: 0,
            p: None,
            losses: LossHistory::default(),
        }
    }

    fn equation_rate(&self, rtt_s: f64, p: f64) -> f64 {
        throughput(self.mss, rtt_s, self.min_rto_s.max(4.0 * rtt_s), p)
    }

    /// Largest receive rate of the last two round trips.
    fn max_receive_rate(&self) -> f64 {
        self.received.iter().map(|&(_, rate)| rate).fold(0.0, f64::max)
    }

    /// Starts with the initial window per round-trip time: section 4.2.
    fn start(&mut self, now: Nanos, rtt: Nanos) {
        let rtt_s = seconds(rtt.max(1));
        self.rtt_s = Some(rtt_s);
        self.rate = self.initial_window / rtt_s;
        self.received = vec![(now, f64::INFINITY)];
        (self.feedback_at, self.doubled_at, self.silent_since) = (now, now, now);
    }

    /// Records losses; returns whether a loss event begins: section 5.2.
    fn record_losses(&mut self, rtt_s: f64, sample: &AckSample) -> bool {
        let resolved = sample.total_delivered.wrapping_add(sample.total_lost);
        let is_new = sample.total_lost != self.lost
            && (self.losses.closed.is_empty()
                || seconds(sample.now - self.losses.event_at) >= rtt_s);
        self.lost = sample.total_lost;
        if is_new {
            let mut losses = std::mem::take(&mut self.losses);
            losses.begin_event(sample.now, resolved, || self.first_loss_interval(rtt_s, sample));
            self.losses = losses;
        }
        self.p = self.losses.loss_event_rate(resolved);
        is_new
    }

    /// Interval for which the equation gives the receive rate at the first loss: section 6.3.1.
    fn first_loss_interval(&self, rtt_s: f64, sample: &AckSample) -> f64 {
        let target = receive_rate(self.mss, sample).unwrap_or(self.rate / 2.0);
        let (mut low, mut high) = (1e-9_f64, 1.0);
        for _ in 0..BISECTION_STEPS {
            let p = (low * high).sqrt();
            if self.equation_rate(rtt_s, p) > target { low = p } else { high = p }
        }
        1.0 / high
    }

    /// Limit of the rate by the receive rate: section 4.3, step 4.
    fn receive_rate_limit(&mut self, rtt_s: f64, is_new: bool, sample: &AckSample) -> f64 {
        if let Some(received) = receive_rate(self.mss, sample) {
            if sample.rate.app_limited {
                let factors = if is_new { (0.5, 0.85) } else { (1.0, 1.0) };
                self.received.retain(|&(_, rate)| rate.is_finite());
                let max = (self.max_receive_rate() * factors.0).max(received * factors.1);
                self.received = vec![(sample.now, max)];
                return if is_new { max } else { 2.0 * max };
            }
            self.received.retain(|&(at, _)| seconds(sample.now - at) <= 2.0 * rtt_s);
            self.received.push((sample.now, received));
        }
        2.0 * self.max_receive_rate()
    }

    /// Updates the rate at a feedback: section 4.3.
    fn on_feedback(&mut self, rtt_s: f64, is_new: bool, sample: &AckSample) {
        let limit = self.receive_rate_limit(rtt_s, is_new, sample);
        if let Some(p) = self.p {
            self.rate = self.equation_rate(rtt_s, p).min(limit).max(self.min_rate());
        } else if seconds(sample.now - self.doubled_at) >= rtt_s {
            self.rate = (2.0 * self.rate).min(limit).max(self.initial_window / rtt_s);
            self.doubled_at = sample.now;
        }
    }

    fn min_rate(&self) -> f64 {
        self.mss / MAX_BACKOFF_S
    }

    /// Nofeedback interval in seconds: section 4.3, step 5.
    fn nofeedback_s(&self, rtt_s: f64) -> f64 {
        (4.0 * rtt_s).max(2.0 * self.mss / self.rate)
    }

    /// Reduces the rate for each nofeedback interval that has passed: section 4.4. A sender that
    /// was idle keeps at least the initial rate.
    fn expire_nofeedback_timer(&mut self, now: Nanos, is_idle: bool) {
        let Some(rtt_s) = self.rtt_s else { return };
        let recover_rate = self.initial_window / rtt_s;
        loop {
            let interval = (self.nofeedback_s(rtt_s) * SECOND as f64) as Nanos;
            if now.saturating_sub(self.silent_since) < interval || self.rate <= self.min_rate() {
                return;
            }
            self.silent_since += interval;
            let received = self.max_receive_rate();
            let (used, least) = match self.p {
                Some(_) => (received, recover_rate),
                None => (self.rate, 2.0 * recover_rate),
            };
            if is_idle && used < least {
                return;
            }
            let limit = match self.p.map(|p| self.equation_rate(rtt_s, p)) {
                None => self.rate / 2.0,
                Some(rate) if rate > 2.0 * received => received,
                Some(rate) => rate / 2.0,
            };
            self.rate = limit.max(self.min_rate());
            if self.p.is_some() {
                self.received = vec![(now, self.rate / 2.0)];
            }
        }
    }
}

/// Receive rate over the last round trip, if known.
fn receive_rate(mss: f64, sample: &AckSample) -> Option<f64> {
    let rate = sample.rate.rate?;
    Some(f64::from(rate.delivered) * mss / seconds(rate.interval))
}

impl CongestionControl for Tfrc {
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        if self.rtt_s.is_none() {
            let Some(rtt) = sample.rtt else { return };
            self.start(sample.now, rtt);
        }
        let rtt_s = self.rtt_s.unwrap_or_default();
        self.silent_since = sample.now;
        let is_new = self.record_losses(rtt_s, sample);
        if is_new || seconds(sample.now - self.feedback_at) >= rtt_s {
            self.feedback_at = sample.now;
            let rtt_s = sample.rtt.map_or(rtt_s, |rtt| {
                OLD_RTT_WEIGHT * rtt_s + (1.0 - OLD_RTT_WEIGHT) * seconds(rtt)
            });
            self.rtt_s = Some(rtt_s);
            self.on_feedback(rtt_s, is_new, sample);
        }
        let packets = self.nofeedback_s(rtt_s) * self.rate / self.mss;
        // A float above the range of `u32` becomes its maximum.
        window.cwnd = packets.ceil().max(MIN_WINDOW) as u32;
    }

    fn ssthresh(&mut self, window: &CongestionWindow) -> u32 {
        window.ssthresh
    }

    fn on_recovery_phase_change(
        &mut self,
        _window: &mut CongestionWindow,
        change: &RecoveryPhaseChange,
    ) {
        if change.phase == PhaseName::Loss {
            self.expire_nofeedback_timer(change.now, false);
        }
    }

    fn on_established(&mut self, _window: &CongestionWindow, now: Nanos, rtt: Nanos) {
        self.start(now, rtt);
    }

    fn on_transmit_start(
        &mut self,
        _window: &mut CongestionWindow,
        now: Nanos,
        start: TransmitStart,
    ) {
        if start.idle > 0 && start.app_limited {
            self.expire_nofeedback_timer(now, true);
            self.silent_since = now;
        }
    }

    fn undo_cwnd(&mut self, window: &CongestionWindow) -> u32 {
        window.cwnd
    }

    #[inline(always)]
    fn requested_pacing_rate(&self) -> Option<u64> {
        Some((self.rate as u64).max(1))
    }
}

#[cfg(test)]
#[path = "tfrc_tests.rs"]
mod tests;
