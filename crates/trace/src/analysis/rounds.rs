//! Rounds: one segment is timed at a time, from its sending to the acknowledgement that covers it, as a sender
//! without timestamps times (RFC 6298, section 3); the next data segment begins the next round.
//!
//! Each stretch between two acknowledgements is put down to what kept the sender from sending more, as far as
//! that can be said at once. The rest of a round is judged in the end, when the path is known ([`limits`](super::limits)).

use super::growth::{Growth, Reductions};
use super::limits::Limit;
use super::recovery::{Cause, Kind, Verdict};
use super::report::SlowStart;
use super::packed_rounds::PackedRounds;
use super::rtt::Correlation;
use crate::segment::Nanos;

/// A sender with data and an open window answers an acknowledgement within this time.
const PROMPT: Nanos = 3_000_000;
/// The tap is away from the sender from this round trip on.
pub(super) const AWAY: Nanos = 1_000_000;

/// What kept the sender from sending more while it waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// In loss recovery.
    Repair,
    /// The receiver's window has no room for another full segment.
    Window,
    /// The receiver announces less than a full segment: it does not read.
    Closed,
    /// The last segment was not full: there was nothing more to send.
    Short,
    /// Nothing that single packets show.
    Open,
}

impl Wait {
    /// The receiver's window is the reason.
    #[inline(always)]
    pub(super) fn by_receiver(self) -> bool {
        matches!(self, Self::Window | Self::Closed)
    }
}

/// Time by what it was spent on, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeParts {
    pub(super) application: Nanos,
    pub(super) receiver_window: Nanos,
    /// The receiver's window was closed: it did not read.
    pub(super) closed: Nanos,
    pub(super) slow_start: Nanos,
    pub(super) recovery: Nanos,
    pub(super) timeout: Nanos,
    /// Judged in the end.
    pub(super) rest: Nanos,
}

impl TimeParts {
    pub(super) fn all(&self) -> Nanos {
        let known = self.application + self.receiver_window + self.closed + self.slow_start;
        known + self.recovery + self.timeout + self.rest
    }

    fn add(&mut self, other: &Self) {
        self.application += other.application;
        self.receiver_window += other.receiver_window;
        self.closed += other.closed;
        self.slow_start += other.slow_start;
        self.recovery += other.recovery;
        self.timeout += other.timeout;
        self.rest += other.rest;
    }
}

/// A round or, of long transfers, several that follow each other as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// When its timed segment was sent.
    pub time: Nanos,
    /// When that was acknowledged.
    pub(super) end: Nanos,
    /// Payload sent, retransmissions included.
    pub sent_bytes: u64,
    /// Newly acknowledged.
    pub acked_bytes: u64,
    /// From its beginning to that of the next.
    pub(super) parts: TimeParts,
    pub(super) rtt_sum: Nanos,
    pub(super) rtt_samples: u32,
    pub(super) rounds: u32,
    /// Retransmitted segments.
    pub retransmissions: u32,
    /// The most bytes in flight.
    pub flight_bytes: u32,
    /// Of several rounds, the same in that with the fewest.
    pub(super) flight_min: u32,
    /// The receiver's largest window, bytes.
    pub window_bytes: u32,
    /// Time between new data within [`PROMPT`] of each other, µs: the sender was sending, and did not wait.
    pub(super) sending_us: u32,
    /// What most of its time went into.
    pub limited_by: Limit,
    /// A queue stood while acknowledgements came at the path's rate.
    pub(super) full: bool,
    /// The flight stayed the same for long.
    pub(super) flat: bool,
}

impl Round {
    fn begin(time: Nanos) -> Self {
        Self { time, end: time, rounds: 1, ..Self::default() }
    }

    pub(super) fn add(&mut self, next: &Self) {
        self.end = next.end;
        self.parts.add(&next.parts);
        self.rtt_sum += next.rtt_sum;
        self.rtt_samples += next.rtt_samples;
        self.rounds = self.rounds.saturating_add(next.rounds);
        self.sent_bytes += next.sent_bytes;
        self.acked_bytes += next.acked_bytes;
        self.retransmissions = self.retransmissions.saturating_add(next.retransmissions);
        self.flight_bytes = self.flight_bytes.max(next.flight_bytes);
        self.flight_min = self.flight_min.min(next.flight_min);
        self.window_bytes = self.window_bytes.max(next.window_bytes);
        self.sending_us = self.sending_us.saturating_add(next.sending_us);
    }

    /// Until its timed segment was acknowledged, s.
    #[must_use]
    pub fn duration_s(&self) -> f64 {
        self.end.saturating_sub(self.time) as f64 / 1e9
    }

    /// The same as a sample of the RTT; `None` if Karn's rule forbids.
    #[must_use]
    pub fn rtt_s(&self) -> Option<f64> {
        self.rtt().map(|rtt| rtt / 1e9)
    }

    /// Mean RTT of its valid samples, ns.
    pub(super) fn rtt(&self) -> Option<f64> {
        (self.rtt_samples > 0).then(|| self.rtt_sum as f64 / f64::from(self.rtt_samples))
    }
}

/// NewData data, as they were sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewData {
    pub(super) time: Nanos,
    pub(super) end: u64,
    /// Nothing was in flight.
    pub(super) alone: bool,
    /// Not in fast recovery: a sender times it.
    pub(super) timed: bool,
    pub(super) wait: Wait,
    /// Round trip between the tap and the sender.
    pub(super) near: Nanos,
}

impl NewData {
    /// They are what an acknowledgement at `time` let out.
    fn answers(&self, time: Nanos) -> bool {
        self.time.saturating_sub(time)
            <= PROMPT.saturating_add(self.near).saturating_add(self.near / 2)
    }
}

/// An acknowledgement of new data, with what was in flight until it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewAck {
    pub(super) time: Nanos,
    pub(super) number: u64,
    pub(super) bytes: u64,
    /// It brings data, too: perhaps a request.
    pub(super) asks: bool,
    pub(super) flight: u64,
    pub(super) window: u64,
    pub(super) wait: Wait,
}

/// Waits since new data were last sent, of which the next new data will say what they were.
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
    /// All before this are accounted for.
    mark: Nanos,
    /// Time of the last new data.
    last_new: Nanos,
    /// What the timed segment ends with.
    target: u64,
    /// It is not acknowledged yet.
    waiting: bool,
    /// Its acknowledgement will be a sample: Karn's rule.
    timed: bool,
    /// Bytes in flight after the segments sent together with the timed one.
    transit: u64,
    pending: PendingWaits,
    /// The receiver sent data since the last acknowledgement, or with it: perhaps a request.
    asked: bool,
    idle: Nanos,
    samples: u64,
    sample_sum: u128,
    growth: Growth,
    /// Acknowledgements of new data in the round.
    acks: u32,
    pub(super) reductions: Reductions,
    correlation: Correlation,
    rows: PackedRounds,
}

impl Rounds {
    /// Fetches from memory what most segments change.
    #[inline]
    pub(super) fn prefetch(&self) -> u64 {
        let words =
            [self.round.sent_bytes, self.round.parts.rest, self.mark, self.transit, self.samples];
        let sum = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
        sum.wrapping_add(self.rows.prefetch())
    }

    /// NewData data are sent.
    #[inline]
    pub(super) fn sent_new(&mut self, new: &NewData) {
        let gap = new.time.saturating_sub(self.last_new);
        self.last_new = new.time;
        if gap <= PROMPT {
            self.round.sending_us += (gap / 1000) as u32;
        }
        if self.round.rounds == 0 {
            self.mark = new.time;
        } else if new.alone {
            self.after_pause(new);
        }
        if self.pending.short > 0 {
            self.after_short(new);
        }
        self.pending.open = 0;
        if self.waiting && (self.timed || !new.timed) {
            return;
        }
        if self.waiting && self.round.time == new.time {
            // A retransmission sent together with it is not timed, but this is.
            (self.target, self.timed) = (new.end, true);
            return;
        }
        self.next(new.time, new.end, new.timed);
    }

    /// NewData data after a segment that was not full: what an acknowledgement without a request let out while others
    /// were in flight, the application had written before.
    fn after_short(&mut self, new: &NewData) {
        let short = std::mem::take(&mut self.pending.short);
        // Away from the sender, all is acknowledged at the tap while acknowledgements are in flight to it.
        let alone = new.alone && new.near <= AWAY;
        if alone || self.asked || !new.answers(self.mark) {
            self.round.parts.application += short;
        } else {
            self.round.parts.rest += short;
        }
    }

    /// The first data after all were acknowledged.
    fn after_pause(&mut self, new: &NewData) {
        let pause = new.time.saturating_sub(self.mark);
        if new.answers(self.mark) || new.wait.by_receiver() {
            self.account(new.time, new.wait);
            return;
        }
        // What was acknowledged meanwhile did not make it send: there was nothing.
        let parts = &mut self.round.parts;
        let drained = self.pending.open.min(parts.rest);
        parts.rest += new.near;
        parts.rest -= drained;
        parts.application += drained + (pause - new.near);
        self.idle += pause - new.near;
        self.mark = new.time;
        self.growth.idle(pause);
    }

    /// A segment is retransmitted; `before`: the limit of the sender until then.
    pub(super) fn sent_again(
        &mut self,
        time: Nanos,
        (start, end): (u64, u64),
        packets: u64,
        verdict: &Verdict,
        before: Wait,
    ) {
        let flight = self.round.flight_bytes;
        match verdict.cause {
            Cause::Timeout { depth } => {
                self.account(time.saturating_sub(verdict.waited), before);
                self.round.parts.timeout += time.saturating_sub(self.mark);
                self.mark = self.mark.max(time);
                self.reductions.forget();
                if depth == 1 {
                    self.growth.timeout(flight, &mut self.round.parts);
                }
            }
            Cause::TailLossProbe => self.account(time, Wait::Repair),
            _ => self.account(time, before),
        }
        if verdict.indication == Some(Kind::Td) {
            self.growth.loss(&mut self.round.parts);
            self.reductions.begin(flight);
        }
        self.round.parts.rest += self.pending.short;
        self.pending = PendingWaits::default();
        if !self.waiting {
            self.next(time, end, false);
        } else if start < self.target {
            self.timed = false;
        }
        self.round.retransmissions += packets as u32;
    }

    /// Data are sent, new or retransmitted; `flight` bytes are then in flight.
    #[inline]
    pub(super) fn data(&mut self, bytes: u32, flight: u64) {
        self.round.sent_bytes += u64::from(bytes);
        self.round.flight_bytes = self.round.flight_bytes.max(small(flight));
    }

    /// NewData data are acknowledged.
    #[inline]
    pub(super) fn acked(&mut self, acked: &NewAck) {
        self.account(acked.time, acked.wait);
        self.asked = acked.asks;
        self.round.acked_bytes += acked.bytes;
        self.acks += 1;
        self.round.window_bytes = self.round.window_bytes.max(small(acked.window));
        self.reductions.acked(acked.flight, acked.bytes, acked.wait);
        if self.transit == 0 {
            self.transit = acked.flight;
        }
        if self.waiting && acked.number >= self.target {
            self.answered(acked.time);
        }
    }

    fn answered(&mut self, time: Nanos) {
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
        self.correlation.add(sample as f64, self.transit as f64);
    }

    /// The receiver sends data without an acknowledgement of new data.
    pub(super) fn asked(&mut self) {
        self.asked = true;
    }

    /// The receiver opened the window that the sender had waited for.
    pub(super) fn opened(&mut self, time: Nanos, wait: Wait) {
        if self.round.rounds > 0 {
            self.account(time, wait);
        }
    }

    /// Puts the time since the last event down to `wait`.
    #[inline]
    fn account(&mut self, time: Nanos, wait: Wait) {
        let elapsed = time.saturating_sub(self.mark);
        self.mark += elapsed;
        let parts = &mut self.round.parts;
        match wait {
            Wait::Repair => parts.recovery += elapsed,
            Wait::Window => parts.receiver_window += elapsed,
            Wait::Closed => parts.closed += elapsed,
            Wait::Short => self.pending.short += elapsed,
            Wait::Open => {
                parts.rest += elapsed;
                self.pending.open += elapsed;
            }
        }
    }

    /// Numbers begin anew at `at`: what was timed will not be acknowledged.
    pub(super) fn move_to(&mut self, at: u64) {
        (self.target, self.timed) = (at, false);
    }

    /// The round is over, the next begins.
    fn next(&mut self, time: Nanos, target: u64, timed: bool) {
        if self.round.rounds > 0 {
            if self.waiting {
                self.round.end = self.round.end.max(time);
            }
            self.keep();
        }
        self.round = Round::begin(time);
        self.transit = 0;
        (self.target, self.timed, self.waiting) = (target, timed, true);
    }

    fn keep(&mut self) {
        self.growth.round(&mut self.round, std::mem::take(&mut self.acks));
        self.round.flight_min = self.round.flight_bytes;
        self.rows.keep(&self.round);
    }

    /// What there is in the end, at `time`.
    pub(super) fn finish(&mut self, time: Nanos, wait: Wait) -> RoundSummary {
        if self.round.rounds > 0 {
            self.account(time, wait);
            // Nothing came after: it did not wait for more data, but for what was out.
            self.round.parts.rest += std::mem::take(&mut self.pending.short);
            if self.waiting {
                self.round.end = self.round.end.max(self.mark);
            }
            self.keep();
        }
        RoundSummary {
            rows: std::mem::take(&mut self.rows).into_rounds(),
            idle: self.idle,
            samples: self.samples,
            mean_s: (self.samples > 0).then(|| self.sample_sum as f64 / self.samples as f64 / 1e9),
            correlation: self.correlation.coefficient(),
            reduction: self.reductions.median(),
            slow_start: self.growth.slow_start(),
        }
    }
}

/// No window is larger than 2^30 bytes (RFC 7323).
fn small(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The rounds of a direction, and what was summed over them.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundSummary {
    pub(super) rows: Vec<Round>,
    /// Time in which nothing was in flight and nothing was sent.
    pub(super) idle: Nanos,
    pub(super) samples: u64,
    pub(super) mean_s: Option<f64>,
    pub(super) correlation: Option<f64>,
    pub(super) reduction: Option<f64>,
    pub(super) slow_start: SlowStart,
}
