//! Compares the analysis of captures with counters of the kernel and with other tools.
//!
//! The captures are read from `TCPCAST_CAPTURES` or from `shared/captures` next to the project;
//! without them, the tests are skipped.

mod counted;
mod limits;
mod offload;
mod other_tools;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tcpcast_trace::{CaptureReader, ConnectionReport, Connections, DirectionReport};

/// Row of a table by column.
type Row = HashMap<String, String>;

fn captures() -> Option<PathBuf> {
    let given = std::env::var_os("TCPCAST_CAPTURES").map(PathBuf::from);
    let parents = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let result = given.filter(|path| path.is_dir()).or_else(|| {
        parents.map(|parent| parent.join("shared/captures")).find(|path| path.is_dir())
    });
    if result.is_none() {
        eprintln!(
            "skipped: no captures (TCPCAST_CAPTURES, or shared/captures next to the project)"
        );
    }
    result
}

fn reports(path: &Path) -> Vec<ConnectionReport> {
    let mut reader = CaptureReader::open(path).expect("a capture");
    let mut connections = Connections::default();
    while let Some(segment) = reader.next_segment() {
        connections.push_segment(segment);
    }
    let mut reports = connections.take_finished();
    reports.extend(connections.into_remaining_reports());
    reports.sort_by_key(|report| report.number);
    reports
}

/// Returns the data direction of a capture of one transfer.
fn transfer(path: &Path) -> (ConnectionReport, DirectionReport) {
    let all = reports(path);
    let busiest = all.iter().flat_map(|report| report.directions.iter().map(move |d| (report, d)));
    let (report, direction) = busiest.max_by_key(|(_, d)| d.counts.bytes).expect("a transfer");
    (report.clone(), direction.clone())
}

fn table(path: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(path).expect("a table");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let row = |line: &str| {
        names.iter().zip(line.split(',')).map(|(n, v)| (n.to_string(), v.to_string())).collect()
    };
    lines.map(row).collect()
}

/// Returns the number in a column; `None` if it is empty or not a number.
fn number(row: &Row, column: &str) -> Option<f64> {
    row[column].parse().ok()
}

fn within(value: f64, truth: f64, share: f64) -> bool {
    (value / truth - 1.0).abs() <= share
}
