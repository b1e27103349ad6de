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

/// Stored state of a packet in the queue.
pub trait StoredDeparture: Copy {
    /// Whether lengths are stored. If lengths are not stored, they read as 0, and the buffer limit
    /// is in packets and includes the packet in transmission.
    const HAS_BYTES: bool;

    /// Creates the state of a packet that leaves at `time`.
    fn new(time: Nanos, bytes: u32) -> Self;

    /// Departure time.
    fn time(&self) -> Nanos;

    /// Length in bytes.
    fn bytes(&self) -> u64;
}

/// Departure time and length of a packet.
#[derive(Clone, Copy, Debug)]
pub struct DepartureWithLength {
    time: Nanos,
    bytes: u32,
}

impl StoredDeparture for DepartureWithLength {
    const HAS_BYTES: bool = true;

    #[inline(always)]
    fn new(time: Nanos, bytes: u32) -> Self {
        Self { time, bytes }
    }

    #[inline(always)]
    fn time(&self) -> Nanos {
        self.time
    }

    #[inline(always)]
    fn bytes(&self) -> u64 {
        u64::from(self.bytes)
    }
}

/// Departure time only, for buffers limited in packets. Storing lengths would add 7 % instructions
/// to a simulation with packets of equal length.
impl StoredDeparture for Nanos {
    const HAS_BYTES: bool = false;

    #[inline(always)]
    fn new(time: Nanos, _bytes: u32) -> Self {
        time
    }

    #[inline(always)]
    fn time(&self) -> Nanos {
        *self
    }

    #[inline(always)]
    fn bytes(&self) -> u64 {
        0
    }
}

/// A FIFO queue between an admission rule and a transmitter; the caller owns the transmitter.
#[derive(Clone, Debug)]
pub struct DepartureQueue<A = AdmitAll, L = DepartureWithLength> {
    admission: A,
    max: MaxBacklog,
    leaving: RingBuffer<L>,
    /// Departure time of the first packet; [`NEVER`] if the queue is empty.
    first_leaves: Nanos,
    bytes: u64,
    last_leaves: Nanos,
}

impl<A: AdmissionRule> DepartureQueue<A> {
    /// Creates an empty queue. Rules with [`AdmissionRule::NEEDS_DEQUEUE`] do not compile.
    #[must_use]
    pub fn new(limits: BufferLimits, admission: A) -> Self {
        Self::with_limits(limits, admission)
    }
}

impl<A: AdmissionRule> DepartureQueue<A, Nanos> {
    /// Creates an empty queue limited to `max` packets, including the packet in transmission;
    /// `None` is unlimited.
    #[must_use]
    pub fn with_packet_limit(max: Option<u64>, admission: A) -> Self {
        Self::with_limits(BufferLimits { packets: max, ..BufferLimits::default() }, admission)
    }
}

impl<A: AdmissionRule, L: StoredDeparture> DepartureQueue<A, L> {
    fn with_limits(limits: BufferLimits, admission: A) -> Self {
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
            let leaving = L::new(leaves, packet.bytes);
            self.bytes += leaving.bytes();
            self.leaving.push(leaving);
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
            self.bytes -= self.leaving.pop_existing().bytes();
            self.first_leaves = self.leaving.first().map_or(NEVER, StoredDeparture::time);
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
        self.leaving.iter().fold(0, |sum, leaving| sum.wrapping_add(leaving.time() - now))
    }

    /// Resets the state of an empty queue.
    pub fn reset_when_empty(&mut self, now: Nanos) {
        self.admission.reset(now);
    }

    #[inline(always)]
    fn arrival_context<T>(&self, packet: &Packet<T>) -> ArrivalContext {
        let held = self.held_backlog();
        let in_service =
            if L::HAS_BYTES { self.leaving.first().map_or(0, StoredDeparture::bytes) } else { 0 };
        let waiting =
            Backlog { packets: held.packets.saturating_sub(1), bytes: held.bytes - in_service };
        let has_room = if !L::HAS_BYTES {
            held.packets < self.max.packets
        } else if self.max.service_counts {
            self.max.has_room(held, packet.bytes)
        } else {
            self.max.has_room(waiting, packet.bytes)
        };
        ArrivalContext {
            bytes: packet.bytes,
            ecn: packet.ecn,
            waiting,
            idle_since: (held.packets == 0).then_some(self.last_leaves),
            has_room,
        }
    }
}
