//! Limit of the number of rows for captures with many connections: the directions with the most
//! data have rows, and all other directions are summed.

use std::cmp::Reverse;

use super::{CaptureResult, DirectionRow};

/// Maximum number of rows.
const MAX_ROWS: usize = 1 << 16;
/// Number of additional rows before the rows with the least data are removed.
const SPARE_ROWS: usize = MAX_ROWS / 4;

impl CaptureResult {
    /// Adds a row. If there are too many rows, removes the rows with the least data.
    pub(super) fn add_row_within_limit(&mut self, row: DirectionRow) {
        self.rows.push(row);
        if self.rows.len() > MAX_ROWS + SPARE_ROWS {
            self.drop_rows_with_least_data();
        }
    }

    /// Enforces the limit and sorts the rows.
    pub(super) fn limit_and_sort_rows(&mut self) {
        self.drop_rows_with_least_data();
        self.rows.sort_unstable_by_key(|row| (row.number, row.index));
    }

    fn drop_rows_with_least_data(&mut self) {
        if self.rows.len() <= MAX_ROWS {
            return;
        }
        // Among rows with equal numbers of bytes, the first connections are kept.
        let order =
            |row: &DirectionRow| (Reverse(row.direction.counts.bytes), row.number, row.index);
        self.rows.sort_unstable_by_key(order);
        for row in self.rows.drain(MAX_ROWS..) {
            let direction = &row.direction;
            let events = direction.loss_times.len() + direction.retransmitted.len();
            self.events -= events;
            self.omitted += events as u64;
            self.rounds -= direction.rounds.len();
            self.omitted_rounds += direction.rounds.len() as u64;
            self.points -= direction.sequence_plot.len();
            self.unlisted.add_unlisted_direction(direction);
        }
    }
}
