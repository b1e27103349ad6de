//! The window of a connection: RFC 9002, section 7, with the congestion controls of TCP.

use super::pacer::{PacedWindow, QuicPacer};
use super::recovery::QuicRtt;
use super::rules::QuicRules;
use super::sent_packets::SentPacket;
use super::slow_start::SlowStart;
use crate::modern::cc::path_model::BbrState;
use crate::modern::cc::{
    AckSample, AnyCongestionControl, DeliveryTotals, LostPacket, RecoveryPhaseChange, TransmitStart,
};
use crate::modern::{
    CongestionWindow, DeliveryCounter, OutstandingPacket, PhaseName, RateSample, Stack, divide_u128,
};
use tcpcast_link::time::{Nanos, SECOND};

/// kMinimumWindow of RFC 9002, section 7.2, in packets.
const MIN_WINDOW: u32 = 2;

/// What an acknowledgement of one space delivers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivered {
    /// Packets, and those of them that may grow the window.
    pub packets: u32,
    pub growing: u32,
    pub prior_in_flight: u32,
    /// Round-trip time of the largest packet, if it is new.
    pub rtt: Option<Nanos>,
    /// First packet number that is not acknowledged, and the next one to be sent.
    pub una: u64,
    pub next: u64,
    /// Packets lost before.
    pub prior_lost: u32,
}

/// Fewest lost packets after which a reduction is not undone: `MIN_ROLLBACK_THRESHOLD` of quiche.
const MIN_LOST_TO_KEEP: u32 = 2;

/// State before a reduction that may be undone.
#[derive(Clone, Debug)]
struct Undo {
    window: CongestionWindow,
    control: AnyCongestionControl,
    recovery_start: Option<Nanos>,
    lost: u32,
}

/// Window, packets in flight, pacer and congestion control.
#[derive(Clone, Debug)]
pub(super) struct QuicCongestion {
    window: CongestionWindow,
    control: AnyCongestionControl,
    slow_start: SlowStart,
    undo: Option<Box<Undo>>,
    delivery: DeliveryCounter,
    pub pacer: QuicPacer,
    bytes_in_flight: u64,
    packets_in_flight: u32,
    /// Start of the current recovery period: packets sent until then cause no other reduction.
    recovery_start: Option<Nanos>,
    phase: PhaseName,
    lost: u32,
    app_limited: bool,
    last_sent: Nanos,
    /// Bytes of a full datagram, and of its data.
    datagram: u32,
    mss: u32,
}

impl QuicCongestion {
    pub fn new(now: Nanos, seed: u64, datagram: u32, stack: &Stack, rules: &QuicRules) -> Self {
        let control = stack.new_control(now, 0, seed);
        let mut delivery = DeliveryCounter::default();
        delivery.set_time_recording(control.sets_window_and_rate());
        Self {
            window: CongestionWindow::new(stack.initial_window),
            control,
            slow_start: SlowStart::new(rules.slow_start_exit),
            undo: None,
            delivery,
            pacer: QuicPacer::new(now),
            bytes_in_flight: 0,
            packets_in_flight: 0,
            recovery_start: None,
            phase: PhaseName::Open,
            lost: 0,
            app_limited: false,
            last_sent: now,
            datagram,
            mss: stack.mss,
        }
    }

    /// Window and threshold.
    pub fn window(&self) -> &CongestionWindow {
        &self.window
    }

    /// State of BBR, and the payload of its packets.
    pub fn bbr_state(&self) -> Option<(BbrState, u32)> {
        self.control.bbr_state().map(|state| (state, self.mss))
    }

    pub fn packets_in_flight(&self) -> u32 {
        self.packets_in_flight
    }

    pub fn is_in_recovery(&self) -> bool {
        self.phase >= PhaseName::Recovery
    }

    /// The first round-trip time is measured.
    pub fn on_first_rtt(&mut self, now: Nanos, rtt: Nanos) {
        self.control.on_established(&self.window, now, rtt);
    }

    /// Whether the window allows another full datagram.
    #[inline]
    pub fn allows_datagram(&self, rules: &QuicRules) -> bool {
        let window = u64::from(self.window.cwnd) * u64::from(self.datagram);
        let filled = self.bytes_in_flight + u64::from(self.datagram);
        if rules.fills_window { filled <= window } else { filled < window }
    }

    /// Whether a datagram must wait for the pacer; if so, the pacer records that one waits.
    #[inline]
    pub fn must_wait_for_pacer(&mut self, now: Nanos, rtt: &QuicRtt, rules: &QuicRules) -> bool {
        let window = u64::from(self.window.cwnd) * u64::from(self.datagram);
        let requested = self.control.pacing_rate();
        if requested.is_none() && rules.pacing_percent == 0 {
            return false;
        }
        let rtt = rtt.smoothed().max(1);
        let of_window = PacedWindow { bytes: window, rtt, datagram: self.datagram };
        self.pacer.must_wait(now, &of_window, &rules.burst, || match requested {
            Some(rate) => rate,
            None => {
                let bytes = u128::from(window) * u128::from(rules.pacing_percent);
                divide_u128(bytes * u128::from(SECOND / 100), rtt) as u64
            }
        })
    }

    /// An ack-eliciting packet is sent.
    #[inline]
    pub fn on_sent(&mut self, now: Nanos, number: u64, packet: &mut OutstandingPacket, bytes: u32) {
        if self.window.in_slow_start() {
            self.slow_start.on_sent(number);
        }
        let nothing_out = self.packets_in_flight == 0;
        if nothing_out {
            let app_limited = self.delivery.is_app_limited();
            let start = TransmitStart { idle: now - self.last_sent, app_limited };
            self.control.on_transmit_start(&mut self.window, now, start);
        }
        packet.sent_at = now;
        self.delivery.on_sent(now, nothing_out, packet);
        self.packets_in_flight += 1;
        self.bytes_in_flight += u64::from(bytes);
        if self.control.has_loss_feedback() {
            packet.record_flight_at_send(self.packets_in_flight, self.lost);
        }
        self.pacer.on_sent(bytes);
        self.last_sent = now;
    }

    /// Whether the application has nothing to send although it may: RFC 9002, section 7.8.
    #[inline]
    pub fn set_app_limited(&mut self, limited: bool) {
        self.app_limited = limited;
        if limited && self.control.sets_window_and_rate() {
            self.delivery.mark_app_limited(self.packets_in_flight);
        }
    }

    /// Starts the processing of an acknowledgement.
    #[inline]
    pub fn begin_ack(&self, next: u64) -> Delivered {
        let (prior_in_flight, prior_lost) = (self.packets_in_flight, self.lost);
        Delivered { prior_in_flight, prior_lost, next, ..Delivered::default() }
    }

    /// A packet in flight is acknowledged.
    #[inline]
    pub fn on_packet_acked(&mut self, number: u64, packet: &SentPacket, delivered: &mut Delivered) {
        self.remove_from_flight(1, packet.bytes);
        self.delivery.count_delivered(1, false);
        self.delivery.on_delivered(&packet.outstanding, number + 1);
        delivered.packets += 1;
        let is_recovered = self.recovery_start.is_none_or(|start| packet.sent_at() > start);
        delivered.growing += u32::from(is_recovered && !self.app_limited);
        delivered.una = delivered.una.max(number + 1);
        if is_recovered && self.is_in_recovery() {
            self.phase = PhaseName::Open;
        }
    }

    /// Lets a congestion control that only sets the window grow it. Called after all packets of an
    /// acknowledgement, and before the losses that it shows.
    #[inline]
    pub fn grow_window(
        &mut self,
        now: Nanos,
        delivered: &Delivered,
        rtt: &QuicRtt,
        rules: &QuicRules,
    ) {
        if self.control.sets_window_and_rate() {
            return;
        }
        let newest = self.delivery.take_newest_delivered().map(|newest| newest.sent_at);
        self.delivery.finish_ack_without_rate_sample(now, delivered.packets, newest);
        let sample = self.sample(now, delivered, RateSample::default(), rtt);
        if self.control.needs_rtt_sample(&self.window, delivered.rtt) {
            self.control.on_rtt_sample(&mut self.window, &sample);
        }
        if delivered.growing == 0 || self.is_in_recovery() || self.undo_reduction(rules) {
            return;
        }
        let mut grown = AckSample { delivered: delivered.growing, ..sample };
        let mut ends = false;
        if self.window.in_slow_start() {
            let (packets, una) = (delivered.growing, delivered.una);
            let growth = self.slow_start.on_ack(now, rtt.latest, packets, una);
            (grown.delivered, ends) = (growth.packets, growth.ends);
        }
        if grown.delivered > 0 {
            self.control.grow_window(&mut self.window, &grown);
        }
        if ends {
            self.window.ssthresh = self.window.cwnd;
        }
    }

    /// Undoes the last reduction if few packets were lost; returns whether it did.
    #[inline]
    fn undo_reduction(&mut self, rules: &QuicRules) -> bool {
        let Some(undo) = &self.undo else { return false };
        let least = (self.window.cwnd * rules.undo_percent / 100).max(MIN_LOST_TO_KEEP);
        let undoes = self.lost.wrapping_sub(undo.lost) < least
            && !undo.window.in_slow_start()
            && self.window.cwnd < undo.window.cwnd;
        if let Some(undo) = self.undo.take_if(|_| undoes) {
            self.window = undo.window;
            self.control = undo.control;
            self.recovery_start = undo.recovery_start;
        }
        undoes
    }

    /// Lets a congestion control that sets the rate set rate and window. Called after the losses of
    /// an acknowledgement.
    #[inline]
    pub fn set_window_and_rate(&mut self, now: Nanos, delivered: &Delivered, rtt: &QuicRtt) {
        if !self.control.sets_window_and_rate() {
            return;
        }
        let newest = self.delivery.take_newest_delivered();
        let rate = self.delivery.finish_ack_with_rate_sample(
            now,
            delivered.packets,
            newest.as_ref(),
            rtt.min(),
        );
        let sample = self.sample(now, delivered, rate, rtt);
        self.control.set_window(&mut self.window, &sample);
        if self.control.is_probing_rtt() {
            self.delivery.mark_app_limited(self.packets_in_flight);
        }
    }

    fn sample(
        &self,
        now: Nanos,
        delivered: &Delivered,
        rate: RateSample,
        rtt: &QuicRtt,
    ) -> AckSample {
        AckSample {
            now,
            phase: self.phase,
            delivered: delivered.packets,
            lost: self.lost.wrapping_sub(delivered.prior_lost),
            total_lost: self.lost,
            pace_at: self.pacer.next_send_time().min(now),
            acked: delivered.packets,
            prior_in_flight: delivered.prior_in_flight,
            in_flight: self.packets_in_flight,
            rtt: delivered.rtt,
            maybe_delayed: false,
            min_rtt: rtt.min(),
            srtt: rtt.sampled(),
            rate,
            total_delivered: self.delivery.delivered,
            total_delivered_ce: self.delivery.delivered_ce,
            una: delivered.una,
            next: delivered.next,
            cwnd_limited: !self.app_limited,
            fills_window: !self.app_limited,
            mss: self.mss,
            out: self.packets_in_flight,
            paced: true,
        }
    }

    /// Packets are declared lost; returns the window before a reduction if one follows.
    pub fn on_lost(
        &mut self,
        now: Nanos,
        lost: &[(u64, SentPacket)],
        is_persistent: bool,
        next: u64,
        rules: &QuicRules,
    ) -> Option<u32> {
        let lost_before = self.lost;
        for (number, packet) in lost {
            self.remove_from_flight(1, packet.bytes);
            self.lost = self.lost.wrapping_add(1);
            if self.control.has_loss_feedback() {
                self.control.on_lost_packet(
                    &mut self.window,
                    &LostPacket {
                        now,
                        number: *number as u32,
                        in_flight: packet.outstanding.in_flight(),
                        lost_since: self.lost.wrapping_sub(packet.outstanding.lost),
                        app_limited: self.app_limited,
                        total_delivered: self.delivery.delivered,
                    },
                );
            }
        }
        let (_, last) = lost.last()?;
        let before = self.window.cwnd;
        let undo = (rules.undo_percent > 0).then(|| {
            Box::new(Undo {
                window: self.window,
                control: self.control.clone(),
                recovery_start: self.recovery_start,
                lost: lost_before,
            })
        });
        let is_new = self.on_congestion(now, last.sent_at(), next);
        if is_new {
            self.undo = undo;
        }
        if is_persistent {
            self.recovery_start = None;
            if !self.control.sets_window_and_rate() {
                self.window.cwnd = MIN_WINDOW;
            }
            self.change_phase(PhaseName::Loss, now, next);
        }
        is_new.then_some(before)
    }

    /// A packet sent at `sent_at` was lost or marked: reduces the window at most once per recovery
    /// period (RFC 9002, section 7.3.2). Returns whether it is reduced.
    pub fn on_congestion(&mut self, now: Nanos, sent_at: Nanos, next: u64) -> bool {
        if self.recovery_start.is_some_and(|start| sent_at <= start) {
            return false;
        }
        self.recovery_start = Some(now);
        self.window.credit = 0;
        self.window.save_before_reduction();
        self.window.ssthresh = self.control.ssthresh(&self.window);
        if !self.control.sets_window_and_rate() {
            self.window.cwnd = self.window.ssthresh.max(MIN_WINDOW);
        }
        self.change_phase(PhaseName::Recovery, now, next);
        true
    }

    fn change_phase(&mut self, phase: PhaseName, now: Nanos, next: u64) {
        self.phase = phase;
        let totals = DeliveryTotals {
            at: self.delivery.delivered_at(),
            delivered: self.delivery.delivered,
            lost: self.lost,
        };
        let change = RecoveryPhaseChange { phase, now, next, totals };
        self.control.on_recovery_phase_change(&mut self.window, &change);
    }

    /// Packets leave the flight.
    #[inline]
    pub fn remove_from_flight(&mut self, packets: u32, bytes: u32) {
        self.packets_in_flight -= packets;
        self.bytes_in_flight -= u64::from(bytes);
    }
}
