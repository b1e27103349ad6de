//! Single transfers by size and number of losses.

use std::collections::BTreeMap;

use super::{ClassCell, LogHistogram, Probes, SourceRecord};
use crate::clock::Nanos;
use crate::merge::merge_fields;

/// Exact sums over transfers, independent of the order in which replications are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferSums {
    /// Number of transfers.
    pub transfers: u64,
    /// Sum of completion times in nanoseconds: first packet sent to last acknowledgement received.
    pub completion: u128,
    /// Sum of squared completion times.
    pub completion_squares: u128,
    /// Sum of delivery times: first packet sent to last packet delivered.
    pub delivery: u128,
    /// Sum of squared delivery times.
    pub delivery_squares: u128,
}

impl TransferSums {
    fn add_transfer(&mut self, completion: Nanos, delivery: Nanos) {
        let (completion, delivery) = (u128::from(completion), u128::from(delivery));
        self.transfers += 1;
        self.completion += completion;
        self.completion_squares += completion * completion;
        self.delivery += delivery;
        self.delivery_squares += delivery * delivery;
    }
}

merge_fields!(TransferSums {
    transfers,
    completion,
    completion_squares,
    delivery,
    delivery_squares
});

/// Transfers of one size interval.
#[derive(Clone, Debug, Default)]
pub struct SizeIntervalTransfers {
    /// Sums by number of losses, where a packet may be lost several times; at most one entry per
    /// transfer.
    pub by_losses: BTreeMap<u32, TransferSums>,
    /// Completion times in seconds.
    pub completions: LogHistogram,
    /// Delivery times of modern senders in seconds.
    pub deliveries: LogHistogram,
    /// Transfers with a handshake.
    pub opened: HandshakeSums,
}

/// Sums over transfers with a handshake. Their total time is SYN sent to last packet delivered.
#[derive(Clone, Debug, Default)]
pub struct HandshakeSums {
    /// Number of transfers.
    pub transfers: u64,
    /// Sum of total times in nanoseconds.
    pub total: u128,
    /// Sum of squared total times.
    pub total_squares: u128,
    /// Total times in seconds.
    pub totals: LogHistogram,
}

impl HandshakeSums {
    fn add_transfer(&mut self, total: Nanos) {
        self.transfers += 1;
        self.total += u128::from(total);
        self.total_squares += u128::from(total) * u128::from(total);
        self.totals.add_value(total as f64 * 1e-9);
    }
}

merge_fields!(HandshakeSums { transfers, total, total_squares, totals });

/// Transfers of all size intervals.
#[derive(Clone, Debug, Default)]
pub struct TransferCounters {
    /// One row per size interval, up to the last interval with a transfer.
    pub rows: Vec<SizeIntervalTransfers>,
}

impl TransferCounters {
    /// Counts a finished transfer of `size_interval` with `losses` losses.
    pub fn count_finished(
        &mut self,
        size_interval: usize,
        losses: u32,
        completion: Nanos,
        delivery: Nanos,
    ) {
        let size_interval = entry_or_extend(&mut self.rows, size_interval);
        size_interval.completions.add_value(completion as f64 * 1e-9);
        size_interval.by_losses.entry(losses).or_default().add_transfer(completion, delivery);
    }

    /// Counts the delivery time of a transfer of `size_interval`.
    pub fn count_delivery_time(&mut self, size_interval: usize, delivery: Nanos) {
        entry_or_extend(&mut self.rows, size_interval).deliveries.add_value(delivery as f64 * 1e-9);
    }

    /// Counts the total time of a transfer with a handshake.
    pub fn count_total_time(&mut self, size_interval: usize, total: Nanos) {
        entry_or_extend(&mut self.rows, size_interval).opened.add_transfer(total);
    }
}

merge_fields!(SizeIntervalTransfers { by_losses, completions, deliveries, opened });
merge_fields!(TransferCounters { rows });

impl Probes {
    /// Records the end of a handshake and the start of a file of `packets` packets.
    pub fn record_file_start(&mut self, now: Nanos, record: &mut SourceRecord, packets: u32) {
        self.record_transfer_start(now, record, packets);
        record.reset_transfer_losses();
    }

    /// Records the end of a single transfer: its last packet is acknowledged.
    pub fn record_single_transfer_end(&mut self, now: Nanos, record: &SourceRecord) {
        let (completion, delivery) = (now - record.started, record.delivered - record.started);
        self.counters.add_to_class(record.class(), ClassCell::DeliveryTime, delivery);
        self.transfers.count_finished(record.row as usize, record.losses, completion, delivery);
    }

    /// Records the delivery of a transfer before its end. `opened_at` is the start of the
    /// handshake, if the transfer had a handshake.
    pub fn record_transfer_delivery(&mut self, record: &SourceRecord, opened_at: Option<Nanos>) {
        let row = record.row as usize;
        self.transfers.count_delivery_time(row, record.delivered - record.started);
        if let Some(opened_at) = opened_at {
            let total = record.delivered - opened_at;
            self.counters.add_to_class(record.class(), ClassCell::TotalTime, total);
            self.transfers.count_total_time(row, total);
        }
    }
}

/// The entry at `index`; extends the list if necessary.
fn entry_or_extend<T: Clone + Default>(list: &mut Vec<T>, index: usize) -> &mut T {
    if index >= list.len() {
        list.resize(index + 1, T::default());
    }
    &mut list[index]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::Merge;

    #[test]
    fn merge_is_exact_and_independent_of_the_order() {
        let (mut one, mut other, mut both) =
            (TransferCounters::default(), TransferCounters::default(), TransferCounters::default());
        for (row, losses, time) in [(0, 0, 7_u64), (2, 1, 1 << 40), (2, 9000, 3)] {
            one.count_finished(row, losses, time, time / 2);
            both.count_finished(row, losses, time, time / 2);
        }
        for (row, losses, time) in [(2, 1, 5_u64), (3, 0, u64::MAX / 4)] {
            other.count_finished(row, losses, time, time - 1);
            both.count_finished(row, losses, time, time - 1);
        }
        let mut reversed = other.clone();
        reversed.merge(&one);
        one.merge(&other);
        let sums = |counters: &TransferCounters| {
            counters.rows.iter().map(|row| row.by_losses.clone()).collect::<Vec<_>>()
        };
        assert_eq!(sums(&one), sums(&both));
        assert_eq!(sums(&reversed), sums(&both));
        assert_eq!(both.rows[2].by_losses[&9000].transfers, 1);
        let twice = both.rows[2].by_losses[&1];
        assert_eq!((twice.transfers, twice.completion), (2, (1 << 40) + 5));
        assert_eq!(twice.completion_squares, (1 << 80) + 25);
        assert_eq!(one.rows[2].completions.quantile(0.5), both.rows[2].completions.quantile(0.5));
    }
}
