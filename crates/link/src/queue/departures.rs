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

/// A packet that is still here, and when it will have left.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    at: Nanos,
    bytes: u32,
}

/// The queue, behind a rule that may drop or mark on arrival and in front of a transmitter that its
/// owner has.
#[derive(Clone, Debug)]
pub struct Departures<A = Open> {
    admission: A,
    most: Most,
    leaving: Ring<Leaving>,
    /// When the first of those leaves, [`NEVER`] if there is none.
    first_leaves: Nanos,
    bytes: u64,
    last_leaves: Nanos,
}

impl<A: Admission> Departures<A> {
    /// An empty queue. A rule that follows what is served cannot be in front of it.
    #[must_use]
    pub fn new(limits: Limits, admission: A) -> Self {
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
            self.leaving.push(Leaving { at: leaves, bytes: packet.bytes });
            self.bytes += u64::from(packet.bytes);
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
            self.bytes -= u64::from(self.leaving.take().bytes);
            self.first_leaves = self.leaving.first().map_or(NEVER, |first| first.at);
        }
    }

    /// What is held, the packet in transmission included, as of the last call.
    #[inline]
    #[must_use]
    pub fn held(&self) -> Backlog {
        Backlog { packets: self.leaving.len() as u64, bytes: self.bytes }
    }

    /// How much later than `now`, summed up, the packets leave that are held.
    #[must_use]
    pub fn ahead(&self, now: Nanos) -> Nanos {
        self.leaving.iter().map(|leaving| leaving.at - now).sum()
    }

    /// Forgets the past of a queue that holds nothing.
    pub fn restart(&mut self, now: Nanos) {
        self.admission.restart(now);
    }

    /// What the packet sees that arrives now.
    #[inline(always)]
    fn sight<T>(&self, packet: &Packet<T>) -> Sight {
        let held = self.held();
        let in_service = self.leaving.first().map_or(0, |first| u64::from(first.bytes));
        let waiting =
            Backlog { packets: held.packets.saturating_sub(1), bytes: held.bytes - in_service };
        let counted = if self.most.service_counts { held } else { waiting };
        Sight {
            bytes: packet.bytes,
            ecn: packet.ecn,
            waiting,
            idle_since: (held.packets == 0).then_some(self.last_leaves),
            has_room: self.most.has_room(counted, packet.bytes),
        }
    }
}
