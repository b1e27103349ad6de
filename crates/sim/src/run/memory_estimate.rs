//! Estimate of the memory of a run before its setup.

use crate::config::RunConfig;
use crate::network::SimulatedSource;
use crate::probe::{CLASS_CELLS, LINK_CELLS, SIZE_CELLS, TimeSeries};
use std::mem::size_of;
use tcpcast_tcp::cc::{FractionalReno, Reno};
use tcpcast_tcp::modern::{FileClient, FileServer, OutstandingPacket};
use tcpcast_tcp::{AnySender, CwndUnit, InstantFeedbackSender, Sender};

/// Bytes per source in addition to [`SimulatedSource`]: its class, timers, and results.
const BYTES_PER_SOURCE: u64 = 80;

/// Bytes of both endpoints of a modern connection with a window of 64 packets.
const MODERN_ENDS_BYTES: usize =
    size_of::<FileServer>() + size_of::<FileClient>() + 64 * size_of::<OutstandingPacket>();

/// Bytes per replication in addition to sources and sums: histograms, counts by sequence number,
/// timing wheel.
const BYTES_PER_REPLICATION: u64 = 1_250_000;

/// Snapshots of the sums: the stored ones, and a copy for the caller.
const SNAPSHOTS: u64 = 2 * 128;

/// Approximate memory in bytes of `replications` replications of a run with all sources, without
/// packets, whose number is limited by the buffers.
#[must_use]
pub fn estimate_memory_bytes(config: &RunConfig, replications: u32) -> u64 {
    let sources: u64 = config.classes.iter().map(|class| u64::from(class.sources)).sum();
    let source = match config.tcp.window_unit {
        _ if config.has_modern_tcp() => size_of::<SimulatedSource<AnySender>>() + MODERN_ENDS_BYTES,
        _ if config.tcp.instant.is_some() => size_of::<SimulatedSource<InstantFeedbackSender>>(),
        CwndUnit::Packets => size_of::<SimulatedSource<Sender<Reno>>>(),
        CwndUnit::Bytes => size_of::<SimulatedSource<Sender<FractionalReno>>>(),
    };
    let rows = config.probes.size_bounds.len() + 1;
    let cells =
        LINK_CELLS.len() + config.classes.len() * CLASS_CELLS.len() + rows * SIZE_CELLS.len();
    let time_series =
        usize::from(config.probes.time_series) * TimeSeries::max_bytes(config.classes.len());
    let sums = SNAPSHOTS * (cells * size_of::<u64>()) as u64 + time_series as u64;
    let reported = config.probes.report_at.len() * size_of::<u32>();
    let per_source = (source + reported) as u64 + BYTES_PER_SOURCE;
    let each = sources * per_source + sums + BYTES_PER_REPLICATION;
    each.saturating_mul(u64::from(replications))
}
