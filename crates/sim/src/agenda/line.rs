//! Packets that come due in the order in which they are scheduled.

use crate::clock::Nanos;
use crate::packet::Packet;
use tcpcast_link::ring::Ring;

/// Most packets that one is put in front of; a heap is faster beyond.
const REACH: usize = 16;

/// A delay line: what is scheduled at "now plus a constant".
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayLine {
    pending: Ring<Pending>,
    /// When the one scheduled last is due. It is not in the past while it is pending, and
    /// nothing is scheduled in the past, so it need not be forgotten when the line is empty.
    last: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    time: Nanos,
    packet: Packet,
}

impl DelayLine {
    /// Appends a packet if that keeps the line in order; says whether it did.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: Nanos, packet: Packet) -> bool {
        if time < self.last {
            return false;
        }
        self.last = time;
        self.pending.push(Pending { time, packet });
        true
    }

    /// Inserts a packet behind those that come due no later; returns how many these are, or `None` if more than
    /// [`REACH`] come due later.
    #[inline(always)]
    pub(crate) fn insert(&mut self, time: Nanos, packet: Packet) -> Option<usize> {
        let len = self.pending.len();
        let later = |place: usize| self.pending.get(place).is_some_and(|next| next.time > time);
        let mut place = len;
        while place > 0 && later(place - 1) {
            if len - place == REACH {
                return None;
            }
            place -= 1;
        }
        self.last = self.last.max(time);
        self.pending.insert(place, Pending { time, packet });
        Some(place)
    }

    /// How many packets are on it.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// When the first comes due.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<Nanos> {
        self.pending.first().map(|pending| pending.time)
    }

    /// Takes the first; there must be one.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Packet {
        self.pending.take().packet
    }

    /// All of them in their order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.pending.iter().map(|pending| &pending.packet)
    }
}
