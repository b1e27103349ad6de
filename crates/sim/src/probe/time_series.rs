//! Sums over time for plots, including the warm-up.

use super::counter_table::keep_every_second_row;
use super::{CLASS_CELLS, ClassCell, CounterTable, Probes};
use crate::clock::{NEVER, Nanos};

/// Cells recorded per class, in this order.
const RECORDED_CELLS: [ClassCell; 9] = [
    ClassCell::Delivered,
    ClassCell::Lacking,
    ClassCell::RttSum,
    ClassCell::RttSamples,
    ClassCell::Delay,
    ClassCell::Received,
    ClassCell::VideoBits,
    ClassCell::Video,
    ClassCell::Played,
];

/// Columns before those of the classes: time, and queue length integrated over time modulo 2^64.
const LINK_COLUMNS: usize = 2;

/// Maximum number of slots; then pairs of slots are merged.
const MAX_SLOTS: usize = 512;
/// Initial length of a slot.
const INITIAL_SLOT_LENGTH: Nanos = 1_000_000;

/// Sums since the start of a run, at the ends of equally long slots: 256 to 512 slots for runs of
/// any length.
#[derive(Clone, Debug)]
pub struct TimeSeries {
    slot: Nanos,
    next: Nanos,
    /// Values of the counters at the end of the warm-up, when they were reset.
    before: Vec<u64>,
    ends: Vec<u64>,
    last: Vec<u64>,
}

impl TimeSeries {
    /// Creates an empty time series, which records nothing unless `is_enabled`.
    #[must_use]
    pub fn new(classes: usize, is_enabled: bool) -> Self {
        Self {
            slot: INITIAL_SLOT_LENGTH,
            next: if is_enabled { INITIAL_SLOT_LENGTH } else { NEVER },
            before: vec![0; if is_enabled { classes * RECORDED_CELLS.len() } else { 0 }],
            ends: Vec::new(),
            last: Vec::new(),
        }
    }

    /// Names of the columns of a class.
    #[must_use]
    pub fn column_names() -> [&'static str; RECORDED_CELLS.len()] {
        RECORDED_CELLS.map(|cell| CLASS_CELLS[cell as usize])
    }

    /// Maximum memory in bytes for the given number of classes.
    #[must_use]
    pub fn max_bytes(classes: usize) -> usize {
        (MAX_SLOTS + 1) * (LINK_COLUMNS + classes * RECORDED_CELLS.len()) * size_of::<u64>()
    }

    /// End of the current slot; [`NEVER`] if disabled.
    #[must_use]
    pub fn slot_end(&self) -> Nanos {
        self.next
    }

    /// Number of columns.
    #[must_use]
    pub fn column_count(&self) -> usize {
        LINK_COLUMNS + self.before.len()
    }

    /// Sums at the start, at the end of each slot, and at the end of the run.
    #[must_use]
    pub fn rows(&self) -> Vec<u64> {
        let mut rows = vec![0; self.column_count()];
        rows.extend_from_slice(&self.ends);
        rows.extend_from_slice(&self.last);
        rows
    }

    /// Stores the values of the counters before they are reset.
    pub(super) fn save_counters_before_reset(&mut self, counters: &CounterTable) {
        for (column, before) in self.before.iter_mut().enumerate() {
            let (class, cell) = class_and_cell(column);
            *before += counters.class_cell(class, cell);
        }
    }

    /// `uncounted_play` is the time, per class, for which streams played until now and that the
    /// counters do not contain yet, because players count at events.
    fn close_slot(
        &mut self,
        now: Nanos,
        queue: u64,
        counters: &CounterTable,
        uncounted_play: &[Nanos],
        last: bool,
    ) {
        if self.next == NEVER {
            return;
        }
        let width = self.column_count();
        self.last.clear();
        let rows = if last { &mut self.last } else { &mut self.ends };
        rows.extend([now, queue]);
        let sums = self.before.iter().enumerate();
        rows.extend(sums.map(|(column, before)| {
            let (class, cell) = class_and_cell(column);
            let uncounted = match cell {
                ClassCell::Played => uncounted_play[class],
                _ => 0,
            };
            before + counters.class_cell(class, cell) + uncounted
        }));
        if last {
            return;
        }
        if self.ends.len() == MAX_SLOTS * width {
            keep_every_second_row(&mut self.ends, width);
            self.slot *= 2;
        }
        self.next = now + self.slot;
    }
}

/// Class and counter of a column.
fn class_and_cell(column: usize) -> (usize, ClassCell) {
    (column / RECORDED_CELLS.len(), RECORDED_CELLS[column % RECORDED_CELLS.len()])
}

impl Probes {
    /// Closes a slot of the time series, or the `last` slot at the end of the run. For
    /// `uncounted_play` see [`TimeSeries::close_slot`].
    pub fn close_time_series(&mut self, now: Nanos, uncounted_play: &[Nanos], last: bool) {
        self.time_series.close_slot(
            now,
            self.occupancy.queue_length_integral_since_start(),
            &self.counters,
            uncounted_play,
            last,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_equal_and_limited_in_long_runs() {
        let (mut time_series, mut counters) = (TimeSeries::new(2, true), CounterTable::new(2, 1));
        for _ in 0..5000 {
            let end = time_series.slot_end();
            let recorded = time_series.before[RECORDED_CELLS.len()]
                + counters.class_cell(1, ClassCell::Delivered);
            counters.add_to_class(1, ClassCell::Delivered, end - recorded);
            if end % 7 == 0 {
                time_series.save_counters_before_reset(&counters);
                counters.reset_sums(end);
            }
            time_series.close_slot(end, 3 * end, &counters, &[0, end], false);
        }
        let last = time_series.next - 1;
        time_series.close_slot(last, 3 * last, &counters, &[0, last], true);
        let (width, rows) = (time_series.column_count(), time_series.rows());
        let rows: Vec<&[u64]> = rows.chunks(width).collect();
        assert!((258..=514).contains(&rows.len()), "{}", rows.len());
        let slot = rows[1][0];
        assert!(rows[..rows.len() - 1].windows(2).all(|pair| pair[1][0] - pair[0][0] == slot));
        assert!(rows.iter().all(|row| row[1] == 3 * row[0] && row[2] == 0));
        let delivered = LINK_COLUMNS + RECORDED_CELLS.len();
        assert!(rows[..rows.len() - 1].iter().all(|row| row[delivered] == row[0]));
        // What players have not counted yet is not added up.
        let played = width - 1;
        assert!(rows.iter().all(|row| row[played] == row[0]));
    }

    #[test]
    fn disabled_time_series_records_nothing() {
        let (mut time_series, counters) = (TimeSeries::new(2, false), CounterTable::new(2, 1));
        time_series.close_slot(1, 1, &counters, &[0, 0], false);
        time_series.save_counters_before_reset(&counters);
        time_series.close_slot(1, 1, &counters, &[0, 0], true);
        assert_eq!((time_series.slot_end(), time_series.rows()), (NEVER, vec![0, 0]));
    }
}
