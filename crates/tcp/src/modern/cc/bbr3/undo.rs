//! Undo of unnecessary recoveries: section 5.5.11.

use super::loss::ShortTermBounds;
use super::{Bbr3, Bbr3Mode};
use crate::modern::window::CongestionWindow;

/// Mode that was ended by losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedMode {
    /// Startup.
    Startup,
    /// A probe for bandwidth.
    Up,
}

/// State before the losses.
#[derive(Clone, Copy, Debug, Default)]
pub struct UndoState {
    /// Mode that the losses ended.
    pub(super) ended: Option<EndedMode>,
    short_term: ShortTermBounds,
    inflight_longterm: Option<u32>,
}

/// Returns the larger of two bounds; [`None`] means unbounded.
fn larger_bound<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.zip(other).map(|(one, other)| one.max(other))
}

impl Bbr3 {
    /// Section 5.5.11.1.
    pub(super) fn save_state(&mut self, window: &CongestionWindow) {
        self.save_cwnd(window.cwnd);
        self.undo = UndoState {
            ended: None,
            short_term: self.short_term,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// Section 5.5.11.2.
    pub(super) fn handle_spurious_loss(&mut self) {
        self.latest.loss_in_round = false;
        self.full.restart_detection(0);
        let saved = self.undo.short_term;
        self.short_term = ShortTermBounds {
            bandwidth: larger_bound(self.short_term.bandwidth, saved.bandwidth),
            inflight: larger_bound(self.short_term.inflight, saved.inflight),
        };
        self.inflight_longterm = larger_bound(self.inflight_longterm, self.undo.inflight_longterm);
        match self.undo.ended.take() {
            Some(EndedMode::Startup) if self.mode != Bbr3Mode::Startup => {
                self.full.set_ever_full(false);
                if !self.is_probing_rtt() {
                    self.mode = Bbr3Mode::Startup;
                }
            }
            Some(EndedMode::Up) if self.mode != Bbr3Mode::Up && !self.is_probing_rtt() => {
                self.start_refill()
            }
            _ => (),
        }
    }
}
