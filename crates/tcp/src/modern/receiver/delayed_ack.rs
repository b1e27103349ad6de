//! Delayed acknowledgements of Linux.

use super::super::stack::{AckDelayRule, Stack};
use super::{ArrivingData, Receiver};
use tcpcast_link::time::{MILLISECOND, NEVER, Nanos};

/// Minimum delay of an acknowledgement.
pub(super) const MIN_DELAY: Nanos = 40 * MILLISECOND;
/// Maximum delay, and maximum delay of interactive connections.
const MAX_DELAY: Nanos = 500 * MILLISECOND;
const MAX_INTERACTIVE_DELAY: Nanos = 200 * MILLISECOND;
/// Packets acknowledged immediately at the start.
pub(super) const QUICK_ACKS: u8 = 16;
/// Minimum packet size for window growth, in bytes of data.
const MIN_GROWTH_BYTES: u32 = 128;

/// Time at which an acknowledgement is due; most checks are a single comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AckDueTime(Nanos);

impl AckDueTime {
    /// None is due.
    pub const NONE: Self = Self(NEVER);
    /// Due immediately.
    pub const NOW: Self = Self(0);

    /// Due at a given time.
    #[inline(always)]
    pub fn due_at(at: Nanos) -> Self {
        Self(at.max(1))
    }

    /// Returns the time if an acknowledgement is due later; [`None`] if it is due immediately or
    /// never.
    #[inline(always)]
    pub fn time_if_in_future(self) -> Option<Nanos> {
        (self != Self::NOW && self != Self::NONE).then_some(self.0)
    }
}

/// Unacknowledged packets that were pushed or are not full: Linux's `ICSK_ACK_PUSHED`, and
/// `ICSK_ACK_PUSHED2` for two of which the second is not full. After the latter, interactive
/// connections acknowledge when the application has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PushedPackets {
    None,
    One,
    Two,
}

/// State of delayed acknowledgements in Linux.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayedAckState {
    /// Current delay; [`None`] before the first packet.
    pub ato: Option<Nanos>,
    /// Remaining acknowledgements that are not delayed. One byte, so its lowest bit can be set
    /// alone.
    pub quick: u8,
    pub last_arrival: Nanos,
    /// Both ends send data, which carries acknowledgements.
    pub interactive: bool,
    /// Unacknowledged packets that were pushed or are not full.
    pub pushed: PushedPackets,
    /// Time at which the acknowledgement is due after the application has read, if it reads all
    /// packets of an instant together. Until then `Receiver::due` is the time of reading.
    pub read: AckDueTime,
}

impl Receiver {
    #[inline(always)]
    pub(super) fn delay_ack(&mut self, now: Nanos, stack: &Stack) {
        let mut wait = self.delay.ato.unwrap_or(MIN_DELAY);
        if wait > MIN_DELAY {
            let pushed = self.delay.pushed != PushedPackets::None;
            let interactive = self.delay.interactive || pushed;
            let max = if interactive { MAX_INTERACTIVE_DELAY } else { MAX_DELAY };
            let by_rtt = self.srtt.map_or(max, |srtt| srtt.max(MIN_DELAY));
            wait = wait.min(max).min(by_rtt);
        }
        let at = now + stack.round_up_to_ticks(wait.min(MAX_INTERACTIVE_DELAY));
        self.due = match self.due.time_if_in_future() {
            Some(before) if before <= now + wait / 4 => AckDueTime::NOW,
            Some(before) => AckDueTime::due_at(before.min(at)),
            None => AckDueTime::due_at(at),
        };
    }

    /// Waits until the application has read all packets of this instant: Linux's
    /// `__tcp_ack_snd_check` leaves the acknowledgement of unread data to the reader, since the
    /// window would be smaller than the advertised one.
    #[inline(never)]
    pub(super) fn defer_ack_until_read(&mut self, now: Nanos, stack: &Stack) {
        if self.is_read_pending() {
            self.due = self.delay.read;
        }
        self.delay_ack(now, stack);
        if self.due != AckDueTime::NOW {
            self.delay.read = self.due;
            self.due = AckDueTime::due_at(now);
        }
    }

    /// Whether `Receiver::due` is the time at which the application reads.
    pub(super) fn is_read_pending(&self) -> bool {
        let is_pending = self.delay.read != AckDueTime::NONE && self.delay.read != self.due;
        is_pending && self.due.time_if_in_future().is_some()
    }

    /// The application has read all available data.
    pub(super) fn on_all_data_read(&mut self) {
        self.due = if self.read_causes_ack(true) { AckDueTime::NOW } else { self.delay.read };
    }

    /// Linux's `tcp_cleanup_rbuf`: whether a read causes an acknowledgement; `drained` if no unread
    /// data is left.
    pub(super) fn read_causes_ack(&self, drained: bool) -> bool {
        let full = self.next_expected() - self.acknowledged > u64::from(self.largest);
        full || (drained && self.pushes_cause_ack())
    }

    /// Whether pushed packets cause an acknowledgement when the application has read everything.
    #[inline(always)]
    pub(super) fn pushes_cause_ack(&self) -> bool {
        match self.delay.pushed {
            PushedPackets::None => false,
            PushedPackets::One => !self.delay.interactive,
            PushedPackets::Two => true,
        }
    }

    /// Adapts the delay to the arrivals: the delay stays short while packets arrive at short
    /// intervals. RFC 5681, section 4.2, allows up to 500 ms.
    #[inline(always)]
    pub(super) fn adapt_delay_to_arrival(
        &mut self,
        now: Nanos,
        data: &ArrivingData,
        stack: &Stack,
    ) {
        if stack.receiving.delayed_acks != AckDelayRule::Linux {
            return;
        }
        // Linux's `tcp_measure_rcv_mss`.
        if data.len < self.largest {
            self.delay.pushed = match self.delay.pushed {
                PushedPackets::None => PushedPackets::One,
                _ => PushedPackets::Two,
            };
        } else if data.push {
            self.delay.pushed = self.delay.pushed.max(PushedPackets::One);
        }
        let rto = self.srtt.unwrap_or(0) + 200 * MILLISECOND;
        let gap = now - self.delay.last_arrival;
        self.delay.last_arrival = now;
        match self.delay.ato {
            None => {
                self.add_quick_acks(QUICK_ACKS);
                self.delay.ato = Some(MIN_DELAY);
            }
            Some(ato) if gap <= MIN_DELAY / 2 => {
                self.delay.ato = Some(ato / 2 + MIN_DELAY / 2);
            }
            Some(ato) if gap < ato => self.delay.ato = Some((ato / 2 + gap).min(rto)),
            Some(_) if gap > rto => self.add_quick_acks(QUICK_ACKS),
            Some(_) => (),
        }
    }

    #[inline(never)]
    pub(super) fn add_quick_acks(&mut self, max: u8) {
        let acks = self.receive_window() / (2 * u64::from(self.largest));
        let acks = u8::try_from(acks).unwrap_or(u8::MAX).max(2).min(max);
        self.delay.quick = self.delay.quick.max(acks);
    }

    /// Linux's `tcp_grow_window`: while the window grows, acknowledgements are not delayed.
    #[inline(always)]
    pub(super) fn grow_receive_window(&mut self, data: &ArrivingData, stack: &Stack) {
        if data.len >= MIN_GROWTH_BYTES {
            self.growth = self.growth.saturating_sub(2 * u64::from(stack.full_segment_bytes()));
            self.delay.quick |= 1;
        }
    }

    pub(super) fn enter_quick_ack_mode(&mut self, max: u8) {
        self.add_quick_acks(max);
        self.delay.interactive = false;
        self.delay.ato = Some(MIN_DELAY);
    }
}
