//! Conversion of transfer times to Python.

use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcpcast_sim::probe::{LogHistogram, SizeIntervalTransfers, TransferCounters, TransferSums};

/// Size interval, number of losses, number of transfers, and the sums and sums of squares of
/// completion and delivery times.
type TransferSumsRow = (usize, u32, u64, (u128, u128), (u128, u128));

/// Adds the statistics of transfers to `dict`.
pub(crate) fn put_transfer_statistics(
    dict: &Bound<'_, PyDict>,
    counters: &TransferCounters,
) -> PyResult<()> {
    dict.set_item("transfers", transfer_sums(counters))?;
    let of_size =
        |row: &SizeIntervalTransfers| histogram_quantiles(&row.completions, [0.5, 0.95, 0.99]);
    dict.set_item("completion_percentiles", counters.rows.iter().map(of_size).collect::<Vec<_>>())?;
    dict.set_item("opened", opening_time_sums(counters))?;
    let tails = |histogram: &LogHistogram| histogram_quantiles(histogram, [0.5, 0.9, 0.95, 0.99]);
    let times = |row: &SizeIntervalTransfers| {
        (tails(&row.completions), tails(&row.deliveries), tails(&row.opened.totals))
    };
    dict.set_item("time_percentiles", counters.rows.iter().map(times).collect::<Vec<_>>())
}

/// Columns of a histogram: size interval, upper limit of the time in seconds, and number of
/// transfers in the bucket.
pub(crate) type TimeHistogramColumns<'py> =
    (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<u64>>);

/// Converts one histogram of times per size interval to columns.
pub(crate) fn time_histogram_columns<'py, 'h>(
    py: Python<'py>,
    histograms: impl Iterator<Item = &'h LogHistogram>,
) -> TimeHistogramColumns<'py> {
    let entries = histograms.enumerate().flat_map(|(row, times)| {
        times.filled_buckets().map(move |(time, count)| (row as u64, time, count))
    });
    let (mut rows, mut times, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for (row, time, count) in entries {
        rows.push(row);
        times.push(time);
        counts.push(count);
    }
    (rows.to_pyarray(py), times.to_pyarray(py), counts.to_pyarray(py))
}

/// Quantiles of a histogram; NaN if the histogram is empty.
pub(crate) fn histogram_quantiles<const N: usize>(
    histogram: &LogHistogram,
    at: [f64; N],
) -> [f64; N] {
    at.map(|q| histogram.quantile(q).unwrap_or(f64::NAN))
}

/// Sums per size interval and number of losses, without empty rows.
fn transfer_sums(counters: &TransferCounters) -> Vec<TransferSumsRow> {
    let of_row = |(row, sizes): (usize, &SizeIntervalTransfers)| {
        let entry = move |(losses, sums): (&u32, &TransferSums)| {
            let completion = (sums.completion, sums.completion_squares);
            (row, *losses, sums.transfers, completion, (sums.delivery, sums.delivery_squares))
        };
        sizes.by_losses.iter().map(entry).collect::<Vec<_>>()
    };
    counters.rows.iter().enumerate().flat_map(of_row).collect()
}

/// Number of transfers per size interval that opened their connections, and the sum and sum of
/// squares of their times.
fn opening_time_sums(counters: &TransferCounters) -> Vec<(u64, (u128, u128))> {
    let sums = counters.rows.iter().map(|row| &row.opened);
    sums.map(|opened| (opened.transfers, (opened.total, opened.total_squares))).collect()
}
