//! What the return link did with acknowledgements over a whole run.

use super::{HopChain, StageKind};
use crate::balance::Unbalanced;
use crate::clock::Nanos;
use crate::probe::Probes;

/// The acknowledgements that came to the return link, the warm-up included, and what they waited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReturnCounters {
    /// Least bytes of an acknowledgement.
    pub(super) min_bytes: u32,
    /// What happens at the return link is an event so much later: the lookahead from there.
    pub(crate) late: Nanos,
    pub(super) entered: u64,
    pub(super) left: u64,
    pub(super) dropped: u64,
    /// The times at which they left the queue less those at which they entered it, modulo 2^64.
    pub(super) sojourns: u64,
}

impl ReturnCounters {
    pub(super) fn new(min_bytes: u32, late: Nanos) -> Self {
        Self { min_bytes, late, entered: 0, left: 0, dropped: 0, sojourns: 0 }
    }
}

impl HopChain {
    /// Whether acknowledgements of all sources share a link of their own.
    #[inline(always)]
    pub(crate) fn has_return(&self) -> bool {
        self.forward < self.stages.len()
    }

    /// Checks that every acknowledgement is accounted for at the return link, and that Little's law
    /// holds for its queue; it is settled.
    ///
    /// # Errors
    /// [`Unbalanced`] if not.
    pub(crate) fn check_return(&self, now: Nanos, probes: &Probes) -> Result<(), Unbalanced> {
        let Some(StageKind::Shared(hop)) = self.stages.get(self.forward).map(|stage| &stage.kind)
        else {
            return Ok(());
        };
        let ReturnCounters { late, entered, left, dropped, sojourns, .. } = self.acks;
        let waiting = hop.waiting();
        if entered != left + dropped + waiting {
            return Err(Unbalanced::Acks { entered, left, dropped, waiting });
        }
        let held = probes.hops[self.forward].occupancy.lifetime_integral();
        let waited = hop.waits(now.saturating_sub(late), sojourns);
        if held != waited {
            return Err(Unbalanced::Waiting { held, waited });
        }
        Ok(())
    }
}
