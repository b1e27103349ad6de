//! Times of single transfers as Python gets them.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcpcast_sim::probe::{LogHistogram, TransferCounters, TransferRow, TransferSums};

/// Size interval, losses, transfers, and the sums and sums of squares of completion and delivery
/// times.
type Row = (usize, usize, u64, (u128, u128), (u128, u128));

/// Puts what is known of transfers into `dict`.
pub(crate) fn put(dict: &Bound<'_, PyDict>, counters: &TransferCounters) -> PyResult<()> {
    dict.set_item("transfers", sums(counters))?;
    let of_size = |row: &TransferRow| quantiles(&row.completions, [0.5, 0.95, 0.99]);
    dict.set_item("completion_percentiles", counters.rows.iter().map(of_size).collect::<Vec<_>>())?;
    dict.set_item("opened", opened_sums(counters))?;
    let tails = |histogram: &LogHistogram| quantiles(histogram, [0.5, 0.9, 0.95, 0.99]);
    let times = |row: &TransferRow| {
        (tails(&row.completions), tails(&row.deliveries), tails(&row.opened.totals))
    };
    dict.set_item("time_percentiles", counters.rows.iter().map(times).collect::<Vec<_>>())
}

/// Quantiles of a histogram, nan where it is empty.
pub(crate) fn quantiles<const N: usize>(histogram: &LogHistogram, at: [f64; N]) -> [f64; N] {
    at.map(|q| histogram.quantile(q).unwrap_or(f64::NAN))
}

/// Rows without a transfer are left out.
fn sums(counters: &TransferCounters) -> Vec<Row> {
    let of_row = |(row, sizes): (usize, &TransferRow)| {
        let sums = sizes.by_losses.iter().enumerate().filter(|(_, sums)| sums.transfers > 0);
        let told = move |(losses, sums): (usize, &TransferSums)| {
            let completion = (sums.completion, sums.completion_squares);
            (row, losses, sums.transfers, completion, (sums.delivery, sums.delivery_squares))
        };
        sums.map(told).collect::<Vec<_>>()
    };
    counters.rows.iter().enumerate().flat_map(of_row).collect()
}

/// Of each size interval, the transfers that opened their connections, and the sum and the sum of
/// squares of their times.
fn opened_sums(counters: &TransferCounters) -> Vec<(u64, (u128, u128))> {
    let sums = counters.rows.iter().map(|row| &row.opened);
    sums.map(|opened| (opened.transfers, (opened.total, opened.total_squares))).collect()
}
