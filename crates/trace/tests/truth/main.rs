//! What is found in captures, beside what the kernel itself counted and what other tools say.
//!
//! The captures are kept outside the project: they are looked for in `TCPCAST_CAPTURES`, or in `shared/captures`
//! beside it, and the tests are skipped where they are not.

mod counted;
mod limits;
mod offload;
mod other_tools;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tcpcast_trace::{ConnectionReport, Connections, DirectionReport, Reader};

/// A row of a table, by column.
type Row = HashMap<String, String>;

fn captures() -> Option<PathBuf> {
    let told = std::env::var_os("TCPCAST_CAPTURES").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found = told
        .filter(|path| path.is_dir())
        .or_else(|| beside.map(|parent| parent.join("shared/captures")).find(|path| path.is_dir()));
    if found.is_none() {
        eprintln!("skipped: no captures (TCPCAST_CAPTURES, or shared/captures beside the project)");
    }
    found
}

fn reports(path: &Path) -> Vec<ConnectionReport> {
    let mut reader = Reader::open(path).expect("a capture");
    let mut connections = Connections::default();
    while let Some(segment) = reader.next_segment() {
        connections.push(segment);
    }
    let mut reports = connections.finished();
    reports.extend(connections.finish());
    reports.sort_by_key(|report| report.number);
    reports
}

/// The direction that carries the data of a capture of one transfer.
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

/// The number in a column; `None` where it is empty or not a number.
fn number(row: &Row, column: &str) -> Option<f64> {
    row[column].parse().ok()
}

fn within(found: f64, truth: f64, share: f64) -> bool {
    (found / truth - 1.0).abs() <= share
}
