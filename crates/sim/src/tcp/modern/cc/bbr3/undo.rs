//! Undo of unnecessary recoveries: section 5.5.11.

use super::loss::ShortTerm;
use super::{Bbr3, Mode};
use crate::tcp::modern::window::Window;

/// Mode that was ended by losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Startup.
    Startup,
    /// A probe for bandwidth.
    Up,
}

/// State before the losses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undo {
    /// Mode that the losses ended.
    pub(super) ended: Option<Ended>,
    short_term: ShortTerm,
    inflight_longterm: Option<u32>,
}

/// Returns the larger of two bounds; [`None`] means unbounded.
fn wider<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.zip(other).map(|(one, other)| one.max(other))
}

impl Bbr3 {
    /// Section 5.5.11.1.
    pub(super) fn save_state(&mut self, window: &Window) {
        self.save_cwnd(window.cwnd);
        self.undo = Undo {
            ended: None,
            short_term: self.short_term,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// Section 5.5.11.2.
    pub(super) fn handle_spurious_loss(&mut self) {
        self.latest.loss_in_round = false;
        self.full.restart(0);
        let saved = self.undo.short_term;
        self.short_term = ShortTerm {
            bandwidth: wider(self.short_term.bandwidth, saved.bandwidth),
            inflight: wider(self.short_term.inflight, saved.inflight),
        };
        self.inflight_longterm = wider(self.inflight_longterm, self.undo.inflight_longterm);
        match self.undo.ended.take() {
            Some(Ended::Startup) if self.mode != Mode::Startup => {
                self.full.set_reached(false);
                if !self.is_probing_rtt() {
                    self.mode = Mode::Startup;
                }
            }
            Some(Ended::Up) if self.mode != Mode::Up && !self.is_probing_rtt() => {
                self.start_refill()
            }
            _ => (),
        }
    }
}
