//! Estimate of the memory of a run before its setup.

use super::config::{LinkInstances, NetworkConfig};
use super::flow::Flow;
use crate::probe::{CLASS_CELLS, LINK_CELLS, SIZE_CELLS, TIME_HISTOGRAM_BYTES, TimeSeries};
use std::mem::size_of;
use tcpcast_net::{Link, LinkCounters};
use tcpcast_tcp::End;
use tcpcast_tcp::modern::OutstandingPacket;

/// Bytes of both ends of a connection with a window of 64 packets.
const ENDS_BYTES: u64 = (2 * size_of::<End>() + 64 * size_of::<OutstandingPacket>()) as u64;
/// Bytes per source in addition to its flow and ends: routes, timers, and results.
const BYTES_PER_SOURCE: u64 = 200;
/// Bytes of a link in addition to its counters: queue and transmitter.
const BYTES_PER_LINK: u64 = size_of::<Link<u32>>() as u64 + 600;
/// Bytes per replication in addition to sources, links and sums: histograms, timing wheels.
const BYTES_PER_REPLICATION: u64 = 1_500_000;
/// Snapshots of the sums: the stored ones, and a copy for the caller.
const SNAPSHOTS: u64 = 2 * 128;

/// Approximate memory in bytes of `replications` replications with all sources, without packets,
/// whose number is limited by the buffers.
#[must_use]
pub fn estimate_network_bytes(config: &NetworkConfig, replications: u32) -> u64 {
    let classes = config.classes.len() as u64;
    let sources: u64 =
        config.classes.iter().map(|class| u64::from(config.source_count(class))).sum();
    let instances: u64 = config
        .links
        .iter()
        .map(|link| match link.each {
            LinkInstances::All => 1,
            LinkInstances::Sender => sources,
            LinkInstances::Site(site) => u64::from(config.sites[site].count),
        })
        .sum();
    let cells = LINK_CELLS.len()
        + config.classes.len() * CLASS_CELLS.len()
        + (config.probes.size_bounds.len() + 1) * SIZE_CELLS.len()
        + config.sum_count();
    let time_series =
        usize::from(config.probes.time_series) * TimeSeries::max_bytes(config.classes.len());
    let per_source = size_of::<Flow>() as u64
        + ENDS_BYTES
        + BYTES_PER_SOURCE
        + (config.probes.report_at.len() * size_of::<u32>()) as u64;
    let histograms = (config.link_classes().len() * TIME_HISTOGRAM_BYTES) as u64;
    let per_link = BYTES_PER_LINK + classes * size_of::<LinkCounters>() as u64;
    let sums = SNAPSHOTS * (cells * size_of::<u64>()) as u64 + time_series as u64;
    let each =
        sources * per_source + instances * per_link + sums + histograms + BYTES_PER_REPLICATION;
    each.saturating_mul(u64::from(replications))
}
