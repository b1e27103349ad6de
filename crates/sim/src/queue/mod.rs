//! Queue disciplines: who waits, who is dropped, and when the others leave.

mod any;
mod fair;
mod fifo;
mod managed;
mod published;
mod shaping;

pub use any::AnyQueue;
pub use fair::{Buffers, DropPolicy, Fair, FairConfig, Ties};
pub use fifo::{DropTail, Red};
pub use managed::{Managed, ManagedConfig};
/// The disciplines of the crate `link`, and their parameters.
pub use tcpcast_link::queue as disciplines;
pub use tcpcast_link::queue::RedConfig;

pub use published::{CrossEvent, RateCounters};
pub use shaping::{Carried, LinkRate, Policed, PolicedConfig};
/// Token buckets and traces of packet opportunities.
pub use tcpcast_link::transmit::{OpportunityTrace, TokenRate};

use crate::clock::{NEVER, Nanos, Transmitter};
use crate::packet::Packet;
use serde::Deserialize;

/// The outcome of an enqueue for the packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It will have left the link at that time.
    Departs {
        /// When its last bit is gone.
        leaves: Nanos,
        /// Packets that it found before it, the one in transmission included.
        found: usize,
    },
    /// It waits until [`QueueDiscipline::serve`] takes it.
    Held {
        /// Packets that it found before it, the one in transmission included.
        found: usize,
        /// The packet that had to go to make room.
        evicted: Option<Packet>,
    },
    /// There was no room, or the discipline dropped it early.
    Dropped,
}

/// Hears how full the queue is.
pub trait QueueProbe {
    /// The queue held `packets`, the one in transmission included, until `until`.
    fn queue_held(&mut self, packets: usize, until: Nanos);
    /// A packet arrived and found `packets` before it.
    fn queue_seen(&mut self, packets: usize);
    /// A packet arrived and moved the average, which the discipline decides by, to `packets`.
    fn queue_averaged(&mut self, _packets: f64) {}
    /// The packet that was just told of is dropped although there is room.
    fn dropped_early(&mut self) {}
    /// What happened to a packet of a stream of others.
    fn cross(&mut self, _stream: usize, _event: CrossEvent) {}
    /// The rates of bins that a stream of others has begun.
    fn cross_rates(&mut self, _stream: usize, _rates: &RateCounters) {}
}

/// Which discipline, with its parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueConfig {
    /// First in, first out; what finds the buffer full is dropped.
    DropTail,
    /// Random early detection that drops; one that marks is among the managed ones.
    Red(RedConfig),
    /// Fair queueing.
    Fair(FairConfig),
    /// A discipline that may drop or mark what it holds, or whose link has no constant rate.
    Managed(ManagedConfig),
    /// No queue: a policer.
    Policed(PolicedConfig),
}

impl QueueConfig {
    /// Bits a second over a long time, where the discipline itself has the rate.
    pub(crate) fn mean_bps(&self) -> Option<u64> {
        match self {
            Self::DropTail | Self::Red(_) | Self::Fair(_) => None,
            Self::Managed(managed) => managed.rate.mean_bps(),
            Self::Policed(policed) => Some(policed.tokens.rate_bps.get()),
        }
    }
}

/// How a packet fared that the link takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// How long it waited for its transmission to begin.
    pub waited: Nanos,
    /// Whether the queue marked it.
    pub marked: bool,
}

/// A discipline in front of one link.
///
/// A discipline that serves in the order of arrival knows when a packet leaves as soon as it
/// arrives, which saves an event a packet. One that does not says so by [`QueueDiscipline::HOLDS_PACKETS`],
/// answers that it holds the packet, and is asked for the next one whenever the link is free. At
/// equal times departures come before arrivals.
pub trait QueueDiscipline {
    /// Whether packets wait until the link is free to take them.
    const HOLDS_PACKETS: bool = false;
    /// Whether packets of others come as well; such a queue says that it holds packets, too.
    const HAS_CROSS_TRAFFIC: bool = false;
    /// Whether full packets of sources may have other lengths than the link.
    const ANY_LENGTH: bool = false;
    /// Whether packets may be dropped that it held: then [`QueueDiscipline::take_dropped`] is to be
    /// called after each other call.
    const DROPS_HELD_PACKETS: bool = false;

    /// Offers a packet of the link's length to the queue in front of `link`.
    fn offer(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Verdict;

    /// Tells the probe what has left by `now`.
    fn advance_to(&mut self, now: Nanos, probe: &mut impl QueueProbe);

    /// Forgets the past of a queue that is empty, for a transfer from fresh state.
    fn restart(&mut self) {}

    /// Packets held, the one in transmission included, as of the last call.
    fn held(&self) -> usize;

    /// How much later than `now`, summed up, those of them leave of which it is known when.
    fn ahead(&self, now: Nanos) -> Nanos;

    /// When the packet in transmission will have left, if others are held for that time;
    /// [`NEVER`] while the link is idle.
    fn next_departure(&self) -> Nanos {
        NEVER
    }

    /// That time has come: takes the next packet, and says when it will have left; `None` if none
    /// waits.
    fn serve(
        &mut self,
        _link: &mut Transmitter,
        _probe: &mut impl QueueProbe,
    ) -> Option<(Nanos, Packet)> {
        None
    }

    /// How the packet fared that was served last, where that is known.
    fn passed(&self) -> Option<Passed> {
        None
    }

    /// Takes the packets that were held and dropped, and when; not the one that was offered last.
    fn take_dropped(&mut self, _into: &mut Vec<(Nanos, Packet)>, _probe: &mut impl QueueProbe) {}

    /// What the link has carried by `now` and could have, where its rate is not constant.
    fn carried(&self, _now: Nanos) -> Option<Carried> {
        None
    }

    /// Looks at the packets that are likely to be served or dropped in the next so many turns, all at
    /// once, and tells whose they are.
    fn prefetch_ahead(&self, _turns: usize, _tell: impl FnMut(u32)) {}

    /// Packets that are held and have not been served; not those of others.
    fn waiting(&self) -> u64 {
        0
    }

    /// What the sum of the sources' waits lacks of that of all, modulo 2^64: the waits of packets of
    /// others, up to `now` where they are still here, and the moments at which these pushed packets
    /// of sources out.
    fn cross_waited(&self, _now: Nanos) -> u64 {
        0
    }

    /// When the next packet of others arrives; [`NEVER`] if none does.
    fn next_cross_arrival(&self) -> Nanos {
        NEVER
    }

    /// That time has come. The source's packet that had to go to make room, if one had.
    fn on_cross_arrival(
        &mut self,
        _link: &mut Transmitter,
        _probe: &mut impl QueueProbe,
    ) -> Option<Packet> {
        None
    }
}
