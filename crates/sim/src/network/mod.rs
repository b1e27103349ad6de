//! The network and the path of a packet through it: one file per stage.
//!
//! ```text
//!            send.rs  access.rs     bottleneck.rs  hops/        delivery.rs
//!  sender* --ingress--> [bottleneck queue]* --propagation--> --egress--> receiver*
//!    ^                                                                      |
//!    +---ingress(ack)--- [return bottleneck]* <--propagation-- --egress(ack)+
//!                                  acks.rs
//! ```
//!
//! Packets are captured at the places marked * (`taps.rs`). The path may have other hops before and
//! behind the bottleneck (`hops/`).
//!
//! The order of packets matters only at hops that several sources share. So a packet has one event
//! at the first shared hop (often the bottleneck) and one at each further shared hop. Everything
//! between shared hops concerns a single source and is computed directly. The responses of a sender
//! to an acknowledgement, and of a receiver to a packet, are computed with a lookahead, in the
//! event in which they can next affect other sources:
//!
//! ```text
//!     acknowledgement at the     acknowledgement              data sent then
//!        return bottleneck        at its sender              at the bottleneck
//!  -------------|-----------------------|----------------------------|----------> virtual time
//!               |                       |<---- sender_lookahead ---->|
//!               |<-------------- return_lookahead ------------------>|
//!                                                          now: the event
//! ```
//!
//! The TCP endpoints receive the time at which the packet arrives, not `now`. Both lookaheads are
//! the minima over all classes. Packets that take longer (the second packet of a burst, packets of
//! more distant classes, acknowledgements that waited) have a separate event.

pub(crate) mod access_links;
mod acks;
mod bottleneck;
mod delivery;
mod drops;
mod event_order;
pub mod hops;
pub(crate) mod path;
mod populations;
mod send;
mod sessions;
mod source;
mod taps;
mod timers;
pub(crate) mod transfers;

pub(crate) use event_order::{HopEvent, NextEvent};
pub(crate) use path::ClassPath;
pub(crate) use populations::create_populations;
pub(crate) use source::SimulatedSource;

use crate::clock::{Nanos, Transmitter};
use crate::event_queue::EventQueue;
use crate::jitter::LinkJitter;
use crate::loss::BottleneckLosses;
use crate::packet::Packet;
use crate::population::ScaledPopulation;
use crate::probe::Probes;
use crate::segments::SegmentsInFlight;
use crate::traffic::{SizeOffTimeCoupling, Traffic};
use access_links::WaitingPacketPool;
use hops::HopChain;
use path::AccessLoss;
use transfers::ClassTransfers;

/// Data packets over the whole run, warm-up included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunPacketTotals {
    pub sent: u64,
    pub received: u64,
    pub dropped: u64,
    /// Sum of departure times minus arrival times of the queue, modulo 2^64. Packets in the queue
    /// have no departure time yet: see [`RunPacketTotals::total_waiting_time`].
    pub sojourns: u64,
}

impl RunPacketTotals {
    /// Total time of packets in the queue up to `now`. `waiting` packets are still queued; packets
    /// with a known departure leave after `now` by `ahead` in total.
    pub(crate) fn total_waiting_time(&self, now: Nanos, waiting: u64, ahead: Nanos) -> u64 {
        self.sojourns.wrapping_add(waiting.wrapping_mul(now)).wrapping_sub(ahead)
    }
}

/// The shared part of a run.
///
/// Methods take the source that they concern and the path of its packets. Without `HAS_HOP` the
/// bottleneck is the only shared hop.
pub(crate) struct Network<Q, const HAS_TAPS: bool, const HAS_HOP: bool> {
    pub events: EventQueue,
    pub now: Nanos,
    /// Minimum time from a sender to the first shared hop.
    pub sender_lookahead: Nanos,
    /// Minimum time from the return bottleneck through the sender to the first shared hop.
    pub return_lookahead: Nanos,
    /// Maximum delay between the passage of a packet at a tap and its report.
    pub max_report_delay: Nanos,
    /// Events after this time are not processed yet.
    pub limit: Nanos,
    /// Number of transfers after which the run stops.
    pub wanted: u64,
    pub ingress_waiting: WaitingPacketPool,
    pub egress_waiting: WaitingPacketPool,
    pub queue: Q,
    /// Packets that the queue dropped after accepting them, with the time; their sources have not
    /// been notified yet.
    pub dropped_from_queue: Vec<(Nanos, Packet)>,
    /// Segments of polled sources in flight.
    pub segments: SegmentsInFlight,
    /// Packets that a polled source sends in the current event; empty between events.
    pub burst: Vec<Packet>,
    pub link: Transmitter,
    pub return_link: Transmitter,
    pub hops: Box<HopChain>,
    pub loss: Option<BottleneckLosses>,
    /// Used only with `HAS_HOP`.
    pub jitter: Option<LinkJitter>,
    pub access_loss: AccessLoss,
    pub probes: Probes,
    pub capturing: bool,
    /// Whether passing packets are reported.
    pub watched: bool,
    /// Whether waiting times at the bottleneck are recorded.
    pub records_waits: bool,
    /// Whether the rate of the bottleneck or of a hop varies.
    pub varying_rates: bool,
    pub totals: RunPacketTotals,
    pub traffic: Vec<Traffic>,
    /// Scaled population of each class; empty if no class has one.
    pub populations: Vec<Option<ScaledPopulation>>,
    pub coupling: SizeOffTimeCoupling,
    pub transfers: Vec<ClassTransfers>,
}
