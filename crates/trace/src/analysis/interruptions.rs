//! Interruptions: periods in which one end transmitted data without any answer, or in which the
//! receiver kept its window closed.

use super::direction_stats::DirectionStats;
use super::flow::Flow;
use super::interruption_kinds::{Interruption, SilentParty};
use super::sender_state::MIN_RTO_MINUS_SRTT;
use crate::segment::Nanos;

/// Shortest interruption; it also lasts at least [`MIN_INTERRUPTION_RTOS`] RTOs.
pub const MIN_INTERRUPTION: Nanos = 1_000_000_000;
const MIN_INTERRUPTION_RTOS: f64 = 4.0;
/// Maximum number of interruptions listed per direction.
const MAX_INTERRUPTIONS: usize = 256;
/// Number of retransmissions without an answer from which an interruption lasts until the end.
const MIN_COPIES_AT_END: u32 = 3;

impl DirectionStats {
    fn add_interruption(&mut self, interruption: Interruption) {
        if self.interruptions.len() < MAX_INTERRUPTIONS {
            self.interruptions.push(interruption);
        }
    }
}

impl Flow {
    /// Shortest silence that is an interruption.
    pub(super) fn min_interruption(&self) -> Nanos {
        let timeout = self.estimate.rto_ns(MIN_RTO_MINUS_SRTT).unwrap_or(0.0);
        MIN_INTERRUPTION.max((MIN_INTERRUPTION_RTOS * timeout) as Nanos)
    }

    /// Called before a segment of the other end is processed.
    #[inline(always)]
    pub(super) fn find_interruption(&mut self, now: Nanos) {
        if now.saturating_sub(self.recovery.last_peer_time()) >= MIN_INTERRUPTION {
            self.end_silence(true);
        }
    }

    /// Adds the silence of the other end since its last segment, if data were transmitted in vain.
    #[cold]
    fn end_silence(&mut self, ended: bool) {
        let (heard, last) = (self.recovery.last_peer_time(), self.last_sent);
        let outstanding = self.acknowledged < self.next;
        let (Some(first), true) = (self.flight.oldest_sent(), outstanding && heard > 0) else {
            return;
        };
        let (start, shortest) = (first.max(heard), self.min_interruption());
        let Some(stats) = &mut self.stats else { return };
        let events = stats.retransmitted.iter().rev();
        let copies = events.take_while(|event| event.time > start).count() as u32;
        let enough = if ended { 1 } else { MIN_COPIES_AT_END };
        if last.saturating_sub(start) >= shortest && copies >= enough {
            let by = SilentParty::Path;
            stats.add_interruption(Interruption { start, end: last, by, copies, ended });
        }
    }

    /// Called when the receiver closes its window.
    #[cold]
    pub(super) fn on_window_closed(&mut self, now: Nanos) {
        let probes = self.counts.zero_window_probes;
        if let Some(stats) = &mut self.stats {
            stats.closed_window.get_or_insert((now, probes));
        }
    }

    /// Called when the receiver opens its window again, or at the last segment of the connection.
    #[cold]
    pub(super) fn on_window_opened(&mut self, now: Nanos, ended: bool) {
        let (probes, shortest) = (self.counts.zero_window_probes, self.min_interruption());
        let Some(stats) = &mut self.stats else { return };
        let Some((start, before)) = stats.closed_window.take() else { return };
        let copies = probes.saturating_sub(before) as u32;
        // Without probes, the sender had no data to send.
        if copies > 0 && now.saturating_sub(start) >= shortest {
            let by = SilentParty::Receiver;
            stats.add_interruption(Interruption { start, end: now, by, copies, ended });
        }
    }

    /// Adds an interruption that lasts until the last segment of the connection.
    pub(crate) fn find_interruption_at_end(&mut self, now: Nanos) {
        if self.stats.as_ref().is_some_and(|stats| stats.closed_window.is_some()) {
            self.on_window_opened(now, false);
        }
        if self.last_sent > self.recovery.last_peer_time() {
            self.end_silence(false);
        }
    }
}
