//! Ranges that the receiver holds beyond the cumulative acknowledgement (SACK, RFC 2018).

/// Maximum number of separate ranges, as in senders.
const MAX_RANGES: usize = 256;

/// Result of a SACK block: all new bytes are in `from..to`, and the receiver now holds all of
/// `stretch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewlySackedRange {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) stretch: (u64, u64),
}

/// Ordered ranges of bytes that do not touch.
#[derive(Clone, Debug, Default)]
pub(super) struct SackScoreboard {
    stretches: Vec<(u64, u64)>,
    bytes: u64,
}

impl SackScoreboard {
    /// Bytes held.
    #[inline(always)]
    pub(super) fn held_bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether all of `[left, right)` is held.
    pub(super) fn holds_range(&self, left: u64, right: u64) -> bool {
        let first = self.stretches.partition_point(|stretch| stretch.1 < right);
        self.stretches.get(first).is_some_and(|stretch| stretch.0 <= left)
    }

    /// Adds `[left, right)`. Returns the new part, or `None` if nothing is new.
    pub(super) fn add_range(&mut self, left: u64, right: u64) -> Option<NewlySackedRange> {
        let first = self.stretches.partition_point(|stretch| stretch.1 < left);
        let after = self.stretches.partition_point(|stretch| stretch.0 <= right);
        let touched = self.stretches.get(first..after).unwrap_or_default();
        let known: u64 = touched.iter().map(|stretch| stretch.1 - stretch.0).sum();
        let (Some(lowest), Some(highest)) = (touched.first(), touched.last()) else {
            if self.stretches.len() >= MAX_RANGES {
                return None;
            }
            self.stretches.insert(first, (left, right));
            self.bytes += right - left;
            return Some(NewlySackedRange { from: left, to: right, stretch: (left, right) });
        };
        let from = if lowest.0 <= left { lowest.1 } else { left };
        let to = if highest.1 >= right { highest.0 } else { right };
        let merged = (left.min(lowest.0), right.max(highest.1));
        let new = merged.1 - merged.0 - known;
        self.stretches[first] = merged;
        self.stretches.drain(first + 1..after);
        self.bytes += new;
        (new > 0).then_some(NewlySackedRange { from, to, stretch: merged })
    }

    /// Removes bytes below the cumulative acknowledgement `to`.
    #[inline]
    pub(super) fn remove_below(&mut self, to: u64) {
        if self.bytes == 0 {
            return;
        }
        let covered = self.stretches.partition_point(|stretch| stretch.1 <= to);
        self.bytes -=
            self.stretches.drain(..covered).map(|stretch| stretch.1 - stretch.0).sum::<u64>();
        if let Some(first) = self.stretches.first_mut().filter(|first| first.0 < to) {
            self.bytes -= to - first.0;
            first.0 = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn add_merges_touching_ranges() {
        let mut board = SackScoreboard::default();
        assert!(board.add_range(10, 20).is_some() && board.add_range(30, 40).is_some());
        assert_eq!(
            board.add_range(20, 30),
            Some(NewlySackedRange { from: 20, to: 30, stretch: (10, 40) })
        );
        assert_eq!(board.add_range(12, 38), None);
        assert_eq!((board.stretches.as_slice(), board.held_bytes()), ([(10, 40)].as_slice(), 30));
        board.remove_below(25);
        assert_eq!((board.held_bytes(), board.stretches.as_slice()), (15, [(25, 40)].as_slice()));
    }

    proptest! {
        #[test]
        fn scoreboard_matches_set_of_bytes(
            steps in prop::collection::vec((0_u64..200, 1_u64..30, prop::bool::weighted(0.2)), 0..60),
        ) {
            let mut board = SackScoreboard::default();
            let mut held = [false; 256];
            for (left, length, acknowledge) in steps {
                let span = left as usize..(left + length) as usize;
                if acknowledge {
                    board.remove_below(left);
                    held[..span.start].fill(false);
                } else {
                    let gain = board.add_range(left, left + length);
                    for byte in span.clone().filter(|byte| !held[*byte]) {
                        let gain = gain.expect("something is new");
                        prop_assert!((gain.from..gain.to).contains(&(byte as u64)));
                    }
                    prop_assert_eq!(gain.is_some(), held[span.clone()].contains(&false));
                    held[span].fill(true);
                }
                prop_assert_eq!(board.held_bytes(), held.iter().filter(|h| **h).count() as u64);
                prop_assert!(board.stretches.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}
