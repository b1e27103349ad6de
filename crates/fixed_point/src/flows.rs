//! State of flows: reference flows with full TCP over the max-plus recursion, and cross flows.

use crate::config::{ClassConfig, RoadConfig};
use crate::per_source_hops::PendingLossFeedback;
use crate::router_series::{LastDepartures, RouterSeries, SingleFlowRouter};
use std::collections::VecDeque;
use tcpcast_sim::clock::{NEVER, Nanos, transmission_time};
use tcpcast_sim::probe::SourceRecord;
use tcpcast_sim::random::{NamedStream, RandomStream, StreamPurpose};
use tcpcast_tcp::{InstantFeedbackSender, InstantLossRules, TcpConfig};

/// Path of all flows of a class.
#[derive(Clone, Debug)]
pub(super) struct ClassPath {
    /// From the source to the shared router, or to the first per-source hop.
    pub before: RouterSeries,
    /// Delay of `before` without queueing.
    pub up_delay: Nanos,
    /// Propagation from the shared router to the next hop.
    pub forward: Nanos,
    /// From the shared router, or from the last per-source hop, to the destination.
    pub after: RouterSeries,
    /// Delay of ACKs from the destination to the source.
    pub back: Nanos,
    /// Bytes of a data packet.
    pub packet_bytes: u32,
    pub tcp: TcpConfig,
    pub rules: InstantLossRules,
}

impl ClassPath {
    pub(super) fn new(class: &ClassConfig, config: &RoadConfig) -> Self {
        let data = |rate| transmission_time(config.packet_bytes, rate);
        let (ingress, egress) = (&class.ingress, &class.egress);
        let first = SingleFlowRouter { service: data(ingress.rate_bps), delay: ingress.delay };
        let last = SingleFlowRouter { service: data(egress.rate_bps), delay: egress.delay };
        let before = RouterSeries::new(vec![first]);
        let tcp = class.tcp.clone();
        Self {
            up_delay: before.unloaded_delay(),
            before,
            packet_bytes: config.packet_bytes,
            rules: tcp.instant.unwrap_or(InstantLossRules::SIMPLEST),
            tcp,
            forward: class.forward,
            after: RouterSeries::new(vec![last]),
            back: egress.unloaded_time(config.ack_bytes)
                + transmission_time(config.ack_bytes, config.router_bps)
                + class.back
                + ingress.unloaded_time(config.ack_bytes)
                + config.unloaded_ack_time(),
        }
    }

    /// Delay from the destination over the source to the end of `before`.
    pub(super) fn ack_path_delay(&self) -> Nanos {
        self.back + self.up_delay
    }
}

/// A reference flow.
#[derive(Clone, Debug)]
pub(super) struct ReferenceFlow {
    pub record: SourceRecord,
    pub sender: InstantFeedbackSender,
    /// Whether the next file can reuse the connection.
    pub connected: bool,
    pub size: u32,
    /// Time of the scheduled timer event, at the sender.
    pub timer: Nanos,
    pub last_ack: Nanos,
    pub sent: Nanos,
    pub left_before: LastDepartures,
    pub left_after: LastDepartures,
    /// Future arrivals at the shared router: times and packet numbers.
    pub arriving: VecDeque<(Nanos, u32)>,
    /// Packets in the shared router: arrival times and numbers.
    pub inside: VecDeque<(Nanos, u32)>,
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
    pub(super) fn new(class: u16, path: &ClassPath, seed: u64, replication: u32, id: u32) -> Self {
        let stream = |purpose| RandomStream::for_entity(seed, replication, id, purpose);
        Self {
            record: SourceRecord::new(class, path.packet_bytes, false),
            sender: InstantFeedbackSender::default(),
            connected: false,
            size: 0,
            timer: NEVER,
            last_ack: 0,
            sent: 0,
            left_before: path.before.initial_departures(),
            left_after: path.after.initial_departures(),
            arriving: VecDeque::new(),
            inside: VecDeque::new(),
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
    /// Future arrivals at the shared router after per-source hops: times and packet numbers.
    pub arriving: VecDeque<(Nanos, u32)>,
    pub left_after: LastDepartures,
    pub feedback: PendingLossFeedback,
    /// Packets in the shared router that will be lost behind it.
    pub lost_downstream: Vec<u32>,
    /// Time of the scheduled event; events at other times are obsolete.
    pub due: Nanos,
    pub last_ack: Nanos,
    pub sent: Nanos,
    pub off_times: RandomStream,
    pub sizes: RandomStream,
    pub draws: RandomStream,
}

impl CrossFlow {
    pub(super) fn new(class: u16, path: &ClassPath, seed: u64, replication: u32, id: u32) -> Self {
        let stream = |purpose| RandomStream::for_entity(seed, replication, id, purpose);
        Self {
            record: SourceRecord::new(class, path.packet_bytes, false),
            window: crate::cross_window::CrossFlowWindow::default(),
            connected: false,
            on: false,
            size: 0,
            accepted: 0,
            inside: 0,
            bound: None,
            clock: 0,
            arriving: VecDeque::new(),
            left_after: path.after.initial_departures(),
            feedback: PendingLossFeedback::default(),
            lost_downstream: Vec::new(),
            due: NEVER,
            last_ack: 0,
            sent: 0,
            off_times: stream(StreamPurpose::OffTime),
            sizes: stream(StreamPurpose::Size),
            draws: stream(StreamPurpose::CrossFlow),
        }
    }
}
