//! Times of single transfers as Python gets them.

use numpy::{PyArray1, ToPyArray};
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

/// Size intervals, times in seconds and how many took no longer, and longer than the time before.
pub(crate) type TimeColumns<'py> =
    (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<u64>>);

/// How many files took how long, by the histogram of each size interval.
pub(crate) fn time_counts<'py, 'h>(
    py: Python<'py>,
    histograms: impl Iterator<Item = &'h LogHistogram>,
) -> TimeColumns<'py> {
    let told = histograms.enumerate().flat_map(|(row, times)| {
        times.filled().map(move |(time, count)| (row as u64, time, count))
    });
    let (mut rows, mut times, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for (row, time, count) in told {
        rows.push(row);
        times.push(time);
        counts.push(count);
    }
    (rows.to_pyarray(py), times.to_pyarray(py), counts.to_pyarray(py))
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
