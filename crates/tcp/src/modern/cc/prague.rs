//! TCP Prague, the scalable congestion control of L4S (RFC 9331), as in the L4S team's Linux kernels
//! and draft-briscoe-iccrg-prague-congestion-control.
//!
//! A mark reduces the window by `alpha / 2`, where `alpha` is the moving average of the share of
//! marked packets; unmarked packets grow it as in Reno. Packets are paced. After some round trips,
//! flows with an RTT below 25 ms behave as if it were 25 ms: they grow by `(RTT / 25 ms)^2` of Reno's
//! increase, and react once per 25 ms. The versions:
//!
//! - August 2020: without this rule for short round trips.
//! - June 2021 (version 0.6): the rule holds after 500 round trips. The window in use follows a carry,
//!   one packet per acknowledgement.
//! - 2024 (version 0.7, and the draft): the rule holds after 4 round trips. The window in use is a
//!   fractional window, rounded up, of at least two packets. A window of at most four packets is
//!   replaced by a rate, down to 100 kbit/s. The first mark halves the window.

use super::super::recovery_phase::PhaseName;
use super::super::window::CongestionWindow;
use super::path_model::BurstRules;
use super::{AckSample, CongestionControl, ControlRules, RecoveryPhaseChange};
use tcpcast_link::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

/// Weight of a new sample of the share of marked packets.
const ALPHA_GAIN: f64 = 1.0 / 16.0;
/// Smallest window in packets.
const MIN_WINDOW: u32 = 2;
/// Bytes of the IP and TCP headers, which pacing counts.
const HEADER_BYTES: u32 = 52;
/// Smallest rate in bytes per second: `MINIMUM_RATE`.
const MIN_RATE: f64 = 12_500.0;
/// Window in packets up to which a rate replaces the window: `prague_cwnd_transit`.
const MAX_RATE_WINDOW: u32 = 4;
/// Share by which the rate is larger in the first half of a round trip, and smaller in the second.
const RATE_OFFSET: f64 = 4.0 / 128.0;
/// Weight of a new sample of the round-trip time that converts rate and window.
const LONG_SRTT_GAIN: f64 = 1.0 / 128.0;

/// Rules that differ between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PragueOptions {
    /// RTT that flows with a shorter one emulate: `prague_rtt_target`; 0 without
    /// `prague_rtt_scaling`.
    pub target_rtt: Nanos,
    /// Number of round trips after slow start from which flows emulate this RTT:
    /// `prague_rtt_transition`.
    pub transition_rounds: u32,
    /// Whether the window may be fractional, and a rate replaces a small window.
    pub fractional: bool,
    /// Whether flows behave like Reno if a queue with classic ECN is detected:
    /// `prague_ecn_fallback`.
    pub fallback: bool,
}

impl PragueOptions {
    /// August 2020.
    pub const V2020: Self = Self { target_rtt: 0, ..Self::V2021 };
    /// June 2021.
    pub const V2021: Self = Self {
        target_rtt: 25 * MILLISECOND,
        transition_rounds: 500,
        fractional: false,
        fallback: false,
    };
    /// 2024, and the draft.
    pub const V2024: Self = Self { transition_rounds: 4, fractional: true, ..Self::V2021 };

    /// Bursts of 250 µs at the pacing rate: `prague_burst_shift`.
    #[must_use]
    pub fn bursts(self) -> BurstRules {
        BurstRules { shift: 12, min_packets: if self.fractional { 1 } else { 2 } }
    }
}

/// Prague: see the module.
#[derive(Clone, Copy, Debug)]
pub struct PragueControl {
    mss: u32,
    options: PragueOptions,
    /// Moving average of the share of marked packets.
    alpha: f64,
    has_seen_mark: bool,
    /// Totals of delivered and marked packets at the last update of `alpha`, and marked packets so
    /// far.
    delivered: u32,
    delivered_ce: u32,
    seen_ce: u32,
    alpha_at: Nanos,
    /// The round trip ends when this byte is acknowledged.
    round_end: u64,
    /// Round trips outside slow start; with the emulated RTT, updates of `alpha`.
    rounds: u32,
    /// Time of the last reduction for a mark.
    reduced_at: Option<Nanos>,
    /// Until all data sent before a loss is acknowledged, the window does not grow.
    in_loss: bool,
    srtt: Nanos,
    rule: WindowRule,
    /// Window at a loss, and the state of the rule.
    before_loss: (u32, WindowRule),
    /// Window at a reduction that begins.
    reduced_from: Option<u32>,
    /// Pacing rate in bytes per second; as in Linux, it includes headers also if the pacer does not
    /// count them.
    rate: u64,
    detection: ClassicEcnDetection,
}

/// How the window in use follows increases and reductions.
#[derive(Clone, Copy, Debug)]
enum WindowRule {
    /// If positive, the fraction of a packet by which the computed window exceeds the window in use;
    /// if negative, the packets by which the window in use must still be reduced.
    Carry(f64),
    Fractional(FractionalWindow),
}

#[derive(Clone, Copy, Debug)]
struct FractionalWindow {
    packets: f64,
    /// Rate in bytes per second, with headers.
    rate: f64,
    /// Whether the rate determines the window.
    by_rate: bool,
    /// Smoothed round-trip time with a low gain, in nanoseconds.
    long_srtt: f64,
    /// Bytes of a full packet.
    mtu: f64,
}

impl FractionalWindow {
    fn packets_of_rate(&self, srtt: Nanos) -> f64 {
        let srtt = if self.long_srtt > 0.0 { self.long_srtt } else { srtt as f64 };
        self.rate * srtt / (self.mtu * SECOND as f64)
    }

    fn rate_of(&self, packets: f64, srtt: Nanos) -> f64 {
        (packets * self.mtu * SECOND as f64 / srtt.max(1) as f64).max(MIN_RATE)
    }

    /// Reduces window and rate by this share.
    fn reduce(&mut self, share: f64, srtt: Nanos) {
        if self.by_rate {
            self.rate = (self.rate * (1.0 - share)).max(MIN_RATE);
            self.packets = self.packets_of_rate(srtt);
        } else {
            self.packets *= 1.0 - share;
            self.rate = self.rate_of(self.packets, srtt);
        }
    }
}

impl PragueControl {
    /// Creates the state of a new connection.
    #[must_use]
    pub fn new(options: PragueOptions, rules: &ControlRules, start: u64) -> Self {
        let rule = if options.fractional {
            WindowRule::Fractional(FractionalWindow {
                packets: f64::from(rules.initial_window),
                rate: MIN_RATE,
                by_rate: false,
                long_srtt: 0.0,
                mtu: f64::from(rules.mss + HEADER_BYTES),
            })
        } else {
            WindowRule::Carry(0.0)
        };
        Self {
            mss: rules.mss,
            options,
            alpha: if options.fractional { 0.0 } else { 1.0 },
            has_seen_mark: false,
            delivered: 0,
            delivered_ce: 0,
            seen_ce: 0,
            alpha_at: 0,
            round_end: start,
            rounds: 0,
            reduced_at: None,
            in_loss: false,
            srtt: 0,
            rule,
            before_loss: (0, rule),
            reduced_from: None,
            rate: 0,
            detection: ClassicEcnDetection::default(),
        }
    }

    /// Whether the flow emulates a longer round-trip time.
    fn emulates_rtt(&self, window: &CongestionWindow) -> bool {
        self.options.target_rtt > 0
            && !window.in_slow_start()
            && self.rounds >= self.options.transition_rounds
    }

    /// Reduces the window by `alpha / 2`, at most once per emulated round trip.
    fn reduce_for_mark(&mut self, window: &CongestionWindow, now: Nanos) {
        if self.emulates_rtt(window)
            && self.reduced_at.is_some_and(|last| now < last + self.options.target_rtt)
        {
            return;
        }
        self.reduced_at = Some(now);
        let alpha = match self.options.fallback {
            true => self.alpha.max(self.detection.smallest_alpha()),
            false => self.alpha,
        };
        match &mut self.rule {
            WindowRule::Carry(carry) => *carry -= f64::from(window.cwnd) * alpha / 2.0,
            WindowRule::Fractional(fraction) => fraction.reduce(alpha / 2.0, self.srtt),
        }
    }

    /// Halves the window for a loss.
    fn reduce_for_loss(&mut self, cwnd: u32) {
        self.before_loss = (cwnd, self.rule);
        self.in_loss = true;
        match &mut self.rule {
            WindowRule::Carry(carry) => *carry -= (f64::from(cwnd) + *carry) / 2.0,
            WindowRule::Fractional(fraction) => fraction.reduce(0.5, self.srtt),
        }
    }

    /// Grows the window for packets acknowledged without a mark. Returns false if slow start
    /// continues.
    fn grow(&mut self, window: &mut CongestionWindow, mut acked: u32) -> bool {
        let starts = window.in_slow_start();
        if starts {
            acked = window.grow_in_slow_start(acked);
        }
        let emulates_rtt = self.emulates_rtt(window);
        let (srtt, target) = (self.srtt as f64, self.options.target_rtt as f64);
        let scales = self.rounds >= self.options.transition_rounds && srtt > 0.0 && srtt < target;
        let gain = if scales { (srtt / target).powi(2) } else { 1.0 };
        match &mut self.rule {
            WindowRule::Carry(carry) => {
                *carry += gain * f64::from(acked) / f64::from(window.cwnd);
            }
            WindowRule::Fractional(fraction) => {
                if starts {
                    fraction.packets = f64::from(window.cwnd);
                }
                if fraction.by_rate && emulates_rtt {
                    let rtt = srtt.max(target) / SECOND as f64;
                    let packets = (fraction.rate * rtt / fraction.mtu).ceil().max(1.0);
                    fraction.rate += f64::from(acked) * fraction.mtu / rtt / packets;
                    fraction.packets = fraction.packets.max(fraction.packets_of_rate(self.srtt));
                } else {
                    fraction.packets += gain * f64::from(acked) / fraction.packets;
                    fraction.rate =
                        fraction.rate.max(fraction.rate_of(fraction.packets, self.srtt));
                }
            }
        }
        !starts || acked > 0
    }

    /// Moves the window in use by at most one packet; a reduction ends slow start.
    fn follow(&mut self, window: &mut CongestionWindow) {
        match &mut self.rule {
            WindowRule::Carry(carry) if *carry <= -1.0 => {
                *carry += 1.0;
                window.cwnd = window.cwnd.saturating_sub(1);
                if window.cwnd < MIN_WINDOW {
                    // Further reductions have no effect.
                    (window.cwnd, *carry) = (MIN_WINDOW, 0.0);
                }
                window.ssthresh = window.cwnd;
            }
            WindowRule::Carry(carry) if *carry >= 1.0 => {
                *carry -= 1.0;
                window.cwnd += 1;
            }
            WindowRule::Carry(_) => (),
            WindowRule::Fractional(fraction) => {
                let packets = (fraction.packets.ceil() as u32).max(MIN_WINDOW);
                if window.cwnd > packets {
                    window.cwnd -= 1;
                    window.ssthresh = window.cwnd;
                } else if window.cwnd < packets {
                    window.cwnd += 1;
                }
            }
        }
    }

    /// Ends a round trip, or an emulated one.
    fn end_round(&mut self, window: &CongestionWindow, sample: &AckSample) {
        let delivered = sample.total_delivered.wrapping_sub(self.delivered);
        let marked = sample.total_delivered_ce.wrapping_sub(self.delivered_ce);
        if self.has_seen_mark {
            self.detection.update(sample.min_rtt);
            let share = (f64::from(marked) / f64::from(delivered.max(1))).min(1.0);
            self.alpha += ALPHA_GAIN * (share - self.alpha);
            self.alpha_at = sample.now;
        }
        if let WindowRule::Fractional(fraction) = &mut self.rule {
            fraction.long_srtt += LONG_SRTT_GAIN * (self.srtt as f64 - fraction.long_srtt);
        }
        (self.delivered, self.delivered_ce) = (sample.total_delivered, sample.total_delivered_ce);
        self.round_end = sample.next;
        if !window.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
    }

    /// Sets the pacing rate: the window, or the packets in flight if they are more, per RTT; twice in
    /// the first half of slow start.
    fn update_rate(&mut self, window: &CongestionWindow, in_flight: u32, now: Nanos) {
        if self.srtt == 0 {
            return;
        }
        let emulates_rtt = self.emulates_rtt(window);
        let mtu = f64::from(self.mss + HEADER_BYTES);
        let of_packets = |packets: u32| f64::from(packets) * mtu * SECOND as f64 / self.srtt as f64;
        let rate = match &mut self.rule {
            WindowRule::Carry(_) => of_packets(window.cwnd.max(in_flight)),
            WindowRule::Fractional(fraction) if fraction.by_rate && emulates_rtt => {
                let half = self.srtt.max(self.options.target_rtt) / 2;
                let is_second = now >= self.alpha_at + half;
                fraction.rate * if is_second { 1.0 - RATE_OFFSET } else { 1.0 + RATE_OFFSET }
            }
            WindowRule::Fractional(fraction) => {
                let packets = in_flight.max(fraction.packets as u32);
                fraction.rate = of_packets(packets).max(MIN_RATE);
                fraction.rate
            }
        };
        let gain = if window.cwnd < window.ssthresh / 2 { 2.0 } else { 1.0 };
        self.rate = (gain * rate) as u64;
    }

    /// Chooses between window and rate.
    fn choose_unit(&mut self, window: &CongestionWindow) {
        let WindowRule::Fractional(fraction) = &mut self.rule else { return };
        fraction.by_rate = self.has_seen_mark && window.cwnd <= MAX_RATE_WINDOW;
        if fraction.by_rate {
            fraction.packets = fraction.packets_of_rate(self.srtt);
        } else if self.srtt > 0 {
            fraction.rate = fraction.rate_of(fraction.packets, self.srtt);
        }
    }
}

impl CongestionControl for PragueControl {
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        self.srtt = sample.srtt.unwrap_or(0);
        let marked = sample.total_delivered_ce.wrapping_sub(self.seen_ce);
        self.seen_ce = sample.total_delivered_ce;
        if let Some(rtt) = sample.rtt {
            self.detection.add_rtt(rtt);
        }
        if marked > 0 && !self.has_seen_mark {
            self.has_seen_mark = true;
            if let WindowRule::Fractional(fraction) = &mut self.rule {
                fraction.packets /= 2.0;
            }
        }
        let acked = sample.delivered.saturating_sub(marked);
        let grows = acked > 0 && !self.in_loss && sample.cwnd_limited;
        if !grows || self.grow(window, acked) {
            self.follow(window);
        }
        let emulated =
            self.emulates_rtt(window) && sample.now < self.alpha_at + self.options.target_rtt;
        if sample.una >= self.round_end && !emulated {
            self.end_round(window, sample);
        }
        self.update_rate(window, sample.in_flight, sample.now);
        self.choose_unit(window);
    }

    fn on_established(&mut self, window: &CongestionWindow, now: Nanos, rtt: Nanos) {
        self.srtt = rtt;
        self.alpha_at = now;
        if let WindowRule::Fractional(fraction) = &mut self.rule {
            fraction.long_srtt = rtt as f64;
        }
        self.update_rate(window, 0, now);
    }

    /// Reductions do not begin with a new threshold: the window in use carries it along.
    fn ssthresh(&mut self, window: &CongestionWindow) -> u32 {
        self.reduced_from = Some(window.cwnd);
        self.detection.scale_gain(window.ssthresh);
        window.ssthresh
    }

    fn on_recovery_phase_change(
        &mut self,
        window: &mut CongestionWindow,
        change: &RecoveryPhaseChange,
    ) {
        let reduced_from = self.reduced_from.take();
        match (change.phase, reduced_from) {
            (PhaseName::Cwr, _) => self.reduce_for_mark(window, change.now),
            (PhaseName::Recovery | PhaseName::Loss, Some(cwnd)) => self.reduce_for_loss(cwnd),
            (PhaseName::Open, _) => self.in_loss = false,
            _ => (),
        }
    }

    fn undo_cwnd(&mut self, window: &CongestionWindow) -> u32 {
        let (cwnd, before) = self.before_loss;
        match (&mut self.rule, before) {
            (WindowRule::Carry(carry), WindowRule::Carry(before)) => *carry += *carry - before,
            (WindowRule::Fractional(fraction), WindowRule::Fractional(before)) => {
                fraction.rate = fraction.rate.max(before.rate);
                fraction.packets = fraction.packets_of_rate(self.srtt);
                self.in_loss = false;
            }
            _ => (),
        }
        window.cwnd.max(cwnd)
    }

    fn requested_pacing_rate(&self) -> Option<u64> {
        Some(self.rate)
    }
}

/// Detection of a queue with classic ECN (`prague_classic_ecn_detection` of version 0.6): behind
/// such a queue, the delay and its variation are larger than behind an L4S queue.
#[derive(Clone, Copy, Debug)]
struct ClassicEcnDetection {
    /// Binary logarithm of the inverse gain of the averages.
    shift: u32,
    /// Smoothed round-trip time and mean deviation in nanoseconds.
    rtt: Option<f64>,
    deviation: f64,
    /// From 0, for an L4S queue, to 17, for a classic one.
    score: f64,
}

impl Default for ClassicEcnDetection {
    fn default() -> Self {
        Self { shift: Self::MAX_SHIFT, rtt: None, deviation: 0.0, score: 0.0 }
    }
}

impl ClassicEcnDetection {
    const MAX_SHIFT: u32 = 18;
    /// Up to this score the flow is scalable, and one above it classic.
    const MAX_L4S_SCORE: f64 = 8.0;
    const MAX_SCORE: f64 = 17.0;
    /// Deviation and delay that leave the score as it is.
    const DEVIATION: f64 = (750 * MICROSECOND) as f64;
    const DELAY: f64 = (2 * MILLISECOND) as f64;
    /// Smallest `alpha` behind a classic queue.
    const CLASSIC_ALPHA: f64 = 0.625;

    /// Averages over about as many round trips as a flow with this window needs to oscillate once.
    fn scale_gain(&mut self, ssthresh: u32) {
        let bits = ssthresh.max(1).ilog2();
        self.shift = (bits + bits / 2 + 1).min(Self::MAX_SHIFT);
    }

    fn add_rtt(&mut self, rtt: Nanos) {
        let rtt = rtt as f64;
        let gain = 1.0 / f64::from(1u32 << self.shift);
        let Some(mean) = &mut self.rtt else {
            self.rtt = Some(rtt);
            return;
        };
        let error = rtt - *mean;
        *mean += gain * error;
        self.deviation += gain / 2.0 * (error.abs() - self.deviation);
    }

    fn update(&mut self, min_rtt: Option<Nanos>) {
        let (Some(rtt), Some(min_rtt)) = (self.rtt, min_rtt) else { return };
        let microsecond = MICROSECOND as f64;
        let delay = rtt - min_rtt as f64;
        let deviation = 0.5 * (self.deviation.max(microsecond) / Self::DEVIATION).log2();
        let delay = 0.5 * (delay.max(Self::DELAY) / Self::DELAY).log2();
        self.score = (self.score + deviation + delay).clamp(0.0, Self::MAX_SCORE);
    }

    fn smallest_alpha(&self) -> f64 {
        Self::CLASSIC_ALPHA * (self.score - Self::MAX_L4S_SCORE).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::WindowGrowthUnit;
    use super::*;

    const RTT: Nanos = 10 * MILLISECOND;

    fn control(options: PragueOptions) -> PragueControl {
        let rules = ControlRules {
            mss: 1448,
            initial_window: 10,
            growth: WindowGrowthUnit::PacketsAcked,
            min_rto: 200 * MILLISECOND,
            tick: 1,
            uses_sack: true,
            uses_ecn: true,
        };
        PragueControl::new(options, &rules, 0)
    }

    /// A flow with one acknowledgement per packet.
    struct Flow {
        control: PragueControl,
        window: CongestionWindow,
        now: Nanos,
        sent: u32,
        marked: u32,
        in_cwr: bool,
    }

    impl Flow {
        fn new(options: PragueOptions, cwnd: u32) -> Self {
            let window = CongestionWindow::new(cwnd);
            let mut control = control(options);
            control.on_established(&window, 0, RTT);
            Self { control, window, now: 0, sent: 0, marked: 0, in_cwr: false }
        }

        /// Returns a flow after slow start and after the transition.
        fn settled(options: PragueOptions, cwnd: u32) -> Self {
            let mut flow = Self::new(options, cwnd);
            flow.window.ssthresh = 2;
            flow.control.rounds = options.transition_rounds;
            if let WindowRule::Fractional(fraction) = &mut flow.control.rule {
                fraction.packets = f64::from(cwnd);
            }
            flow
        }

        fn change_phase(&mut self, phase: PhaseName) {
            if phase > PhaseName::Disorder {
                self.window.ssthresh = self.control.ssthresh(&self.window);
            }
            let totals = super::super::DeliveryTotals { at: 0, delivered: 0, lost: 0 };
            let change = RecoveryPhaseChange { phase, now: self.now, next: 0, totals };
            self.control.on_recovery_phase_change(&mut self.window, &change);
        }

        /// Acknowledges the window of a round trip, whose first packets are marked.
        fn round(&mut self, marked: u32) {
            if std::mem::take(&mut self.in_cwr) {
                self.change_phase(PhaseName::Open);
            }
            let packets = self.window.cwnd;
            let end = u64::from(self.sent + packets);
            for index in 0..packets {
                self.now += RTT / u64::from(packets);
                self.sent += 1;
                if index < marked {
                    self.marked += 1;
                    if !std::mem::replace(&mut self.in_cwr, true) {
                        self.change_phase(PhaseName::Cwr);
                    }
                }
                let sample = AckSample {
                    srtt: Some(RTT),
                    total_delivered: self.sent,
                    total_delivered_ce: self.marked,
                    una: u64::from(self.sent),
                    next: end + u64::from(self.window.cwnd),
                    ..AckSample::for_test(self.now, 1, 0)
                };
                self.control.on_ack(&mut self.window, &sample);
            }
        }
    }

    #[test]
    fn first_mark_halves_the_window_one_packet_per_ack_and_ends_slow_start() {
        let mut flow = Flow::new(PragueOptions::V2021, 10);
        for _ in 0..3 {
            flow.round(0);
        }
        assert_eq!(flow.window.cwnd, 80);
        assert_eq!(flow.control.requested_pacing_rate(), Some(2 * 80 * 1500 * 100));
        flow.round(1);
        // After 79 packets, the window in use has decreased to half, and has grown by about 79/80
        // of a packet.
        assert_eq!((flow.window.cwnd, flow.window.ssthresh), (41, 41));
    }

    #[test]
    fn first_mark_of_2024_halves_the_window_without_alpha() {
        let mut flow = Flow::new(PragueOptions::V2024, 10);
        for _ in 0..3 {
            flow.round(0);
        }
        flow.round(1);
        assert!((flow.control.alpha * 80.0 * 16.0 - 1.0).abs() < 0.02, "{}", flow.control.alpha);
        assert_eq!((flow.window.cwnd, flow.window.ssthresh), (42, 41));
    }

    #[test]
    fn steady_state_has_two_marks_per_round_trip() {
        for options in
            [PragueOptions::V2020, PragueOptions { target_rtt: 0, ..PragueOptions::V2024 }]
        {
            let mut flow = Flow::settled(options, 40);
            for _ in 0..300 {
                flow.round(2);
            }
            // alpha / 2 of the window is one packet, as much as it grows: 2 / alpha packets.
            let sent = f64::from(flow.window.cwnd);
            let marks = sent * flow.control.alpha;
            assert!((marks - 2.0).abs() < 0.3, "{options:?} {sent} {}", flow.control.alpha);
        }
    }

    #[test]
    fn short_round_trips_grow_by_the_square_after_the_transition() {
        for options in [PragueOptions::V2021, PragueOptions::V2024] {
            let mut flow = Flow::settled(options, 100);
            for _ in 0..100 {
                flow.round(0);
            }
            // (10 / 25)^2 packets per round trip.
            assert!(flow.window.cwnd.abs_diff(116) <= 1, "{}", flow.window.cwnd);
        }
    }

    #[test]
    fn emulated_round_trips_update_alpha_once_per_25_ms() {
        let mut flow = Flow::settled(PragueOptions::V2021, 100);
        (flow.control.has_seen_mark, flow.control.alpha) = (true, 0.0);
        for _ in 0..100 {
            flow.round(0);
        }
        // 100 round trips take a second, which contains 40 emulated ones. If the updates waited for
        // whole round trips, there would be 33.
        assert!((39..=40).contains(&(flow.control.rounds - 500)), "{}", flow.control.rounds);
    }

    #[test]
    fn loss_halves_the_window_one_packet_per_ack() {
        for options in [PragueOptions::V2021, PragueOptions::V2024] {
            let mut flow = Flow::settled(options, 40);
            flow.change_phase(PhaseName::Recovery);
            flow.round(0);
            assert_eq!((flow.window.cwnd, flow.window.ssthresh), (20, 20));
            flow.change_phase(PhaseName::Open);
            assert_eq!(flow.control.undo_cwnd(&flow.window), 40);
        }
    }

    #[test]
    fn small_windows_of_2024_are_rates_below_two_packets() {
        let rates = [PragueOptions::V2021, PragueOptions::V2024].map(|options| {
            let mut flow = Flow::settled(options, 4);
            for _ in 0..400 {
                flow.round(4);
            }
            assert_eq!(flow.window.cwnd, 2);
            flow.control.requested_pacing_rate().unwrap()
        });
        // Two packets per round trip, and 100 kbit/s with headers, with the offset of 3 %.
        assert_eq!(rates[0], 2 * 1500 * 100);
        assert!(rates[1].abs_diff(12_500) < 400, "{}", rates[1]);
    }

    #[test]
    fn fallback_recognises_delay_and_its_variation() {
        let score = |base: Nanos, peak: Nanos| {
            let mut detection = ClassicEcnDetection::default();
            detection.scale_gain(64);
            for _ in 0..200 {
                for packet in 0..100 {
                    detection.add_rtt(base + packet * peak / 100);
                }
                detection.update(Some(10 * MILLISECOND));
            }
            (detection.score, detection.smallest_alpha())
        };
        assert_eq!(score(10 * MILLISECOND, MILLISECOND), (0.0, 0.0));
        assert_eq!(score(15 * MILLISECOND, 10 * MILLISECOND), (17.0, 0.625));
    }
}
