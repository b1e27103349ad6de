//! A run over time, for figures: from its beginning on, the warm-up included.

use super::counters::every_second;
use super::{CLASS_CELLS, ClassCell, Counters, Probes};
use crate::clock::{NEVER, Nanos};

/// What is told of each class, in this order.
const CELLS: [ClassCell; 4] =
    [ClassCell::Delivered, ClassCell::Lacking, ClassCell::RttSum, ClassCell::RttSamples];

/// Columns before those of the classes: the time, and queue length times time modulo 2^64.
const LINK_COLUMNS: usize = 2;

/// No more slots than this are kept; then each two become one.
const MAX_SLOTS: usize = 512;
/// The first slots are this long.
const FIRST_SLOT: Nanos = 1_000_000;

/// Sums since the beginning of a run at the ends of equal slots, 256 to 512 of them however long it
/// gets.
#[derive(Clone, Debug)]
pub struct TimeSeries {
    slot: Nanos,
    next: Nanos,
    /// What the counters had when the warm-up was over, and they began anew.
    before: Vec<u64>,
    ends: Vec<u64>,
    last: Vec<u64>,
}

impl TimeSeries {
    /// Of so many classes; nothing is kept unless it is `kept`.
    #[must_use]
    pub fn new(classes: usize, kept: bool) -> Self {
        Self {
            slot: FIRST_SLOT,
            next: if kept { FIRST_SLOT } else { NEVER },
            before: vec![0; if kept { classes * CELLS.len() } else { 0 }],
            ends: Vec::new(),
            last: Vec::new(),
        }
    }

    /// The names of the columns of a class.
    #[must_use]
    pub fn cells() -> [&'static str; CELLS.len()] {
        CELLS.map(|cell| CLASS_CELLS[cell as usize])
    }

    /// The most bytes that are kept of so many classes.
    #[must_use]
    pub fn bytes(classes: usize) -> usize {
        (MAX_SLOTS + 1) * (LINK_COLUMNS + classes * CELLS.len()) * size_of::<u64>()
    }

    /// When the slot that is open ends, [`NEVER`] where nothing is kept.
    #[must_use]
    pub fn slot_ends(&self) -> Nanos {
        self.next
    }

    /// Columns of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        LINK_COLUMNS + self.before.len()
    }

    /// The sums at the beginning, at the end of each slot, and wherever the run ended.
    #[must_use]
    pub fn rows(&self) -> Vec<u64> {
        let mut rows = vec![0; self.width()];
        rows.extend_from_slice(&self.ends);
        rows.extend_from_slice(&self.last);
        rows
    }

    /// The counters begin anew.
    pub(super) fn keep(&mut self, counters: &Counters) {
        for (at, before) in self.before.iter_mut().enumerate() {
            *before += of_cell(counters, at);
        }
    }

    fn close(&mut self, now: Nanos, queue: u64, counters: &Counters, last: bool) {
        if self.next == NEVER {
            return;
        }
        let width = self.width();
        self.last.clear();
        let rows = if last { &mut self.last } else { &mut self.ends };
        rows.extend([now, queue]);
        let sums = self.before.iter().enumerate();
        rows.extend(sums.map(|(at, before)| before + of_cell(counters, at)));
        if last {
            return;
        }
        if self.ends.len() == MAX_SLOTS * width {
            every_second(&mut self.ends, width);
            self.slot *= 2;
        }
        self.next = now + self.slot;
    }
}

/// The sum in a column of the classes.
fn of_cell(counters: &Counters, at: usize) -> u64 {
    counters.of_class(at / CELLS.len(), CELLS[at % CELLS.len()])
}

impl Probes {
    /// Closes a slot of the time_series, or the last one wherever the run ended.
    pub fn close_time_series(&mut self, now: Nanos, last: bool) {
        self.time_series.close(now, self.occupancy.lifetime_integral(), &self.counters, last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_stay_equal_and_few_while_a_run_grows() {
        let (mut time_series, mut counters) = (TimeSeries::new(2, true), Counters::new(2, 1));
        for _ in 0..5000 {
            let end = time_series.slot_ends();
            let told = time_series.before[CELLS.len()] + counters.of_class(1, ClassCell::Delivered);
            counters.add(1, ClassCell::Delivered, end - told);
            if end % 7 == 0 {
                time_series.keep(&counters);
                counters.begin(end);
            }
            time_series.close(end, 3 * end, &counters, false);
        }
        time_series.close(time_series.next - 1, 3 * (time_series.next - 1), &counters, true);
        let (width, rows) = (time_series.width(), time_series.rows());
        let rows: Vec<&[u64]> = rows.chunks(width).collect();
        assert!((258..=514).contains(&rows.len()), "{}", rows.len());
        let slot = rows[1][0];
        assert!(rows[..rows.len() - 1].windows(2).all(|pair| pair[1][0] - pair[0][0] == slot));
        assert!(rows.iter().all(|row| row[1] == 3 * row[0] && row[2] == 0));
        let delivered = LINK_COLUMNS + CELLS.len();
        assert!(rows[..rows.len() - 1].iter().all(|row| row[delivered] == row[0]));
    }

    #[test]
    fn nothing_is_kept_unless_it_is_asked() {
        let (mut time_series, counters) = (TimeSeries::new(2, false), Counters::new(2, 1));
        time_series.close(1, 1, &counters, false);
        time_series.keep(&counters);
        time_series.close(1, 1, &counters, true);
        assert_eq!((time_series.slot_ends(), time_series.rows()), (NEVER, vec![0, 0]));
    }
}
