//! Queue disciplines: who waits, who is dropped or marked, and who is next.

mod admission;
mod any;
mod chain;
mod codel;
mod departures;
mod drr;
mod fifo;
mod flows;
mod fq_codel;
mod head_drop;
mod longest;
mod occupancy;
mod pie;
mod red;

pub use admission::{Admission, Admit, Open, Sight};
pub use any::{AnyQueue, QueueConfig};
pub use chain::{Chain, NONE, Pool};
pub use codel::{Codel, CodelConfig, CodelRules};
pub use departures::{Departure, Departures, Leaving, LeavingBytes};
pub use drr::{Buffers, DropPolicy, Drr, DrrConfig};
pub use fifo::{DropTail, Fifo};
pub use flows::{Flows, Listed};
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use head_drop::HeadDrop;
pub use longest::{Longest, Place, Ties};
pub use occupancy::{Backlog, InService, Limits};
pub use pie::{Pie, PieConfig, PieRules};
pub use red::{Red, RedConfig, RedUnit};

use crate::packet::Packet;
use crate::time::{NEVER, Nanos};

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A buffer limit was reached.
    Full,
    /// The discipline dropped it while there was room, to signal congestion.
    Early,
}

/// The outcome of an enqueue for the packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It waits.
    Accepted,
    /// It waits, and has been marked.
    Marked,
    /// It was dropped.
    Dropped(Reason),
}

/// Listens to a queue.
///
/// Every packet is either yielded by [`QueueDiscipline::dequeue`] or told of here, once: the one that
/// arrives, one that had to make room for it, or one that was dropped at the head.
pub trait QueueProbe<T> {
    /// A packet is dropped at `now`; it came to the queue at `packet.entered`.
    fn dropped(&mut self, now: Nanos, packet: &Packet<T>, reason: Reason);
    /// A packet arrives and finds so many, the one in transmission included.
    fn found(&mut self, _packets: u64) {}
    /// The queue held so many packets, the one in transmission included, until `until`.
    fn held(&mut self, _packets: u64, _until: Nanos) {}
    /// The average that RED decides by has moved, in its unit.
    fn averaged(&mut self, _average: f64) {}
}

/// Collects what is dropped.
impl<T: Copy> QueueProbe<T> for Vec<Packet<T>> {
    fn dropped(&mut self, _now: Nanos, packet: &Packet<T>, _reason: Reason) {
        self.push(*packet);
    }
}

/// A discipline in front of one transmitter.
///
/// Time never goes back from call to call. [`QueueDiscipline::dequeue`] is called whenever the
/// transmitter is free: so what it yielded last has left, and no longer counts as held.
pub trait QueueDiscipline<T> {
    /// A packet arrives at `now`. The probe hears of it if it is dropped, and of others that have to
    /// make room.
    fn enqueue(&mut self, now: Nanos, packet: Packet<T>, probe: &mut impl QueueProbe<T>)
    -> Verdict;

    /// The transmitter is free at `now`: the packet that it takes next; `None` if none waits. Packets
    /// may be dropped before one is yielded, of which the probe hears.
    fn dequeue(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) -> Option<Packet<T>>;

    /// Looks at the packets that are likely to be taken or dropped in the next so many turns, all at
    /// once, and tells of which flows they are.
    fn fetch_ahead(&self, _turns: usize, _tell: impl FnMut(u32)) {}

    /// What waits, without the packet in transmission.
    fn waiting(&self) -> Backlog;

    /// What is held, the packet in transmission included.
    fn held(&self) -> Backlog;

    /// When the discipline wants [`QueueDiscipline::on_deadline`] called; [`NEVER`] if it does not.
    fn deadline(&self) -> Nanos {
        NEVER
    }

    /// The deadline has come.
    fn on_deadline(&mut self, _now: Nanos) {}

    /// Forgets the past of a queue that holds nothing, as if it began at `now`.
    fn restart(&mut self, now: Nanos);
}
