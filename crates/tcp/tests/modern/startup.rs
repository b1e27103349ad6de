//! Start-up of a single flow, compared with measurements of Linux over the same path
//! (`shared/kernel2`).

use std::fs;
use std::path::PathBuf;

use super::link::{Faults, Link};
use tcpcast_link::time::MILLISECOND;
use tcpcast_tcp::modern::{Preset, Stack};

/// Measured run: milliseconds since accept, window, bytes acknowledged.
type Series = Vec<(f64, u32, u64)>;

/// Measured runs of a cell; [`None`] if the measurements are not available.
fn measured(cell: &str) -> Option<Vec<Series>> {
    let name = format!("../../../shared/kernel2/F3_cwnd_series/F3_{cell}.csv");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
    let Ok(text) = fs::read_to_string(&path) else {
        eprintln!("skipped: {} not found", path.display());
        return None;
    };
    let mut runs: Vec<Series> = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let run: usize = cells[0].parse().unwrap();
        runs.resize(runs.len().max(run), Vec::new());
        let bytes = cells[7].parse().unwrap();
        runs[run - 1].push((cells[1].parse().unwrap(), cells[2].parse().unwrap(), bytes));
    }
    Some(runs.into_iter().filter(|run| !run.is_empty()).collect())
}

/// Simulated bytes acknowledged at the given times in milliseconds.
fn simulated(
    preset: Preset,
    rate_mbit: u64,
    rtt_ms: u64,
    buffer: usize,
    times: &[f64],
) -> Vec<u64> {
    // The link of the measurement adds 0.07 ms per direction.
    let delay = rtt_ms * MILLISECOND / 2 + MILLISECOND * 7 / 100;
    let mut link = Link::new(preset.stack(), Faults::default(), delay, Some(rate_mbit), 3);
    link.buffer = buffer;
    let start = link.now;
    link.write(1 << 40);
    let mut acked = vec![];
    for &ms in times {
        let until = start + (ms * 1e6) as u64;
        while link.next_at() <= until {
            link.step();
        }
        acked.push(link.sender.una() - 1);
    }
    acked
}

fn compare(cell: &str, preset: Preset, rate_mbit: u64, rtt_ms: u64, buffer: usize, within: f64) {
    let Some(runs) = measured(cell) else { return };
    // Up to the end of the shortest series.
    let ends = runs.iter().map(|run| run[run.len() - 1].0).fold(f64::INFINITY, f64::min);
    let times = (1..).map(|n| f64::from(n * 100)).take_while(|&ms| ms <= ends);
    let times: Vec<f64> = times.take(20).collect();
    let ours = simulated(preset, rate_mbit, rtt_ms, buffer, &times);
    let mut report =
        format!("{cell}: ms, bytes acknowledged, minimum and maximum of the measured runs\n");
    let mut worst: f64 = 0.0;
    for (&ms, &bytes) in times.iter().zip(&ours) {
        let at = |run: &Series| run.iter().rev().find(|(t, _, _)| *t <= ms).map_or(0, |row| row.2);
        let theirs: Vec<u64> = runs.iter().map(at).collect();
        let low = *theirs.iter().min().unwrap() as f64;
        let high = *theirs.iter().max().unwrap() as f64;
        report += &format!("{ms:6} {bytes:10} {low:10} {high:10}\n");
        // Values of the series are up to 5 ms old.
        let slack = 5e-3 * rate_mbit as f64 * 1e6 / 8.0;
        let error = (low - slack - bytes as f64).max(bytes as f64 - high - slack).max(0.0);
        worst = worst.max(error / high.max(1.0));
    }
    eprintln!("{report}");
    assert!(worst <= within, "{report}maximum relative error {worst:.3}");
}

#[test]
fn cubic_start_matches_linux() {
    compare("cubic_20M_60ms_B50", Preset::LinuxCubic, 20, 60, 50, 0.02);
    compare("cubic_20M_60ms_B200", Preset::LinuxCubic, 20, 60, 200, 0.02);
}

#[test]
fn reno_start_matches_linux() {
    compare("reno_100M_40ms_B333", Preset::LinuxReno, 100, 40, 333, 0.05);
    compare("reno_1000M_60ms_Binf", Preset::LinuxReno, 1000, 60, usize::MAX - 1, 0.02);
}

#[test]
fn bbr_start_matches_linux() {
    compare("bbr_20M_60ms_B50", Preset::LinuxBbr, 20, 60, 50, 0.08);
    compare("bbr_1000M_60ms_Binf", Preset::LinuxBbr, 1000, 60, usize::MAX - 1, 0.05);
}

/// Maximum number of outstanding packets in the first 8 s, relative to the maximum window.
fn max_outstanding(bounded_send_buffer: bool) -> f64 {
    let stack = Stack { bounded_send_buffer, ..Preset::LinuxRenoClassic.stack() };
    let mut link = Link::new(stack, Faults::default(), 30 * MILLISECOND, Some(20), 3);
    link.buffer = 100;
    let end = link.now + 8_000 * MILLISECOND;
    link.write(1 << 40);
    let (mut max_window, mut out) = (0, 0);
    while link.now < end {
        link.step();
        max_window = max_window.max(link.sender.cwnd());
        out = out.max(link.sender.flight().packets_out());
    }
    f64::from(out) / f64::from(max_window)
}

#[test]
fn send_buffer_limits_outstanding_packets_in_long_recovery() {
    // After the overflow in slow start, the sender retransmits one packet per round trip, and
    // duplicate acknowledgements clock out new packets.
    let bounded = max_outstanding(true);
    // Twice the window plus 64 KiB.
    assert!((2.05..=2.4).contains(&bounded), "{bounded}");
    assert!(max_outstanding(false) > 5.0);
}
