//! How much more than the bandwidth arrives at once where acknowledgements are aggregated: the
//! window has room for it.

use super::super::AckSample;
use super::super::path_model::{AckEpoch, carried};
use crate::clock::Nanos;
use crate::tcp::modern::stack::MILLISECOND;

/// The largest of this many rounds to twice as many counts.
const ROUNDS: u8 = 5;
/// Room for at most this much time.
const MAX_TIME: Nanos = 100 * MILLISECOND;

/// What is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Aggregation {
    epoch: AckEpoch,
    extra: [u32; 2],
    at: usize,
    rounds: u8,
}

impl Aggregation {
    /// An epoch begins now.
    pub fn new(now: Nanos) -> Self {
        Self { epoch: AckEpoch::new(now), extra: [0; 2], at: 0, rounds: 0 }
    }

    /// After an idle time a new epoch begins.
    pub fn restarted(self, now: Nanos) -> Self {
        Self { epoch: AckEpoch::new(now), ..self }
    }

    /// An acknowledgement, with the bandwidth that the model has.
    pub fn on_ack(&mut self, ack: &AckSample, bw: u64, round_start: bool, cwnd: u32) {
        if ack.delivered == 0 || ack.rate.rate.is_none() {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.at = 1 - self.at;
                self.extra[self.at] = 0;
            }
        }
        let extra = self.epoch.extra(ack, bw, cwnd);
        self.extra[self.at] = self.extra[self.at].max(extra);
    }

    /// Packets that the window has more.
    pub fn room(&self, bw: u64) -> u32 {
        self.extra[0].max(self.extra[1]).min(carried(bw, MAX_TIME))
    }
}
