//! Single transfers by their size and by how many of their packets were lost.

use super::{ClassCell, LogHistogram, Probes, SourceRecord};
use crate::clock::Nanos;

/// Transfers with more losses than this are counted together.
const MAX_LOSSES: usize = 4096;

/// Sums over transfers, exact, so that adding up replications in any order gives the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferSums {
    /// How many.
    pub transfers: u64,
    /// First packet sent to last acknowledgement received, in nanoseconds.
    pub completion: u128,
    /// Of its squares.
    pub completion_squares: u128,
    /// First packet sent to last packet delivered.
    pub delivery: u128,
    /// Of its squares.
    pub delivery_squares: u128,
}

impl TransferSums {
    fn add(&mut self, completion: Nanos, delivery: Nanos) {
        let (completion, delivery) = (u128::from(completion), u128::from(delivery));
        self.transfers += 1;
        self.completion += completion;
        self.completion_squares += completion * completion;
        self.delivery += delivery;
        self.delivery_squares += delivery * delivery;
    }

    fn merge(&mut self, other: &Self) {
        self.transfers += other.transfers;
        self.completion += other.completion;
        self.completion_squares += other.completion_squares;
        self.delivery += other.delivery;
        self.delivery_squares += other.delivery_squares;
    }
}

/// The transfers of one size interval.
#[derive(Clone, Debug, Default)]
pub struct TransferRow {
    /// By the number of their packets lost, each time that they were.
    pub by_losses: Vec<TransferSums>,
    /// Completion times in seconds.
    pub completions: LogHistogram,
    /// Delivery times in seconds, of senders that find losses as today's do.
    pub deliveries: LogHistogram,
    /// Those that opened their connections.
    pub opened: OpenedSums,
}

/// Sums over transfers that opened their connections: SYN sent to last packet delivered.
#[derive(Clone, Debug, Default)]
pub struct OpenedSums {
    /// How many.
    pub transfers: u64,
    /// Of their times, in nanoseconds.
    pub total: u128,
    /// Of the squares of these.
    pub total_squares: u128,
    /// Their times in seconds.
    pub totals: LogHistogram,
}

impl OpenedSums {
    fn add(&mut self, total: Nanos) {
        self.transfers += 1;
        self.total += u128::from(total);
        self.total_squares += u128::from(total) * u128::from(total);
        self.totals.add(total as f64 * 1e-9);
    }

    fn merge(&mut self, other: &Self) {
        self.transfers += other.transfers;
        self.total += other.total;
        self.total_squares += other.total_squares;
        self.totals.merge(&other.totals);
    }
}

/// The transfers of all size intervals.
#[derive(Clone, Debug, Default)]
pub struct TransferCounters {
    /// In the order of the intervals; the last ones are missing where no transfer was in them.
    pub rows: Vec<TransferRow>,
}

impl TransferCounters {
    /// A transfer of size interval `row` is over, `losses` of its packets having been lost.
    pub fn add(&mut self, row: usize, losses: usize, completion: Nanos, delivery: Nanos) {
        let row = at(&mut self.rows, row);
        row.completions.add(completion as f64 * 1e-9);
        at(&mut row.by_losses, losses.min(MAX_LOSSES)).add(completion, delivery);
    }

    /// The last packet of a transfer of size interval `row` was delivered so long after the first
    /// was sent.
    pub fn delivered(&mut self, row: usize, delivery: Nanos) {
        at(&mut self.rows, row).deliveries.add(delivery as f64 * 1e-9);
    }

    /// The same of a transfer that opened its connection, from the sending of SYN on.
    pub fn opened(&mut self, row: usize, total: Nanos) {
        at(&mut self.rows, row).opened.add(total);
    }

    /// Adds another replication's transfers.
    pub fn merge(&mut self, other: &Self) {
        for (place, theirs) in other.rows.iter().enumerate() {
            let mine = at(&mut self.rows, place);
            mine.completions.merge(&theirs.completions);
            mine.deliveries.merge(&theirs.deliveries);
            mine.opened.merge(&theirs.opened);
            for (losses, sums) in theirs.by_losses.iter().enumerate() {
                at(&mut mine.by_losses, losses).merge(sums);
            }
        }
    }
}

impl Probes {
    /// A handshake is over, and a file of so many packets begins.
    pub fn file_begins(&mut self, now: Nanos, record: &mut SourceRecord, packets: u32) {
        self.transfer_started(now, record, packets);
        record.reset_losses();
    }

    /// The last packet of a transfer that was watched is acknowledged.
    pub fn single_transfer_finished(&mut self, now: Nanos, record: &SourceRecord) {
        let (completion, delivery) = (now - record.started, record.delivered - record.started);
        self.counters.add(record.class(), ClassCell::DeliveryTime, delivery);
        self.transfers.add(record.row as usize, record.losses as usize, completion, delivery);
    }

    /// A transfer whose connection was opened at `opened_at`, if by it, is about to finish.
    pub fn opened_finished(&mut self, record: &SourceRecord, opened_at: Option<Nanos>) {
        let row = record.row as usize;
        self.transfers.delivered(row, record.delivered - record.started);
        if let Some(opened_at) = opened_at {
            let total = record.delivered - opened_at;
            self.counters.add(record.class(), ClassCell::TotalTime, total);
            self.transfers.opened(row, total);
        }
    }
}

/// The entry at `place`, which is made if there is none.
fn at<T: Clone + Default>(list: &mut Vec<T>, place: usize) -> &mut T {
    if place >= list.len() {
        list.resize(place + 1, T::default());
    }
    &mut list[place]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replications_add_up_whatever_they_hold() {
        let (mut one, mut other, mut both) =
            (TransferCounters::default(), TransferCounters::default(), TransferCounters::default());
        for (row, losses, time) in [(0, 0, 7_u64), (2, 1, 1 << 40), (2, 9000, 3)] {
            one.add(row, losses, time, time / 2);
            both.add(row, losses, time, time / 2);
        }
        for (row, losses, time) in [(2, 1, 5_u64), (3, 0, u64::MAX / 4)] {
            other.add(row, losses, time, time - 1);
            both.add(row, losses, time, time - 1);
        }
        let mut turned = other.clone();
        turned.merge(&one);
        one.merge(&other);
        let sums = |counters: &TransferCounters| {
            counters.rows.iter().map(|row| row.by_losses.clone()).collect::<Vec<_>>()
        };
        assert_eq!(sums(&one), sums(&both));
        assert_eq!(sums(&turned), sums(&both));
        assert_eq!(both.rows[2].by_losses[MAX_LOSSES].transfers, 1);
        let twice = both.rows[2].by_losses[1];
        assert_eq!((twice.transfers, twice.completion), (2, (1 << 40) + 5));
        assert_eq!(twice.completion_squares, (1 << 80) + 25);
        assert_eq!(one.rows[2].completions.quantile(0.5), both.rows[2].completions.quantile(0.5));
    }
}
