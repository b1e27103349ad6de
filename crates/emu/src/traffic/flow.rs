//! A flow at work: where it listens, what it sends next, and what was counted of it.

use super::connection::Told;
use super::tally::FlowTally;
use super::tcp_info::{NetStat, TcpInfo};
use super::{File, FlowConfig, SERVICE, list, near};
use crate::network::Host;
use nix::sys::socket::{setsockopt, sockopt};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::net::{SocketAddrV4, TcpListener};
use std::time::Instant;

/// A flow, whose connections the driver has.
#[derive(Debug)]
pub(super) struct Flow {
    pub config: FlowConfig,
    pub listener: TcpListener,
    counter: NetStat,
    /// Whether the kernel tells the timeouts of each connection, those of SYN-ACK apart.
    counts_timeouts: bool,
    /// Its open connections: the driver's number, by the receiver's port.
    pub open: HashMap<u16, usize>,
    /// What those told that are over.
    pub ended: Told,
    /// How many files have begun.
    pub begun: u64,
    /// The file that comes next, and when it was to begin.
    pub next: Option<(File, Instant)>,
}

impl Flow {
    /// Listens where a flow comes from, with its congestion control.
    pub(super) fn new(number: usize, config: FlowConfig, host: &Host) -> io::Result<Self> {
        let (listener, counter) = host.namespace.within(|| {
            let listener = TcpListener::bind(SocketAddrV4::new(near(number), SERVICE))?;
            let control = OsString::from(&config.control);
            setsockopt(&listener, sockopt::TcpCongestion, &control).map_err(|fault| {
                let control = &config.control;
                io::Error::other(format!("the congestion control {control} is refused: {fault}"))
            })?;
            listener.set_nonblocking(true)?;
            Ok((listener, NetStat::here()?))
        })?;
        let counts_timeouts = TcpInfo::of(&listener)?.counts_timeouts();
        let (open, ended) = (HashMap::new(), Told::default());
        Ok(Self { config, listener, counter, counts_timeouts, open, ended, begun: 0, next: None })
    }

    /// One flow's numbers since the beginning, in the order that whoever reads them knows; `told`
    /// by all its connections.
    pub(super) fn row(&mut self, flow: &FlowTally, told: Told) -> io::Result<String> {
        let (recoveries, all) = self.counter.read()?;
        let timeouts = if self.counts_timeouts { told.timeouts } else { all };
        Ok(list([
            flow.arrived,
            flow.queue_drops,
            flow.random_drops,
            flow.passed,
            flow.waited,
            flow.marked,
            told.received,
            told.rtt_sum_ns,
            told.rtt_samples,
            told.retransmitted,
            recoveries,
            timeouts,
            told.timeout_sequences,
            told.busy_us,
            told.limited_us,
        ]))
    }
}
