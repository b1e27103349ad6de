//! A lone flow at start-up, beside what a real Linux did over the same path (`shared/kernel2`).

use std::fs;
use std::path::PathBuf;

use super::link::{Faults, Link};
use tcpcast_sim::tcp::modern::{Preset, Stack};

const MILLISECOND: u64 = 1_000_000;

/// What was measured of a run: milliseconds since accept, window, bytes acknowledged.
type Series = Vec<(f64, u32, u64)>;

/// The runs of a cell; [`None`] where the measurements are not there.
fn measured(cell: &str) -> Option<Vec<Series>> {
    let name = format!("../../../shared/kernel2/F3_cwnd_series/F3_{cell}.csv");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
    let Ok(text) = fs::read_to_string(&path) else {
        eprintln!("skipped: {} is not there", path.display());
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

/// Bytes acknowledged at each of the times, in milliseconds.
fn simulated(preset: Preset, rate_mbit: u64, rtt_ms: u64, buffer: usize, at: &[f64]) -> Vec<u64> {
    // The measuring link adds 0.07 ms each way.
    let delay = rtt_ms * MILLISECOND / 2 + MILLISECOND * 7 / 100;
    let mut link = Link::new(preset.stack(), Faults::default(), delay, Some(rate_mbit), 3);
    link.buffer = buffer;
    let start = link.now;
    link.write(1 << 40);
    let mut acked = vec![];
    for &ms in at {
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
    // As far as each of the series goes.
    let ends = runs.iter().map(|run| run[run.len() - 1].0).fold(f64::INFINITY, f64::min);
    let times = (1..).map(|n| f64::from(n * 100)).take_while(|&ms| ms <= ends);
    let times: Vec<f64> = times.take(20).collect();
    let ours = simulated(preset, rate_mbit, rtt_ms, buffer, &times);
    let mut report = format!("{cell}: ms, bytes acknowledged, those of the kernel's runs\n");
    let mut worst: f64 = 0.0;
    for (&ms, &bytes) in times.iter().zip(&ours) {
        let at = |run: &Series| run.iter().rev().find(|(t, _, _)| *t <= ms).map_or(0, |row| row.2);
        let theirs: Vec<u64> = runs.iter().map(at).collect();
        let low = *theirs.iter().min().unwrap() as f64;
        let high = *theirs.iter().max().unwrap() as f64;
        report += &format!("{ms:6} {bytes:10} {low:10} {high:10}\n");
        // An RTT sample of the series is up to 5 ms old.
        let slack = 5e-3 * rate_mbit as f64 * 1e6 / 8.0;
        let apart = (low - slack - bytes as f64).max(bytes as f64 - high - slack).max(0.0);
        worst = worst.max(apart / high.max(1.0));
    }
    eprintln!("{report}");
    assert!(worst <= within, "{report}off by {worst:.3}");
}

#[test]
fn cubic_starts_as_linux_does() {
    compare("cubic_20M_60ms_B50", Preset::LinuxCubic, 20, 60, 50, 0.02);
    compare("cubic_20M_60ms_B200", Preset::LinuxCubic, 20, 60, 200, 0.02);
}

#[test]
fn reno_starts_as_linux_does() {
    compare("reno_100M_40ms_B333", Preset::LinuxReno, 100, 40, 333, 0.05);
    compare("reno_1000M_60ms_Binf", Preset::LinuxReno, 1000, 60, usize::MAX - 1, 0.02);
}

#[test]
fn bbr_starts_as_linux_does() {
    compare("bbr_20M_60ms_B50", Preset::LinuxBbr, 20, 60, 50, 0.08);
    compare("bbr_1000M_60ms_Binf", Preset::LinuxBbr, 1000, 60, usize::MAX - 1, 0.05);
}

/// The most packets that were out in the first seconds, in multiples of the widest window.
fn most_out(bounded_send_buffer: bool) -> f64 {
    let stack = Stack { bounded_send_buffer, ..Preset::LinuxRenoClassic.stack() };
    let mut link = Link::new(stack, Faults::default(), 30 * MILLISECOND, Some(20), 3);
    link.buffer = 100;
    let end = link.now + 8_000 * MILLISECOND;
    link.write(1 << 40);
    let (mut widest, mut out) = (0, 0);
    while link.now < end {
        link.step();
        widest = widest.max(link.sender.cwnd());
        out = out.max(link.sender.flight().out());
    }
    f64::from(out) / f64::from(widest)
}

#[test]
fn the_send_buffer_bounds_a_long_recovery_as_in_linux() {
    // A packet is repaired in each round trip after slow start has overflowed the queue, and what the
    // receiver holds above the holes lets new ones out.
    let bounded = most_out(true);
    // Twice the window, and a buffer of 64 KiB more.
    assert!((2.05..=2.4).contains(&bounded), "{bounded}");
    assert!(most_out(false) > 5.0);
}
