//! Packets on their way to a link or host, in a total order.
//!
//! Most packets are due within a second. They are stored in a timing wheel, to which a
//! packet is added in constant time; the packets of a slot are sorted when its time is reached.
//! Later packets are stored in a heap.

use crate::counters::DropCause;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tcpcast_link::{NEVER, Nanos, Packet};

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

/// Slot length: 2^18 ns, 262 µs.
const SLOT_BITS: u32 = 18;
const WORD_BITS: usize = u64::BITS as usize;
/// Number of slots: the wheel spans 1.07 s.
const SLOTS: usize = WORD_BITS * WORD_BITS;

/// Number of sorted packets from which a packet behind all of them goes to the heap.
const MANY: usize = 64;

/// Order of an unused element.
const UNUSED: u64 = 0;
/// Index of no packet.
const NO_INDEX: u32 = u32::MAX;

/// Position of a packet in the total order: time; then place (links by number, then hosts) and order
/// of scheduling in one number. Then its index in [`PendingPackets::packets`].
type Position = (Nanos, u64, u32);

/// A packet that reaches a place at `packet.entered`.
#[derive(Clone, Copy, Debug)]
struct PendingPacket<T> {
    packet: Packet<InTransit<T>>,
    order: u64,
    /// Next packet of the slot, or next unused element.
    next: u32,
}

/// Packets in transit by time, then by place, then by order of scheduling.
#[derive(Clone, Debug)]
pub(crate) struct PendingPackets<T> {
    packets: Vec<PendingPacket<T>>,
    /// First unused element of `packets`.
    unused: u32,
    scheduled: u64,
    /// The first packets up to the end of slot `reached`, the first one last. Empty only without
    /// packets.
    soon: Vec<Position>,
    /// Time of the first packet; [`NEVER`] if there is none.
    first_time: Nanos,
    reached: u64,
    /// First packet of each later slot.
    slots: Box<[u32]>,
    /// Bitmaps of the filled slots, and of the words of this bitmap that are not zero.
    filled: [u64; WORD_BITS],
    filled_words: u64,
    /// Packets that were beyond the wheel, or behind many others, when they were scheduled.
    late: BinaryHeap<Reverse<Position>>,
}

impl<T> Default for PendingPackets<T> {
    fn default() -> Self {
        Self {
            packets: Vec::new(),
            unused: NO_INDEX,
            scheduled: 0,
            soon: Vec::new(),
            first_time: NEVER,
            reached: 0,
            slots: vec![NO_INDEX; SLOTS].into_boxed_slice(),
            filled: [0; WORD_BITS],
            filled_words: 0,
            late: BinaryHeap::new(),
        }
    }
}

impl<T: Copy> PendingPackets<T> {
    /// Schedules a packet, which reaches `place` at `packet.entered`.
    #[inline]
    pub fn push(&mut self, place: u32, packet: &Packet<InTransit<T>>) {
        self.scheduled += 1;
        let order = u64::from(place) << COUNT_BITS | self.scheduled;
        let slot = packet.entered >> SLOT_BITS;
        let ahead = slot.wrapping_sub(self.reached);
        let index = self.unused;
        match self.packets.get_mut(index as usize) {
            Some(unused) if (1..SLOTS as u64).contains(&ahead) && self.first_time != NEVER => {
                let slot = slot as usize % SLOTS;
                let first = std::mem::replace(&mut self.slots[slot], index);
                self.unused = unused.next;
                *unused = PendingPacket { packet: *packet, order, next: first };
                self.filled[slot / WORD_BITS] |= 1 << (slot % WORD_BITS);
                self.filled_words |= 1 << (slot / WORD_BITS);
            }
            _ => self.push_slowly(packet, order),
        }
    }

    /// Schedules a packet at any time.
    #[inline(never)]
    fn push_slowly(&mut self, packet: &Packet<InTransit<T>>, order: u64) {
        let (time, slot) = (packet.entered, packet.entered >> SLOT_BITS);
        let index = self.store_packet(PendingPacket { packet: *packet, order, next: NO_INDEX });
        if self.soon.is_empty() {
            self.reached = slot;
        }
        if slot <= self.reached {
            self.insert_soon((time, order, index));
        } else if slot - self.reached < SLOTS as u64 {
            self.add_to_slot(slot as usize % SLOTS, index);
        } else {
            self.late.push(Reverse((time, order, index)));
        }
    }

    fn add_to_slot(&mut self, slot: usize, index: u32) {
        self.packets[index as usize].next = std::mem::replace(&mut self.slots[slot], index);
        self.filled[slot / WORD_BITS] |= 1 << (slot % WORD_BITS);
        self.filled_words |= 1 << (slot / WORD_BITS);
    }

    /// Time of the first packet; [`NEVER`] if there is none.
    #[inline]
    pub fn next_time(&self) -> Nanos {
        self.first_time
    }

    /// Takes the first packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet<InTransit<T>>> {
        let (.., index) = self.soon.pop()?;
        if self.soon.is_empty() {
            self.advance_to_next_slot();
        }
        self.first_time = if let [.., (time, ..)] = self.soon[..] { time } else { NEVER };
        let taken = &mut self.packets[index as usize];
        taken.next = std::mem::replace(&mut self.unused, index);
        taken.order = UNUSED;
        Some(taken.packet)
    }

    /// All packets, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Packet<InTransit<T>>> {
        self.packets.iter().filter(|pending| pending.order != UNUSED).map(|pending| &pending.packet)
    }

    #[inline]
    fn store_packet(&mut self, pending: PendingPacket<T>) -> u32 {
        let index = self.unused;
        if let Some(unused) = self.packets.get_mut(index as usize) {
            self.unused = unused.next;
            *unused = pending;
            return index;
        }
        self.packets.push(pending);
        self.packets.len() as u32 - 1
    }

    #[inline]
    fn insert_soon(&mut self, position: Position) {
        // Otherwise each packet of a burst of a million would move all others.
        if self.soon.first().is_some_and(|last| position > *last)
            && (self.soon.len() >= MANY
                || self.late.peek().is_some_and(|Reverse(first)| *first < position))
        {
            return self.late.push(Reverse(position));
        }
        let index = self.soon.partition_point(|other| *other > position);
        self.soon.insert(index, position);
        self.first_time = self.first_time.min(position.0);
    }

    /// Advances to the next slot with packets, if any.
    fn advance_to_next_slot(&mut self) {
        let late_slot = |late: &BinaryHeap<Reverse<Position>>| {
            late.peek().map_or(u64::MAX, |Reverse((time, ..))| time >> SLOT_BITS)
        };
        let slot = self.next_filled_slot();
        self.reached = slot.unwrap_or(u64::MAX).min(late_slot(&self.late));
        if slot == Some(self.reached) {
            self.take_packets_of_slot(self.reached as usize % SLOTS);
        }
        while late_slot(&self.late) <= self.reached {
            let Some(Reverse(position)) = self.late.pop() else { break };
            self.soon.push(position);
        }
        if self.soon.len() > 1 {
            self.soon.sort_unstable_by(|position, other| other.cmp(position));
        }
    }

    /// Returns the first filled slot after `reached`.
    #[inline]
    fn next_filled_slot(&self) -> Option<u64> {
        if self.filled_words == 0 {
            return None;
        }
        let begin = (self.reached as usize + 1) % SLOTS;
        let (word, bit) = (begin / WORD_BITS, begin % WORD_BITS);
        let rest = self.filled[word] & (u64::MAX << bit);
        let slot = if rest == 0 {
            // The first word may also contain slots beyond the end of the wheel, seen last.
            let words = self.filled_words.rotate_right(word as u32 + 1);
            let word = (word + 1 + words.trailing_zeros() as usize) % WORD_BITS;
            word * WORD_BITS + self.filled[word].trailing_zeros() as usize
        } else {
            word * WORD_BITS + rest.trailing_zeros() as usize
        };
        Some(self.reached + 1 + ((slot + SLOTS - begin) % SLOTS) as u64)
    }

    fn take_packets_of_slot(&mut self, slot: usize) {
        let mut index = std::mem::replace(&mut self.slots[slot], NO_INDEX);
        while let Some(pending) = self.packets.get(index as usize) {
            self.soon.push((pending.packet.entered, pending.order, index));
            index = pending.next;
        }
        self.filled[slot / WORD_BITS] &= !(1 << (slot % WORD_BITS));
        if self.filled[slot / WORD_BITS] == 0 {
            self.filled_words &= !(1 << (slot / WORD_BITS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Packets leave in the total order, whatever the distance between now and their times.
        #[test]
        fn packets_are_sorted(
            steps in prop::collection::vec((0_u32..36, any::<u64>(), 0_u32..4, 0_usize..4), 1..400),
        ) {
            let mut pending = PendingPackets::default();
            let mut sorted = BTreeSet::new();
            let mut now = 0;
            for (number, (bits, random, place, pops)) in (0..).zip(steps) {
                let place = if place == 0 { HOST } else { place };
                let time = now + random % (1 << bits);
                let token = InTransit { payload: number, ..InTransit::default() };
                pending.push(place, &Packet { entered: time, ..Packet::new(token, 0, 1500) });
                sorted.insert((time, place, number));
                for _ in 0..pops.min(sorted.len()) {
                    let (time, _, number) = sorted.pop_first().unwrap();
                    prop_assert_eq!(pending.next_time(), time);
                    let packet = pending.pop().unwrap();
                    prop_assert_eq!((packet.entered, packet.token.payload), (time, number));
                    now = time;
                }
                prop_assert_eq!(pending.iter().count(), sorted.len());
                let next = sorted.first().map_or(NEVER, |(time, ..)| *time);
                prop_assert_eq!(pending.next_time(), next);
            }
        }
    }

    #[test]
    fn memory_is_reused() {
        let mut pending = PendingPackets::default();
        for time in 0..1000 {
            let packet = Packet::new(InTransit { payload: 0_u32, ..InTransit::default() }, 0, 1500);
            pending.push(HOST, &Packet { entered: time << 20, ..packet });
            if time >= 3 {
                pending.pop();
            }
        }
        assert_eq!(pending.packets.len(), 4);
        assert_eq!(size_of::<PendingPacket<[u32; 4]>>(), 64);
    }
}
