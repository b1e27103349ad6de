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
    /// Whether this is the state before the recovery in progress.
    is_saved: bool,
    /// Whether the acknowledgement that is processed next has shown that a recovery was spurious.
    is_undone_by_ack: bool,
    short_term: ShortTermBounds,
    inflight_longterm: Option<u32>,
}

/// Returns the larger of two bounds; [`None`] means unbounded.
fn larger_bound<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.zip(other).map(|(one, other)| one.max(other))
}

impl Bbr3 {
    /// Section 5.5.11.1: saves the state before the first loss of a recovery. If a loss ends a
    /// probe, further losses of the same acknowledgement must not replace this state: the section
    /// says so in words, but its pseudo-code saves the state again, because the end of the probe
    /// resets `is_loss_in_round`.
    pub(super) fn save_state(&mut self, window: &CongestionWindow) {
        self.save_cwnd(window.cwnd);
        if self.undo.is_saved {
            return;
        }
        self.undo = UndoState {
            ended: None,
            is_saved: true,
            short_term: self.short_term,
            inflight_longterm: self.inflight_longterm,
            ..self.undo
        };
    }

    /// The undo may start a round, which begins with the deliveries of the acknowledgement that
    /// caused it. The model does not know them yet.
    pub(super) fn start_round_after_undo(&mut self) {
        if std::mem::take(&mut self.undo.is_undone_by_ack) {
            self.start_round();
        }
    }

    /// The recovery has ended.
    pub(super) fn end_recovery(&mut self) {
        self.undo.is_saved = false;
    }

    /// Section 5.5.11.2.
    pub(super) fn handle_spurious_loss(&mut self) {
        self.undo.is_saved = false;
        self.undo.is_undone_by_ack = true;
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
