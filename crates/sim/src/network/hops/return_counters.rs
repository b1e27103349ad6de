//! Counters of the return link over a whole run.

use super::{HopChain, StageKind};
use crate::clock::Nanos;
use crate::conservation::ConservationError;
use crate::probe::Probes;

/// Acknowledgements at the return link and their waiting times, warm-up included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReturnLinkCounters {
    /// Minimum length of an acknowledgement in bytes.
    pub(super) min_bytes: u32,
    /// Delay between an occurrence at the return link and its event: the lookahead from the return
    /// link.
    pub(crate) late: Nanos,
    pub(super) entered: u64,
    pub(super) left: u64,
    pub(super) dropped: u64,
    /// Sum of the departure times minus the arrival times, modulo 2^64.
    pub(super) sojourns: u64,
}

impl ReturnLinkCounters {
    pub(super) fn new(min_bytes: u32, late: Nanos) -> Self {
        Self { min_bytes, late, entered: 0, left: 0, dropped: 0, sojourns: 0 }
    }
}

impl HopChain {
    /// Whether there is a return link.
    #[inline(always)]
    pub(crate) fn has_return_link(&self) -> bool {
        self.forward < self.stages.len()
    }

    /// Checks that acknowledgements are conserved at the return link and that Little's law holds
    /// for its queue. Call `advance_to` first.
    ///
    /// # Errors
    /// [`ConservationError`] if a check fails.
    pub(crate) fn check_return_link_conservation(
        &self,
        now: Nanos,
        probes: &Probes,
    ) -> Result<(), ConservationError> {
        let Some(StageKind::Shared(hop)) = self.stages.get(self.forward).map(|stage| &stage.kind)
        else {
            return Ok(());
        };
        let ReturnLinkCounters { late, entered, left, dropped, sojourns, .. } = self.acks;
        let waiting = hop.waiting_packets();
        if entered != left + dropped + waiting {
            return Err(ConservationError::Acks { entered, left, dropped, waiting });
        }
        let held = probes.hops[self.forward].occupancy.queue_length_integral_since_start();
        let waited = hop.total_time_at_hop(now.saturating_sub(late), sojourns);
        if held != waited {
            return Err(ConservationError::Waiting { held, waited });
        }
        Ok(())
    }
}
