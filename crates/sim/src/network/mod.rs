//! The network, and a packet's path through it: a file a stage.
//!
//! ```text
//!            send.rs  access.rs     bottleneck.rs  hops/        delivery.rs
//!  sender* --ingress--> [bottleneck queue]* --propagation--> --egress--> receiver*
//!    ^                                                                      |
//!    +---ingress(ack)--- [return bottleneck]* <--propagation-- --egress(ack)+
//!                                  acks.rs
//! ```
//!
//! At the places marked * it is looked at (`taps.rs`). Other hops may lie before the bottleneck and
//! behind it (`hops/`).
//!
//! Only where packets of different sources meet does their order matter, so there is one event a
//! packet: its arrival at the bottleneck, or at the first place where they meet; and one more at
//! each further place. Everything between two such places concerns one source alone, and is
//! arithmetic. What an acknowledgement makes its sender send, and what a packet makes its receiver
//! answer, is worked out by lookahead, in the event in which it can next matter to other sources:
//!
//! ```text
//!     acknowledgement at the     acknowledgement             what is sent then
//!        return bottleneck        at its sender              at the bottleneck
//!  -------------|-----------------------|----------------------------|----------> virtual time
//!               |                       |<---- sender_lookahead ---->|
//!               |<-------------- return_lookahead ------------------>|
//!                                                          now: the event
//! ```
//!
//! The ends are told the time at which that would have happened, not `now`. Both spans are the
//! shortest of all classes. Whatever takes longer (a second packet of a burst, a class that is
//! farther away, an acknowledgement that had to wait) gets an event of its own.

pub(crate) mod access;
mod acks;
mod bottleneck;
mod delivery;
mod drops;
pub mod hops;
mod order;
pub(crate) mod path;
mod populations;
mod send;
mod sessions;
mod source;
mod taps;
mod timers;
pub(crate) mod transfers;

pub(crate) use order::{Next, Step};
pub(crate) use path::Path;
pub(crate) use populations::populations;
pub(crate) use source::Source;

use crate::clock::{Nanos, Transmitter};
use crate::event_queue::EventQueue;
use crate::jitter::Jitter;
use crate::loss::BottleneckLosses;
use crate::packet::Packet;
use crate::population::ScaledPopulation;
use crate::probe::Probes;
use crate::traffic::{Coupling, Traffic};
use access::Waiting;
use hops::HopChain;
use path::AccessLoss;
use transfers::Transfers;

/// Data packets over a whole run, the warm-up included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lifetime {
    pub sent: u64,
    pub received: u64,
    pub dropped: u64,
    /// The times at which packets left the queue less those at which they entered it, summed up
    /// modulo 2^64. What is still in it has not left: see [`Lifetime::waited`].
    pub sojourns: u64,
}

impl Lifetime {
    /// What packets have waited in the queue, up to `now` where they are still in it: `waiting` of
    /// them, and those whose departure is known, which leave later by `ahead` in all.
    pub(crate) fn waited(&self, now: Nanos, waiting: u64, ahead: Nanos) -> u64 {
        self.sojourns.wrapping_add(waiting.wrapping_mul(now)).wrapping_sub(ahead)
    }
}

/// The shared part of a run.
///
/// A method takes the source that it concerns and the path of the source's packets. Without
/// `HAS_HOPS` the bottleneck is the only place where packets meet.
pub(crate) struct Network<Q, const HAS_TAPS: bool, const HAS_HOPS: bool> {
    pub event_queue: EventQueue,
    pub now: Nanos,
    /// From a sender to where packets meet first, for the class that is nearest.
    pub sender_lookahead: Nanos,
    /// From the return bottleneck over the sender to there, likewise.
    pub return_lookahead: Nanos,
    /// What passes a tap is told at most so long after it has passed.
    pub latest: Nanos,
    /// What is due later than this is not to be done yet.
    pub limit: Nanos,
    /// Transfers after which the run stops.
    pub wanted: u64,
    pub ingress_waiting: Waiting,
    pub egress_waiting: Waiting,
    pub queue: Q,
    /// Packets that had to leave the queue, and when; their sources are still to be told.
    pub dropped_from_queue: Vec<(Nanos, Packet)>,
    /// What a source that is polled sends now; empty between two events.
    pub burst: Vec<Packet>,
    pub link: Transmitter,
    pub return_link: Transmitter,
    pub hop_chain: Box<HopChain>,
    pub loss: Option<BottleneckLosses>,
    /// Looked at where there are `HAS_HOPS`.
    pub jitter: Option<Jitter>,
    pub access_loss: AccessLoss,
    pub probes: Probes,
    pub capturing: bool,
    /// Whether anything is to be told of packets that pass.
    pub watched: bool,
    /// Whether the time is kept that each packet waits at the bottleneck.
    pub keeps_waits: bool,
    /// Whether the link's rate, or that of a hop, is not constant.
    pub varying_rates: bool,
    pub lifetime: Lifetime,
    pub traffic: Vec<Traffic>,
    /// Of each class that is a larger one at a scale; empty where none is.
    pub populations: Vec<Option<ScaledPopulation>>,
    pub coupling: Coupling,
    pub transfers: Vec<Transfers>,
}
