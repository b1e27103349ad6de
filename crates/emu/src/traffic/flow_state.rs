//! State of a flow: its listener, next file, and counters.

use super::connection::SenderStats;
use super::tcp_info::{NetstatCounters, TcpInfo};
use super::traffic_tally::FlowTally;
use super::{FileToSend, FlowConfig, SENDER_PORT, format_json_list, near_address_of_flow};
use crate::network::EmulatedHost;
use nix::sys::socket::{setsockopt, sockopt};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::net::{SocketAddrV4, TcpListener};
use std::time::Instant;

/// A flow; its connections are stored in the driver.
#[derive(Debug)]
pub(super) struct FlowState {
    pub config: FlowConfig,
    pub listener: TcpListener,
    counter: NetstatCounters,
    /// Whether the kernel counts timeouts per connection.
    counts_timeouts: bool,
    /// Open connections: index in the driver, by the receiver's port.
    pub open: HashMap<u16, usize>,
    /// Counters of ended connections.
    pub ended: SenderStats,
    /// Number of started files.
    pub started: u64,
    /// The next file and its scheduled start.
    pub next: Option<(FileToSend, Instant)>,
}

impl FlowState {
    /// Creates the listener in the flow's namespace with its congestion control.
    pub(super) fn new(number: usize, config: FlowConfig, host: &EmulatedHost) -> io::Result<Self> {
        let (listener, counter) = host.namespace.run_in_namespace(|| {
            let listener =
                TcpListener::bind(SocketAddrV4::new(near_address_of_flow(number), SENDER_PORT))?;
            let control = OsString::from(&config.control);
            setsockopt(&listener, sockopt::TcpCongestion, &control).map_err(|error| {
                let control = &config.control;
                io::Error::other(format!("congestion control {control} is not available: {error}"))
            })?;
            listener.set_nonblocking(true)?;
            Ok((listener, NetstatCounters::open_netstat()?))
        })?;
        let counts_timeouts = TcpInfo::read_from_socket(&listener)?.has_timeout_counters();
        let (open, ended) = (HashMap::new(), SenderStats::default());
        Ok(Self { config, listener, counter, counts_timeouts, open, ended, started: 0, next: None })
    }

    /// Returns the flow's counters since the start in the order that the reader expects. `stats`:
    /// sums over all connections.
    pub(super) fn format_counters_row(
        &mut self,
        flow: &FlowTally,
        stats: SenderStats,
    ) -> io::Result<String> {
        let (recoveries, all) = self.counter.read_recoveries_and_timeouts()?;
        let timeouts = if self.counts_timeouts { stats.timeouts } else { all };
        Ok(format_json_list([
            flow.arrived,
            flow.queue_drops,
            flow.random_drops,
            flow.passed,
            flow.waited,
            flow.marked,
            stats.received,
            stats.rtt_sum_ns,
            stats.rtt_samples,
            stats.retransmitted,
            recoveries,
            timeouts,
            stats.timeout_sequences,
            stats.busy_us,
            stats.limited_us,
        ]))
    }
}
