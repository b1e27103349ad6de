//! The largest bandwidth of the last rounds.

/// The three largest of late, each newer than the one before: as `tcp::modern::rtt`'s
/// filter of the smallest, over rounds in place of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxFilter {
    best: [(u32, u64); 3],
}

impl MaxFilter {
    /// The largest.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.best[0].1
    }

    /// A value in a round; those older than `window` rounds are forgotten.
    pub fn update(&mut self, round: u32, value: u64, window: u32) {
        let new = (round, value);
        let best = &mut self.best;
        // Most are smaller than all three, and none of those is old.
        if value < best[2].1 && round - best[0].0 <= window / 4 {
            return;
        }
        if value >= best[0].1 || round - best[2].0 > window {
            *best = [new; 3];
            return;
        }
        if value >= best[1].1 {
            (best[1], best[2]) = (new, new);
        } else if value >= best[2].1 {
            best[2] = new;
        }
        let since = round - best[0].0;
        if since > window {
            *best = [best[1], best[2], new];
            if round - best[0].0 > window {
                *best = [best[1], best[2], new];
            }
        } else if best[1].0 == best[0].0 && since > window / 4 {
            (best[1], best[2]) = (new, new);
        } else if best[2].0 == best[1].0 && since > window / 2 {
            best[2] = new;
        }
    }
}

/// The largest value of this cycle and of the one before.
#[derive(Clone, Copy, Debug, Default)]
pub struct TwoCycles {
    before: u64,
    now: u64,
}

impl TwoCycles {
    /// The largest.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.before.max(self.now)
    }

    /// A value of this cycle.
    pub fn update(&mut self, value: u64) {
        self.now = self.now.max(value);
    }

    /// The next cycle begins. After one without a value the one before it counts on.
    pub fn advance(&mut self) {
        if self.now > 0 {
            *self = Self { before: self.now, now: 0 };
        }
    }
}
