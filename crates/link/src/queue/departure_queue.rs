//! A FIFO queue that computes departures on arrival.
//!
//! The queue stores departure times instead of packets, and takes one call and no event per packet.

use super::buffer_occupancy::MaxBacklog;
use super::{
    AdmissionRule, AdmitAll, AdmitDecision, ArrivalContext, Backlog, BufferLimits, DropReason,
    QueueProbe,
};
use crate::packet::Packet;
use crate::ring_buffer::RingBuffer;
use crate::time::{NEVER, Nanos};
use crate::transmit::Transmitter;

/// Departure of an accepted packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Time at which the last bit leaves.
    pub leaves: Nanos,
    /// Packets held on arrival, including the packet in transmission.
    pub found: u64,
    /// Whether the queue marked the packet.
    pub marked: bool,
}

/// Departure time and length of a packet.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    time: Nanos,
    bytes: u32,
}

/// A FIFO queue between an admission rule and a transmitter; the caller owns the transmitter.
#[derive(Clone, Debug)]
pub struct DepartureQueue<A = AdmitAll> {
    admission: A,
    max: MaxBacklog,
    leaving: RingBuffer<Leaving>,
    /// Departure time of the first packet; [`NEVER`] if the queue is empty.
    first_leaves: Nanos,
    bytes: u64,
    last_leaves: Nanos,
}

impl<A: AdmissionRule> DepartureQueue<A> {
    /// Creates an empty queue. Rules with [`AdmissionRule::NEEDS_DEQUEUE`] do not compile.
    #[must_use]
    pub fn new(limits: BufferLimits, admission: A) -> Self {
        const { assert!(!A::NEEDS_DEQUEUE, "this rule needs to be notified of dequeues") };
        Self {
            admission,
            max: MaxBacklog::new(limits),
            leaving: RingBuffer::default(),
            first_leaves: NEVER,
            bytes: 0,
            last_leaves: 0,
        }
    }

    /// Handles an arriving packet and returns its departure.
    ///
    /// # Errors
    ///
    /// Returns the reason if the packet is dropped.
    #[inline(always)]
    pub fn offer<T>(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        transmitter: &mut impl Transmitter,
        probe: &mut impl QueueProbe<T>,
    ) -> Result<Departure, DropReason> {
        self.advance_to(now, probe);
        let mut packet = packet.with_arrival_time(now);
        let context = self.arrival_context(&packet);
        let found = self.leaving.len() as u64;
        probe.on_arrival_queue_length(found);
        let admit = self.admission.admit(now, &context, probe);
        if !context.has_room {
            self.admission.on_overflow();
            probe.on_drop(now, &packet, DropReason::Full);
            return Err(DropReason::Full);
        }
        if admit == AdmitDecision::Drop {
            probe.on_drop(now, &packet, DropReason::Early);
            return Err(DropReason::Early);
        }
        let marked = admit == AdmitDecision::Mark && packet.mark_if_ecn_capable();
        let leaves = transmitter.transmit(now, packet.bytes);
        self.last_leaves = leaves;
        if leaves > now {
            probe.on_queue_length_interval(found, now);
            self.bytes += u64::from(packet.bytes);
            self.leaving.push(Leaving { time: leaves, bytes: packet.bytes });
            if found == 0 {
                self.first_leaves = leaves;
            }
        }
        Ok(Departure { leaves, found, marked })
    }

    /// Processes all departures up to `now` and reports the queue lengths to the probe.
    #[inline(always)]
    pub fn advance_to<T>(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) {
        while self.first_leaves <= now {
            probe.on_queue_length_interval(self.leaving.len() as u64, self.first_leaves);
            self.bytes -= u64::from(self.leaving.pop_existing().bytes);
            self.first_leaves = self.leaving.first().map_or(NEVER, |leaving| leaving.time);
        }
    }

    /// Backlog as of the last call, including the packet in transmission.
    #[inline]
    #[must_use]
    pub fn held_backlog(&self) -> Backlog {
        Backlog { packets: self.leaving.len() as u64, bytes: self.bytes }
    }

    /// Sum of the remaining times to departure of all held packets, modulo 2^64.
    #[must_use]
    pub fn sum_of_remaining_times(&self, now: Nanos) -> Nanos {
        self.leaving.iter().fold(0, |sum, leaving| sum.wrapping_add(leaving.time - now))
    }

    /// Resets the state of an empty queue.
    pub fn reset_when_empty(&mut self, now: Nanos) {
        self.admission.reset(now);
    }

    #[inline(always)]
    fn arrival_context<T>(&self, packet: &Packet<T>) -> ArrivalContext {
        let held = self.held_backlog();
        let in_service = self.leaving.first().map_or(0, |leaving| u64::from(leaving.bytes));
        let waiting =
            Backlog { packets: held.packets.saturating_sub(1), bytes: held.bytes - in_service };
        let counted = if self.max.service_counts { held } else { waiting };
        let has_room = self.max.has_room(counted, packet.bytes);
        ArrivalContext {
            bytes: packet.bytes,
            ecn: packet.ecn,
            waiting,
            idle_since: (held.packets == 0).then_some(self.last_leaves),
            has_room,
        }
    }
}
