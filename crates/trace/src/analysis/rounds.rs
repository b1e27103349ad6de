//! Rounds of a transfer: one segment at a time is timed until its acknowledgement, as by a sender
//! without timestamps (RFC 6298, section 3). The next data segment starts the next round.
//!
//! The time between two acknowledgements is attributed to its cause immediately if possible. The
//! rest is classified when the connection ends and the path is known
//! ([`transfer_limits`](super::transfer_limits)).

use super::packed_rounds::PackedRounds;
use super::retransmission_cause::{IndicationKind, RetransCause, RetransVerdict};
use super::round_record::{Round, WaitReason};
use super::rtt::Correlation;
use super::slow_start::{SlowStartDetector, SlowStartGrowth, WindowReductions};
use super::tap_side::MIN_REMOTE_RTT;
use crate::segment::Nanos;

/// Longest reaction time of a sender with data and an open window to an acknowledgement.
const MAX_REACTION_TIME: Nanos = 3_000_000;
/// New data being sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewDataSent {
    pub(super) time: Nanos,
    pub(super) end: u64,
    /// True if nothing was in flight.
    pub(super) idle: bool,
    /// False in fast recovery, when a sender does not time segments.
    pub(super) timed: bool,
    pub(super) wait: WaitReason,
    /// Round-trip time between the tap and the sender.
    pub(super) tap_rtt: Nanos,
}

impl NewDataSent {
    /// Whether an acknowledgement at `time` triggered the new data.
    fn is_triggered_by_ack_at(&self, time: Nanos) -> bool {
        self.time.saturating_sub(time)
            <= MAX_REACTION_TIME.saturating_add(self.tap_rtt).saturating_add(self.tap_rtt / 2)
    }
}

/// An acknowledgement of new data, and the state before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataAck {
    pub(super) time: Nanos,
    pub(super) number: u64,
    pub(super) bytes: u64,
    /// True if the segment carries data, possibly a request.
    pub(super) has_data: bool,
    pub(super) flight: u64,
    pub(super) window: u64,
    pub(super) wait: WaitReason,
}

/// Waits since the last new data, whose cause the next new data will show.
#[derive(Clone, Copy, Debug, Default)]
struct PendingWaits {
    short: Nanos,
    open: Nanos,
}

/// All rounds of a direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// The current round or, until new data are sent, the last.
    round: Round,
    /// End of the time that has been attributed.
    mark: Nanos,
    /// Time of the last new data.
    last_new: Nanos,
    /// End of the timed segment.
    target: u64,
    /// True until the timed segment is acknowledged.
    waiting: bool,
    /// True if the acknowledgement will be a sample by Karn's rule.
    timed: bool,
    /// Bytes in flight before the first acknowledgement of the round, including the segments sent
    /// together with the timed segment; 0 until this acknowledgement.
    flight_at_first_ack: u64,
    pending: PendingWaits,
    /// True if the receiver sent data since the last acknowledgement or with it, possibly a
    /// request.
    peer_data: bool,
    idle: Nanos,
    /// True once data were acknowledged.
    acked: bool,
    /// True once an acknowledgement triggered new data after a full segment: the sender had waited
    /// for a window. After all data were acknowledged, the acknowledgement must not be a request.
    ack_clocked: bool,
    samples: u64,
    sample_sum: u128,
    growth: SlowStartDetector,
    /// Acknowledgements of new data in this round.
    acks: u32,
    pub(super) reductions: WindowReductions,
    correlation: Correlation,
    rows: PackedRounds,
}

impl Rounds {
    /// Called when new data are sent.
    #[inline]
    pub(super) fn on_new_data(&mut self, new: &NewDataSent) {
        let follows_ack = self.last_new < self.mark;
        let gap = new.time.saturating_sub(self.last_new);
        self.last_new = new.time;
        if gap <= MAX_REACTION_TIME {
            self.round.sending_us += (gap / 1000) as u32;
        }
        if self.round.rounds == 0 {
            self.mark = new.time;
        } else if new.idle {
            self.attribute_pause(new);
        }
        if self.pending.short > 0 {
            self.attribute_wait_after_short_segment(new);
        } else if follows_ack && self.acked && !(new.idle && self.peer_data) {
            self.ack_clocked |= new.is_triggered_by_ack_at(self.mark);
        }
        self.pending.open = 0;
        if self.waiting && (self.timed || !new.timed) {
            return;
        }
        if self.waiting && self.round.time == new.time {
            // A retransmission sent at the same time is not timed, but these new data are.
            (self.target, self.timed) = (new.end, true);
            return;
        }
        self.begin_next_round(new.time, new.end, new.timed);
    }

    /// Attributes the wait after a segment below the maximum size, when new data end the wait. The
    /// sender waited for the application, unless an acknowledgement without a request triggered the
    /// new data while other data were in flight: then the data had been written before.
    fn attribute_wait_after_short_segment(&mut self, new: &NewDataSent) {
        let short = std::mem::take(&mut self.pending.short);
        // At a tap far from the sender, `new.idle` is not reliable: the acknowledgements of all data
        // may have passed the tap, but not reached the sender.
        let idle = new.idle && new.tap_rtt <= MIN_REMOTE_RTT;
        if idle || self.peer_data || !new.is_triggered_by_ack_at(self.mark) {
            self.round.parts.application += short;
        } else {
            self.round.parts.rest += short;
        }
    }

    /// Attributes a pause without data in flight, when new data end it.
    fn attribute_pause(&mut self, new: &NewDataSent) {
        let pause = new.time.saturating_sub(self.mark);
        if new.is_triggered_by_ack_at(self.mark) || new.wait.is_by_receiver() {
            self.attribute_time(new.time, new.wait);
            return;
        }
        // The acknowledgements since the last new data triggered no data. So the sender had no data
        // even before the pause, and the time in `pending.open` is also by the application.
        let parts = &mut self.round.parts;
        let drained = self.pending.open.min(parts.rest);
        parts.rest += new.tap_rtt;
        parts.rest -= drained;
        parts.application += drained + (pause - new.tap_rtt);
        self.idle += pause - new.tap_rtt;
        self.mark = new.time;
        self.growth.restart_after_idle(pause);
    }

    /// Called when a segment is retransmitted. `before`: why the sender had waited before.
    pub(super) fn on_retransmission(
        &mut self,
        time: Nanos,
        (start, end): (u64, u64),
        packets: u64,
        verdict: &RetransVerdict,
        before: WaitReason,
    ) {
        let flight = self.round.flight_bytes;
        match verdict.cause {
            RetransCause::Timeout { depth } => {
                self.attribute_time(time.saturating_sub(verdict.waited), before);
                self.round.parts.timeout += time.saturating_sub(self.mark);
                self.mark = self.mark.max(time);
                self.reductions.discard_on_timeout();
                if depth == 1 {
                    self.growth.restart_after_timeout(flight, &mut self.round.parts);
                }
            }
            RetransCause::TailLossProbe => self.attribute_time(time, WaitReason::Repair),
            _ => self.attribute_time(time, before),
        }
        if verdict.indication == Some(IndicationKind::Td) {
            self.growth.end_at_loss(&mut self.round.parts);
            self.reductions.on_recovery_begin(flight);
        }
        self.round.parts.rest += self.pending.short;
        self.pending = PendingWaits::default();
        if !self.waiting {
            self.begin_next_round(time, end, false);
        } else if start < self.target {
            self.timed = false;
        }
        self.round.retransmissions += packets as u32;
    }

    /// Called when data, new or retransmitted, are sent. `flight`: bytes then in flight.
    #[inline]
    pub(super) fn record_sent_data(&mut self, bytes: u32, flight: u64) {
        self.round.sent_bytes += u64::from(bytes);
        self.round.flight_bytes = self.round.flight_bytes.max(clamp_to_u32(flight));
    }

    /// Called when new data are acknowledged.
    #[inline]
    pub(super) fn on_new_ack(&mut self, acked: &DataAck) {
        self.attribute_time(acked.time, acked.wait);
        (self.peer_data, self.acked) = (acked.has_data, true);
        self.round.acked_bytes += acked.bytes;
        self.acks += 1;
        self.round.window_bytes = self.round.window_bytes.max(clamp_to_u32(acked.window));
        self.reductions.on_new_ack(acked.flight, acked.bytes, acked.wait);
        if self.flight_at_first_ack == 0 {
            self.flight_at_first_ack = acked.flight;
        }
        if self.waiting && acked.number >= self.target {
            self.end_rtt_sample(acked.time);
        }
    }

    fn end_rtt_sample(&mut self, time: Nanos) {
        self.waiting = false;
        self.round.end = self.round.end.max(time);
        if !self.timed {
            return;
        }
        let sample = time.saturating_sub(self.round.time);
        self.round.rtt_sum = sample;
        self.round.rtt_samples = 1;
        self.samples += 1;
        self.sample_sum += u128::from(sample);
        self.correlation.add_pair(sample as f64, self.flight_at_first_ack as f64);
    }

    /// Called when the receiver echoes an ECN mark, or the sender reduces its window.
    pub(super) fn on_ecn_reaction(&mut self) {
        self.round.marked = true;
    }

    /// Called when the receiver sends data without acknowledging new data.
    pub(super) fn on_peer_data(&mut self) {
        self.peer_data = true;
    }

    /// Called when the receiver opens the window for which the sender waited.
    pub(super) fn on_window_opened(&mut self, time: Nanos, wait: WaitReason) {
        if self.round.rounds > 0 {
            self.attribute_time(time, wait);
        }
    }

    /// Attributes the time since the last event to `wait`.
    #[inline]
    fn attribute_time(&mut self, time: Nanos, wait: WaitReason) {
        let elapsed = time.saturating_sub(self.mark);
        self.mark += elapsed;
        let parts = &mut self.round.parts;
        match wait {
            WaitReason::Repair => parts.recovery += elapsed,
            WaitReason::Window => parts.receiver_window += elapsed,
            WaitReason::Closed => parts.closed += elapsed,
            WaitReason::Short => self.pending.short += elapsed,
            WaitReason::Open => {
                parts.rest += elapsed;
                self.pending.open += elapsed;
            }
        }
    }

    /// Restarts the sequence space at `start`; the timed segment will not be acknowledged.
    pub(super) fn restart_sequence_at(&mut self, start: u64) {
        (self.target, self.timed) = (start, false);
    }

    /// Ends the round and starts the next.
    fn begin_next_round(&mut self, time: Nanos, target: u64, timed: bool) {
        if self.round.rounds > 0 {
            if self.waiting {
                self.round.end = self.round.end.max(time);
            }
            self.store_round();
        }
        self.round = Round::begin(time);
        self.flight_at_first_ack = 0;
        (self.target, self.timed, self.waiting) = (target, timed, true);
    }

    fn store_round(&mut self) {
        self.growth.process_round(&mut self.round, std::mem::take(&mut self.acks));
        self.round.flight_min = self.round.flight_bytes;
        self.rows.push(&self.round);
    }

    /// Ends the last round at `time` and returns the summary.
    pub(super) fn finish_last_round(&mut self, time: Nanos, wait: WaitReason) -> RoundSummary {
        if self.round.rounds > 0 {
            self.attribute_time(time, wait);
            // No data followed: the sender waited for acknowledgements, not for more data.
            self.round.parts.rest += std::mem::take(&mut self.pending.short);
            if self.waiting {
                self.round.end = self.round.end.max(self.mark);
            }
            self.store_round();
        }
        RoundSummary {
            rows: std::mem::take(&mut self.rows).into_rounds(),
            idle: self.idle,
            ack_clocked: self.ack_clocked,
            samples: self.samples,
            mean_s: (self.samples > 0).then(|| self.sample_sum as f64 / self.samples as f64 / 1e9),
            correlation: self.correlation.coefficient(),
            reduction: self.reductions.median_ratio(),
            slow_start: self.growth.take_total_growth(),
        }
    }
}

/// Limits a value to `u32`; no window exceeds 2^30 bytes (RFC 7323).
fn clamp_to_u32(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// All rounds of a direction, and sums over them.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundSummary {
    pub(super) rows: Vec<Round>,
    /// Time with nothing in flight and nothing sent, ns.
    pub(super) idle: Nanos,
    /// True if acknowledgements triggered new data: a window had limited the sender.
    pub(super) ack_clocked: bool,
    pub(super) samples: u64,
    pub(super) mean_s: Option<f64>,
    pub(super) correlation: Option<f64>,
    pub(super) reduction: Option<f64>,
    pub(super) slow_start: SlowStartGrowth,
}
