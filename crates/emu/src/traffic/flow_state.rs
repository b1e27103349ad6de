//! State of a flow: its sockets, next file, and counters.

use super::connection::SenderStats;
use super::datagrams::{DatagramSocket, open_message_sink, set_codepoint};
use super::player::{Player, PlayerCounters};
use super::tcp_info::{NetstatCounters, TcpInfo};
use super::traffic_tally::FlowTally;
use super::{
    CLIENT, Exchange, FileToSend, FlowApp, FlowConfig, FlowKind, SENDER_PORT, SERVER,
    format_json_list,
};
use crate::network::EmulatedHost;
use nix::sys::socket::{setsockopt, sockopt};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::OwnedFd;
use std::time::Instant;
use tcpcast_link::time::Nanos;

/// The end of a TCP flow that sends data.
#[derive(Debug)]
pub(super) struct SenderEnd {
    pub listener: TcpListener,
    pub address: Ipv4Addr,
    /// Host of the receiver, which connects.
    pub receiver: usize,
    counter: NetstatCounters,
    /// Whether the kernel counts timeouts per connection.
    counts_timeouts: bool,
}

/// Requests of a client: kept by its first flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientState {
    /// Flows whose answer is missing.
    pub missing: usize,
    /// First packet of the requests.
    pub asked: Option<Nanos>,
    /// Last packet of the answers so far.
    pub answered: Nanos,
}

/// A flow; its connections are stored in the driver.
#[derive(Debug)]
pub(super) struct FlowState {
    pub config: FlowConfig,
    /// `None` for messages and pings.
    pub sender: Option<SenderEnd>,
    /// Sockets of messages and pings by end.
    pub datagrams: [Option<DatagramSocket>; 2],
    /// Keeps the sockets that receive messages.
    _sinks: Vec<OwnedFd>,
    pub player: Option<Player>,
    pub client: ClientState,
    /// The current request and its answer.
    pub exchange: Option<Exchange>,
    /// Open connections: index in the driver, by the receiver's port.
    pub open: HashMap<u16, usize>,
    /// Counters of ended connections.
    pub ended: SenderStats,
    /// Number of started files.
    pub started: u64,
    /// The next file and its scheduled start.
    pub next: Option<(FileToSend, Instant)>,
    pub stopped: bool,
}

impl FlowState {
    /// Opens the sockets of a flow in the namespaces of its hosts.
    pub(super) fn new(config: FlowConfig, hosts: &[EmulatedHost]) -> io::Result<Self> {
        let ends = config.hosts.map(|host| &hosts[host]);
        let (mut sender, mut datagrams, mut sinks) = (None, [None, None], Vec::new());
        match config.app.kind() {
            FlowKind::Tcp { sender: end } => {
                sender = Some(SenderEnd::new(ends[end], config.hosts[1 - end], &config)?);
            }
            kind => {
                let sends = match &config.app {
                    FlowApp::Messages(_, sends) => *sends,
                    _ => [false, true],
                };
                for end in [SERVER, CLIENT].into_iter().filter(|end| sends[*end]) {
                    let (to, dscp) = (ends[1 - end].address, config.dscp);
                    let pings = kind == FlowKind::Ping;
                    let opened = ends[end]
                        .namespace
                        .run_in_namespace(|| DatagramSocket::open(to, dscp, pings))?;
                    datagrams[end] = Some(opened);
                    if !pings {
                        let sink =
                            ends[1 - end].namespace.run_in_namespace(|| open_message_sink(to));
                        sinks.extend(sink?);
                    }
                }
            }
        }
        let player = match &config.app {
            FlowApp::Stream(stream) => Some(Player::new(*stream)),
            _ => None,
        };
        Ok(Self {
            config,
            sender,
            datagrams,
            _sinks: sinks,
            player,
            client: ClientState::default(),
            exchange: None,
            open: HashMap::new(),
            ended: SenderStats::default(),
            started: 0,
            next: None,
            stopped: false,
        })
    }

    /// Returns the flow's counters since the start in the order that the reader expects. `stats`:
    /// sums over all connections.
    pub(super) fn format_counters_row(
        &mut self,
        flow: &FlowTally,
        stats: SenderStats,
    ) -> io::Result<String> {
        let (recoveries, timeouts) = match &mut self.sender {
            Some(sender) => sender.read_recoveries_and_timeouts(stats)?,
            None => (0, 0),
        };
        let of_player = |player: &Player| player.counters;
        let PlayerCounters { startups, startup, stalls, stalled, played } =
            self.player.as_ref().map(of_player).unwrap_or_default();
        Ok(format_json_list([
            flow.arrived,
            flow.queue_drops,
            flow.random_drops,
            flow.passed,
            flow.waited,
            flow.marked,
            flow.sent,
            flow.dropped_elsewhere,
            stats.received,
            flow.rtt_sum,
            flow.rtt_samples,
            stats.retransmitted,
            recoveries,
            timeouts,
            stats.timeout_sequences,
            stats.busy_us,
            stats.limited_us,
            flow.messages,
            flow.received,
            flow.delay,
            flow.requests,
            flow.latency,
            startups,
            startup,
            stalls,
            stalled,
            played,
        ]))
    }
}

impl SenderEnd {
    /// Creates the listener in the sender's namespace with its congestion control.
    fn new(host: &EmulatedHost, receiver: usize, config: &FlowConfig) -> io::Result<Self> {
        let (address, dscp, control) = (host.address, config.dscp, &config.control);
        let (listener, counter) = host.namespace.run_in_namespace(|| {
            let listener = TcpListener::bind(SocketAddrV4::new(address, SENDER_PORT))?;
            let name = OsString::from(control);
            setsockopt(&listener, sockopt::TcpCongestion, &name).map_err(|error| {
                io::Error::other(format!("congestion control {control} is not available: {error}"))
            })?;
            set_codepoint(&listener, dscp)?;
            listener.set_nonblocking(true)?;
            Ok((listener, NetstatCounters::open_netstat()?))
        })?;
        let counts_timeouts = TcpInfo::read_from_socket(&listener)?.has_timeout_counters();
        Ok(Self { listener, address, receiver, counter, counts_timeouts })
    }

    fn read_recoveries_and_timeouts(&mut self, stats: SenderStats) -> io::Result<(u64, u64)> {
        let (recoveries, all) = self.counter.read_recoveries_and_timeouts()?;
        Ok((recoveries, if self.counts_timeouts { stats.timeouts } else { all }))
    }
}
