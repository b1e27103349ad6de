//! Packets on their way to a link or host, in a total order.

use crate::counters::DropCause;
use tcpcast_link::timing_wheel::TimingWheel;
use tcpcast_link::{Nanos, Packet};

/// The token of a packet in the network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InTransit<T> {
    /// The caller's data.
    pub payload: T,
    /// Number of the next place, or of the link on which the packet is.
    pub hop: u32,
    /// Cause of the loss of a packet whose loss is already known but has not yet happened.
    pub lost: Option<DropCause>,
}

/// Place of a host, after all links.
pub(crate) const HOST: u32 = (1 << PLACE_BITS) - 1;
const PLACE_BITS: u32 = 24;
const COUNT_BITS: u32 = u64::BITS - PLACE_BITS;

/// Packets in transit by time, then by place (links by number, then hosts), then by order of scheduling.
#[derive(Clone, Debug)]
pub(crate) struct PendingPackets<T> {
    wheel: TimingWheel<Packet<InTransit<T>>>,
    scheduled: u64,
}

impl<T> Default for PendingPackets<T> {
    fn default() -> Self {
        Self { wheel: TimingWheel::default(), scheduled: 0 }
    }
}

impl<T: Copy> PendingPackets<T> {
    /// Schedules a packet, which reaches `place` at `packet.entered`.
    #[inline(always)]
    pub fn push(&mut self, place: u32, packet: &Packet<InTransit<T>>) {
        self.scheduled += 1;
        self.wheel.push(u64::from(place) << COUNT_BITS | self.scheduled, packet);
    }

    /// Time of the first packet; [`tcpcast_link::NEVER`] if there is none.
    #[inline(always)]
    pub fn next_time(&self) -> Nanos {
        self.wheel.next_time()
    }

    /// Takes the first packet. It stays in memory until another one is scheduled.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<&Packet<InTransit<T>>> {
        self.wheel.pop().map(|(_, packet)| packet)
    }

    /// All packets, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Packet<InTransit<T>>> {
        self.wheel.iter()
    }
}
