//! A first-in first-out queue whose departures are known on arrival.
//!
//! It keeps when packets leave, and not the packets: each costs one call and no event.

use super::occupancy::Most;
use super::{Admission, Admit, Backlog, Limits, Open, QueueProbe, Reason, Sight};
use crate::packet::Packet;
use crate::ring::Ring;
use crate::time::{NEVER, Nanos};
use crate::transmit::Transmitter;

/// A packet that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When its last bit will be gone.
    pub leaves: Nanos,
    /// Packets that it found before it, the one in transmission included.
    pub found: u64,
    /// Whether the queue marked it.
    pub marked: bool,
}

/// What is kept of a packet that is still here.
pub trait Leaving: Copy {
    /// Whether bytes are counted; where not, all are 0 and the packet in transmission counts.
    const HAS_BYTES: bool;

    /// A packet that will have left at a time.
    fn new(at: Nanos, bytes: u32) -> Self;

    /// When it will have left.
    fn at(&self) -> Nanos;

    /// Its length.
    fn bytes(&self) -> u64;
}

/// When a packet will have left, and its length.
#[derive(Clone, Copy, Debug)]
pub struct LeavingBytes {
    at: Nanos,
    bytes: u32,
}

impl Leaving for LeavingBytes {
    const HAS_BYTES: bool = true;

    #[inline(always)]
    fn new(at: Nanos, bytes: u32) -> Self {
        Self { at, bytes }
    }

    #[inline(always)]
    fn at(&self) -> Nanos {
        self.at
    }

    #[inline(always)]
    fn bytes(&self) -> u64 {
        u64::from(self.bytes)
    }
}

/// For buffers of packets the time is enough; counting bytes as well would take a simulation of
/// packets of one length 7 % more instructions.
impl Leaving for Nanos {
    const HAS_BYTES: bool = false;

    #[inline(always)]
    fn new(at: Nanos, _bytes: u32) -> Self {
        at
    }

    #[inline(always)]
    fn at(&self) -> Nanos {
        *self
    }

    #[inline(always)]
    fn bytes(&self) -> u64 {
        0
    }
}

/// The queue, behind a rule that may drop or mark on arrival and in front of a transmitter that its
/// owner has.
#[derive(Clone, Debug)]
pub struct Departures<A = Open, L = LeavingBytes> {
    admission: A,
    most: Most,
    leaving: Ring<L>,
    /// When the first of those leaves, [`NEVER`] if there is none.
    first_leaves: Nanos,
    bytes: u64,
    last_leaves: Nanos,
}

impl<A: Admission> Departures<A> {
    /// An empty queue. A rule that follows what is served cannot be in front of it.
    #[must_use]
    pub fn new(limits: Limits, admission: A) -> Self {
        Self::within(limits, admission)
    }
}

impl<A: Admission> Departures<A, Nanos> {
    /// An empty queue that counts packets alone, the one in transmission included: `most` of them,
    /// unlimited where it is `None`.
    #[must_use]
    pub fn of_packets(most: Option<u64>, admission: A) -> Self {
        Self::within(Limits { packets: most, ..Limits::default() }, admission)
    }
}

impl<A: Admission, L: Leaving> Departures<A, L> {
    fn within(limits: Limits, admission: A) -> Self {
        const { assert!(!A::FOLLOWS, "this rule has to hear when packets are served") };
        Self {
            admission,
            most: Most::new(limits),
            leaving: Ring::default(),
            first_leaves: NEVER,
            bytes: 0,
            last_leaves: 0,
        }
    }

    /// A packet arrives: when it will have left.
    ///
    /// # Errors
    ///
    /// Why it is dropped.
    #[inline(always)]
    pub fn offer<T>(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        transmitter: &mut impl Transmitter,
        probe: &mut impl QueueProbe<T>,
    ) -> Result<Departure, Reason> {
        self.settle(now, probe);
        let mut packet = packet.enter(now);
        let sight = self.sight(&packet);
        let found = self.leaving.len() as u64;
        probe.found(found);
        let admit = self.admission.admit(now, &sight, probe);
        if !sight.has_room {
            self.admission.overflows();
            probe.dropped(now, &packet, Reason::Full);
            return Err(Reason::Full);
        }
        if admit == Admit::Drop {
            probe.dropped(now, &packet, Reason::Early);
            return Err(Reason::Early);
        }
        let marked = admit == Admit::Mark && packet.mark();
        let leaves = transmitter.transmit(now, packet.bytes);
        self.last_leaves = leaves;
        if leaves > now {
            probe.held(found, now);
            let leaving = L::new(leaves, packet.bytes);
            self.bytes += leaving.bytes();
            self.leaving.push(leaving);
            if found == 0 {
                self.first_leaves = leaves;
            }
        }
        Ok(Departure { leaves, found, marked })
    }

    /// Tells the probe what has left by `now`.
    #[inline(always)]
    pub fn settle<T>(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) {
        while self.first_leaves <= now {
            probe.held(self.leaving.len() as u64, self.first_leaves);
            self.bytes -= self.leaving.take().bytes();
            self.first_leaves = self.leaving.first().map_or(NEVER, Leaving::at);
        }
    }

    /// What is held, the packet in transmission included, as of the last call.
    #[inline]
    #[must_use]
    pub fn held(&self) -> Backlog {
        Backlog { packets: self.leaving.len() as u64, bytes: self.bytes }
    }

    /// How much later than `now`, summed up modulo 2^64, the packets leave that are held.
    #[must_use]
    pub fn ahead(&self, now: Nanos) -> Nanos {
        self.leaving.iter().fold(0, |sum, leaving| sum.wrapping_add(leaving.at() - now))
    }

    /// Forgets the past of a queue that holds nothing.
    pub fn restart(&mut self, now: Nanos) {
        self.admission.restart(now);
    }

    /// What the packet sees that arrives now.
    #[inline(always)]
    fn sight<T>(&self, packet: &Packet<T>) -> Sight {
        let held = self.held();
        let in_service =
            if L::HAS_BYTES { self.leaving.first().map_or(0, Leaving::bytes) } else { 0 };
        let waiting =
            Backlog { packets: held.packets.saturating_sub(1), bytes: held.bytes - in_service };
        let has_room = if !L::HAS_BYTES {
            held.packets < self.most.packets
        } else if self.most.service_counts {
            self.most.has_room(held, packet.bytes)
        } else {
            self.most.has_room(waiting, packet.bytes)
        };
        Sight {
            bytes: packet.bytes,
            ecn: packet.ecn,
            waiting,
            idle_since: (held.packets == 0).then_some(self.last_leaves),
            has_room,
        }
    }
}
