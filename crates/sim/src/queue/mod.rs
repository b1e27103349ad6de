//! Queue disciplines: who waits, who is dropped, and when the others leave.

mod droptail;
mod red;

pub use droptail::DropTail;
pub use red::{Red, RedConfig};

use crate::clock::{Nanos, Transmitter};

/// What became of a packet that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It will have left the link at that time.
    Departs {
        /// When its last bit is gone.
        leaves: Nanos,
        /// Packets that it found before it, the one in transmission included.
        found: usize,
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
}

/// Which discipline, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueConfig {
    /// First in, first out; what finds the buffer full is dropped.
    DropTail,
    /// Random early detection.
    Red(RedConfig),
}

/// A discipline in front of one link.
///
/// A discipline that serves in the order of arrival knows when a packet leaves as soon as it
/// arrives, which saves an event a packet. At equal times departures come before arrivals.
/// One that does not (fair queueing, CoDel) will have to answer that it holds the packet, and be
/// asked for the next one when the link is free: a third [`Verdict`], and an event for the link.
pub trait QueueDiscipline {
    /// Offers a packet to the queue in front of `link`.
    fn offer(&mut self, now: Nanos, link: &mut Transmitter, probe: &mut impl QueueProbe)
    -> Verdict;

    /// Tells the probe what has left by `now`.
    fn settle(&mut self, now: Nanos, probe: &mut impl QueueProbe);

    /// Forgets the past of a queue that is empty, for a transfer from fresh state.
    fn restart(&mut self) {}

    /// Packets held, the one in transmission included, as of the last call.
    fn held(&self) -> usize;
}
