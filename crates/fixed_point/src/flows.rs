//! State of flows: reference flows with full TCP, and cross flows.

use crate::network::ClassRoute;
use std::collections::VecDeque;
use tcpcast_net::RouteId;
use tcpcast_sim::clock::{NEVER, Nanos};
use tcpcast_sim::flows::{FlowClassConfig, FlowTcp, NetworkConfig};
use tcpcast_sim::probe::SourceRecord;
use tcpcast_sim::random::{NamedStream, RandomStream, StreamPurpose};
use tcpcast_tcp::{InstantFeedbackSender, InstantLossRules, TcpConfig};

/// Properties of all flows of a class.
#[derive(Clone, Debug)]
pub(super) struct ClassPath {
    pub route: ClassRoute,
    /// Delay of ACKs from the destination to the source.
    pub back: Nanos,
    /// Bytes of a data packet.
    pub packet_bytes: u32,
    pub tcp: TcpConfig,
    pub rules: InstantLossRules,
}

impl ClassPath {
    pub(super) fn new(class: &FlowClassConfig, config: &NetworkConfig) -> Self {
        let tcp = match &class.tcp {
            Some(FlowTcp::Packets(rules)) => rules.clone(),
            Some(FlowTcp::Modern(_)) | None => TcpConfig::default(),
        };
        Self {
            route: ClassRoute::new(class, config),
            back: class.back_delay,
            packet_bytes: class.packet_bytes,
            rules: tcp.instant.unwrap_or(InstantLossRules::SIMPLEST),
            tcp,
        }
    }

    /// Delay from the destination over the source to the end of the first links.
    pub(super) fn ack_path_delay(&self) -> Nanos {
        self.back + self.route.up_delay
    }
}

/// A reference flow.
#[derive(Clone, Debug)]
pub(super) struct ReferenceFlow {
    pub record: SourceRecord,
    pub sender: InstantFeedbackSender,
    pub route: RouteId,
    /// Whether the next file can reuse the connection.
    pub connected: bool,
    pub size: u32,
    /// Time of the scheduled timer event.
    pub timer: Nanos,
    pub last_ack: Nanos,
    pub sent: Nanos,
    /// Packets in the shared router: arrival times and numbers.
    pub inside: VecDeque<(Nanos, u32)>,
    /// Packets in transmission at the shared router, and those whose departure is known otherwise.
    pub departures: VecDeque<u32>,
    /// Time at which the last packet left the shared router.
    pub left_shared: Nanos,
    /// Future ACKs: times and packet numbers.
    pub acks: VecDeque<(Nanos, u32)>,
    pub feedback: PendingLossFeedback,
    /// Last arrival at the shared router, or the file start.
    pub gap_since: Nanos,
    pub off_times: RandomStream,
    pub sizes: RandomStream,
}

impl ReferenceFlow {
    pub(super) fn new(
        (class, path): (u16, &ClassPath),
        route: RouteId,
        stream: impl Fn(StreamPurpose) -> RandomStream,
    ) -> Self {
        Self {
            record: SourceRecord::new(class, path.packet_bytes, false),
            sender: InstantFeedbackSender::default(),
            route,
            connected: false,
            size: 0,
            timer: NEVER,
            last_ack: 0,
            sent: 0,
            inside: VecDeque::new(),
            departures: VecDeque::new(),
            left_shared: 0,
            acks: VecDeque::new(),
            feedback: PendingLossFeedback::default(),
            gap_since: 0,
            off_times: stream(StreamPurpose::OffTime),
            sizes: stream(StreamPurpose::Size),
        }
    }

    /// Removes a packet from the shared router, and returns its arrival time.
    pub(super) fn remove_from_router(&mut self, number: u32) -> Option<Nanos> {
        // Usually the first packet, unless the packet was evicted.
        let index = self.inside.iter().position(|(_, inside)| *inside == number)?;
        self.inside.remove(index).map(|(arrived, _)| arrived)
    }
}

/// A cross flow, which is drawn from distributions.
#[derive(Clone, Debug)]
pub(super) struct CrossFlow {
    pub record: SourceRecord,
    /// Routes up to and behind the router.
    pub routes: [RouteId; 2],
    pub window: crate::cross_window::CrossFlowWindow,
    pub connected: bool,
    pub on: bool,
    pub size: u32,
    /// Packets of the file that the shared router has accepted.
    pub accepted: u32,
    /// Packets in the shared router.
    pub inside: u32,
    /// The next packet waits until `inside` is at most this bound.
    pub bound: Option<u32>,
    /// Time at which the last packet was due without delays, or the file start.
    pub clock: Nanos,
    /// Packets in the shared router that have not left it by the recursion, which leave it at these
    /// times, and packets behind it by the recursion.
    pub leaving: VecDeque<(Nanos, u32)>,
    pub behind: VecDeque<u32>,
    /// Time of the next event of `leaving`; events at other times are obsolete.
    pub leaving_due: Nanos,
    pub feedback: PendingLossFeedback,
    /// Time of the scheduled event; events at other times are obsolete.
    pub due: Nanos,
    pub last_ack: Nanos,
    pub sent: Nanos,
    pub off_times: RandomStream,
    pub sizes: RandomStream,
    pub draws: RandomStream,
}

impl CrossFlow {
    pub(super) fn new(
        (class, path): (u16, &ClassPath),
        routes: [RouteId; 2],
        stream: impl Fn(StreamPurpose) -> RandomStream,
    ) -> Self {
        Self {
            record: SourceRecord::new(class, path.packet_bytes, false),
            routes,
            window: crate::cross_window::CrossFlowWindow::default(),
            connected: false,
            on: false,
            size: 0,
            accepted: 0,
            inside: 0,
            bound: None,
            clock: 0,
            leaving: VecDeque::new(),
            behind: VecDeque::new(),
            leaving_due: NEVER,
            feedback: PendingLossFeedback::default(),
            due: NEVER,
            last_ack: 0,
            sent: 0,
            off_times: stream(StreamPurpose::OffTime),
            sizes: stream(StreamPurpose::Size),
            draws: stream(StreamPurpose::CrossFlow),
        }
    }
}

/// Random stream of a flow.
pub(super) fn stream_of_flow(
    seed: u64,
    replication: u32,
    flow: u32,
) -> impl Fn(StreamPurpose) -> RandomStream {
    move |purpose| RandomStream::for_entity(seed, replication, flow, purpose)
}

/// Future loss feedback: times and packet numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingLossFeedback(Vec<(Nanos, u32)>);

impl PendingLossFeedback {
    pub(super) fn add_feedback(&mut self, at: Nanos, number: u32) {
        self.0.push((at, number));
    }

    /// Removes the first entry that is due.
    pub(super) fn take_due(&mut self, now: Nanos) -> Option<u32> {
        let index = self.0.iter().position(|(due, _)| *due <= now)?;
        Some(self.0.remove(index).1)
    }
}
