//! Maximum filters for the bandwidth of recent rounds.

/// Windowed maximum filter: stores the three largest recent values, each newer than the previous
/// value. Like the minimum filter of `tcp::modern::rtt`, but over rounds instead of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowedMaxFilter {
    best: [(u32, u64); 3],
}

impl WindowedMaxFilter {
    /// Maximum.
    #[inline(always)]
    pub fn max_value(&self) -> u64 {
        self.best[0].1
    }

    /// Adds the value of a round; values older than `window` rounds are discarded.
    pub fn update(&mut self, round: u32, value: u64, window: u32) {
        let new = (round, value);
        let best = &mut self.best;
        // Common case: smaller than all three values, none of which is old.
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

/// Maximum of the current and the previous cycle.
#[derive(Clone, Copy, Debug, Default)]
pub struct TwoCycleMaxFilter {
    before: u64,
    now: u64,
}

impl TwoCycleMaxFilter {
    /// Maximum.
    #[inline(always)]
    #[must_use]
    pub fn max_value(&self) -> u64 {
        self.before.max(self.now)
    }

    /// Adds a value of the current cycle.
    pub fn update(&mut self, value: u64) {
        self.now = self.now.max(value);
    }

    /// Starts the next cycle. If the current one had no value, the previous one is kept.
    pub fn start_next_cycle(&mut self) {
        if self.now > 0 {
            *self = Self { before: self.now, now: 0 };
        }
    }
}
