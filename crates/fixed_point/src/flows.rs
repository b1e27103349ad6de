//! The flows: a reference flow has the whole of TCP, over its own routers by the max-plus
//! recursion; a cross flow has what its scheme gives it.

use crate::own::LossFeedback;
use crate::recursion::{Left, Route, Router};
use std::collections::VecDeque;
use tcpcast_sim::clock::{NEVER, Nanos, transmission_time, transmitter};
use tcpcast_sim::probe::SourceRecord;
use tcpcast_sim::random::{Named, Purpose, Stream};
use tcpcast_sim::tcp::MaxPlus;
use tcpcast_sim::{ClassConfig, RunConfig};

/// What all flows of a class have in common.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// From the source to the shared router, or to its own hops before that.
    pub before: Route,
    /// How long that takes a packet that does not wait.
    pub up: Nanos,
    /// Propagation from the shared router to the next hop.
    pub forward: Nanos,
    /// From there, or from its own hops behind the shared router, to the destination.
    pub after: Route,
    /// From the destination back to the source, for acknowledgements.
    pub back: Nanos,
    /// Bytes of a data packet.
    pub packet_bytes: u32,
}

impl Path {
    pub(super) fn new(class: &ClassConfig, config: &RunConfig) -> Self {
        let data = |rate| transmission_time(config.packet_bytes, rate);
        let ack = |rate| transmission_time(config.ack_bytes, rate);
        let (ingress, egress) = (&class.ingress, &class.egress);
        let first = Router { service: data(ingress.rate_bps), delay: ingress.delay };
        let last = Router { service: data(egress.rate_bps), delay: egress.delay };
        let return_link = transmitter(config.bottleneck_bps, config.ack_bytes);
        let before = Route::new(vec![first]);
        Self {
            up: before.alone(),
            before,
            packet_bytes: config.packet_bytes,
            forward: class.forward,
            after: Route::new(vec![last]),
            back: ack(egress.rate_bps)
                + egress.delay
                + return_link.time_when_idle()
                + class.back
                + ingress.delay
                + ack(ingress.rate_bps)
                + config.time_back(&config.hops_before)
                + config.time_back(&config.hops_after),
        }
    }

    /// From the destination over the source to where `before` ends.
    pub(super) fn around(&self) -> Nanos {
        self.back + self.up
    }
}

/// A reference flow.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    pub record: SourceRecord,
    pub sender: MaxPlus,
    /// Whether it has a connection to go on with.
    pub connected: bool,
    pub size: u32,
    /// When the sender's timer is looked at, by the sender's time.
    pub timer: Nanos,
    pub heard: Nanos,
    pub sent: Nanos,
    pub left_before: Left,
    pub left_after: Left,
    /// Arrivals at the shared router to come.
    pub arriving: VecDeque<(Nanos, u32)>,
    /// Packets in the shared router, and when they came.
    pub inside: VecDeque<(Nanos, u32)>,
    /// When the last packet left the shared router.
    pub left_shared: Nanos,
    /// Acknowledgements to come.
    pub coming: VecDeque<(Nanos, u32)>,
    pub feedback: LossFeedback,
    /// The last arrival at the shared router, or the file start.
    pub gap_since: Nanos,
    pub off_times: Stream,
    pub sizes: Stream,
}

impl Reference {
    pub(super) fn new(class: u16, path: &Path, seed: u64, replication: u32, id: u32) -> Self {
        let stream = |purpose| Stream::named(seed, replication, id, purpose);
        Self {
            record: SourceRecord::new(class, path.packet_bytes, false),
            sender: MaxPlus::default(),
            connected: false,
            size: 0,
            timer: NEVER,
            heard: 0,
            sent: 0,
            left_before: path.before.unused(),
            left_after: path.after.unused(),
            arriving: VecDeque::new(),
            inside: VecDeque::new(),
            left_shared: 0,
            coming: VecDeque::new(),
            feedback: LossFeedback::default(),
            gap_since: 0,
            off_times: stream(Purpose::OffTime),
            sizes: stream(Purpose::Size),
        }
    }

    /// Takes a packet out of the shared router; says when it had come.
    pub(super) fn take(&mut self, number: u32) -> Option<Nanos> {
        // The first, unless it is one that had to go.
        let at = self.inside.iter().position(|(_, inside)| *inside == number)?;
        self.inside.remove(at).map(|(came, _)| came)
    }
}

/// A cross flow, which is made of distributions.
#[derive(Clone, Debug)]
pub(super) struct Cross {
    pub record: SourceRecord,
    pub window: crate::window::Window,
    pub connected: bool,
    pub on: bool,
    pub size: u32,
    /// Packets of the file that the shared router has taken.
    pub good: u32,
    /// Packets in the shared router.
    pub inside: u32,
    /// The next packet waits until no more than this are.
    pub bound: Option<u32>,
    /// Behind its own hops, packets that will arrive at the shared router.
    pub arriving: VecDeque<(Nanos, u32)>,
    pub left_after: Left,
    pub feedback: LossFeedback,
    /// Packets in the shared router that the recurrence has lost behind it.
    pub doomed: Vec<u32>,
    /// Its event is at this time; one at another is not valid any more.
    pub due: Nanos,
    pub heard: Nanos,
    pub sent: Nanos,
    pub off_times: Stream,
    pub sizes: Stream,
    pub draws: Stream,
}

impl Cross {
    pub(super) fn new(class: u16, path: &Path, seed: u64, replication: u32, id: u32) -> Self {
        let stream = |purpose| Stream::named(seed, replication, id, purpose);
        Self {
            record: SourceRecord::new(class, path.packet_bytes, false),
            window: crate::window::Window::default(),
            connected: false,
            on: false,
            size: 0,
            good: 0,
            inside: 0,
            bound: None,
            arriving: VecDeque::new(),
            left_after: path.after.unused(),
            feedback: LossFeedback::default(),
            doomed: Vec::new(),
            due: NEVER,
            heard: 0,
            sent: 0,
            off_times: stream(Purpose::OffTime),
            sizes: stream(Purpose::Size),
            draws: stream(Purpose::CrossFlow),
        }
    }
}
