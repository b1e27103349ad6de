//! Packets seen at one tap, but not yet at the other.
//!
//! A packet with payload is a range of sequence numbers, because segmentation offload splits and
//! merges packets between the taps. Other packets are matched as a whole, by their identity.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::segment::Nanos;

/// Maximum number of parts in `order`, matched or not.
const MAX_ORDERED_PARTS: usize = 1 << 19;
/// Maximum number of parts that are compared with a packet; the largest frames have 400 packets.
const MAX_COMPARISONS: usize = 1024;

/// A packet at a tap, or a part of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Number of the ends if the packet has payload; otherwise of the whole packet.
    pub(super) key: u64,
    /// Sequence number of the first byte; 0 without payload.
    pub(super) start: u32,
    /// Payload, bytes.
    pub(super) length: u32,
    pub(super) time: Nanos,
    /// Index of its direction.
    pub(super) index: usize,
    /// IP identification, or 0.
    pub(super) id: u16,
    /// Value of the timestamp option.
    pub(super) timestamp: Option<u32>,
}

impl Part {
    /// Returns `length` bytes of the part from the sequence number `start` on.
    pub(super) fn slice(self, start: u32, length: u32) -> Self {
        // The IP ID is that of the first packet in the frame.
        Self { start, length, id: if start == self.start { self.id } else { 0 }, ..self }
    }

    /// Number of bytes from `from` to the end of the part.
    fn length_from(&self, from: u32) -> u32 {
        self.length - from.wrapping_sub(self.start)
    }

    /// Whether both are the same transmission of the data at the sequence number `at`, if known.
    fn is_same_transmission(&self, other: &Self, at: u32) -> Option<bool> {
        let has_ids = self.id != 0 && other.id != 0 && self.start == at && other.start == at;
        let same_id = has_ids.then_some(self.id == other.id);
        // Some devices rewrite timestamps or identifications: one of them suffices.
        let same_time = self.timestamp.zip(other.timestamp).map(|(value, other)| value == other);
        match (same_id, same_time) {
            (Some(id), Some(time)) => Some(id || time),
            (known, unknown) => known.or(unknown),
        }
    }
}

/// Packets of one tap that have not been seen at the other.
#[derive(Debug, Default)]
pub(super) struct UnmatchedPackets {
    /// Unmatched parts, by key, start and serial number.
    parts: BTreeMap<(u64, u32, u32), Part>,
    /// All parts in order of insertion; most have been matched.
    order: VecDeque<(Nanos, (u64, u32, u32))>,
    serial: u32,
    /// Length of the longest part.
    longest: u32,
    pub(super) forgotten: u64,
    overdue: bool,
}

impl UnmatchedPackets {
    pub(super) fn insert(&mut self, part: Part) {
        let key = (part.key, part.start, self.serial);
        self.serial = self.serial.wrapping_add(1);
        self.longest = self.longest.max(part.length);
        self.parts.insert(key, part);
        self.order.push_back((part.time, key));
        self.overdue = self.order.len() > MAX_ORDERED_PARTS;
    }

    /// Removes the packet without payload with this key that was seen first.
    pub(super) fn take_whole(&mut self, key: u64) -> Option<Part> {
        let (&first, _) = self.parts.range((key, 0, 0)..=(key, 0, u32::MAX)).next()?;
        self.parts.remove(&first)
    }

    /// Removes the bytes of `packet` from the parts that contain them. Calls `on_part` for each
    /// piece of the packet in order, with the part of this tap that contained it, if any.
    pub(super) fn take_range(
        &mut self,
        packet: &Part,
        mut on_part: impl FnMut(Part, Option<Part>),
    ) {
        let (mut at, mut left, mut comparisons) = (packet.start, packet.length, 0..MAX_COMPARISONS);
        while left > 0 {
            let found = self.find_part_with(packet, at, &mut comparisons);
            let length = match found.and_then(|key| self.parts.remove(&key)) {
                Some(part) => {
                    let length = part.length_from(at).min(left);
                    let before = at.wrapping_sub(part.start);
                    let after = part.length - before - length;
                    if before > 0 {
                        self.insert(part.slice(part.start, before));
                    }
                    if after > 0 {
                        self.insert(part.slice(at.wrapping_add(length), after));
                    }
                    on_part(packet.slice(at, length), Some(part));
                    length
                }
                None if comparisons.is_empty() => {
                    on_part(packet.slice(at, left), None);
                    left
                }
                None => {
                    let length = self.bytes_to_next_part(packet.key, at, left);
                    on_part(packet.slice(at, length), None);
                    length
                }
            };
            at = at.wrapping_add(length);
            left -= length;
        }
    }

    /// Returns the part that contains the sequence number `at` and may be the same transmission as
    /// `packet`: if it is unknown which one is, the last one.
    fn find_part_with(
        &self,
        packet: &Part,
        at: u32,
        comparisons: &mut Range<usize>,
    ) -> Option<(u64, u32, u32)> {
        let key = packet.key;
        let lowest = at.wrapping_sub(self.longest);
        let (low, wrapped) = if lowest <= at { (lowest, None) } else { (0, Some(lowest)) };
        let below = self.parts.range((key, low, 0)..=(key, at, u32::MAX)).rev();
        let before_wrap = wrapped.into_iter().flat_map(|lowest| {
            self.parts.range((key, lowest, 0)..=(key, u32::MAX, u32::MAX)).rev()
        });
        let mut latest = None;
        for ((&place, part), _) in below.chain(before_wrap).zip(comparisons) {
            if at.wrapping_sub(part.start) >= part.length {
                continue;
            }
            match part.is_same_transmission(packet, at) {
                Some(true) => return Some(place),
                Some(false) => {}
                None if latest.is_none_or(|(time, _)| part.time > time) => {
                    latest = Some((part.time, place));
                }
                None => {}
            }
        }
        latest.map(|(_, place)| place)
    }

    /// Number of bytes from `at` to the next part that begins behind it, at most `length`.
    fn bytes_to_next_part(&self, key: u64, at: u32, length: u32) -> u32 {
        if length == 1 {
            return 1;
        }
        let (first, last) = (at.wrapping_add(1), at.wrapping_add(length - 1));
        let next = |from: u32, to: u32| {
            self.parts.range((key, from, 0)..=(key, to, u32::MAX)).next().map(|(place, _)| place.1)
        };
        let start = if first <= last {
            next(first, last)
        } else {
            next(first, u32::MAX).or_else(|| next(0, last))
        };
        start.map_or(length, |start| start.wrapping_sub(at))
    }

    /// Whether no packet waits.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Updates the indices of directions, and removes packets of dropped directions.
    pub(super) fn renumber_directions(&mut self, indices: &[Option<usize>]) {
        let before = self.parts.len();
        self.parts.retain(|_, part| {
            let kept = indices[part.index];
            part.index = kept.unwrap_or(0);
            kept.is_some()
        });
        self.forgotten += (before - self.parts.len()) as u64;
    }

    /// Removes the next part that was seen before `until` or exceeds the maximum number.
    pub(super) fn take_expired(&mut self, until: i128) -> Option<Part> {
        while let Some(&(time, key)) = self.order.front() {
            let due = i128::from(time) < until;
            if !due && !self.overdue {
                return None;
            }
            self.order.pop_front();
            self.overdue = self.order.len() > MAX_ORDERED_PARTS;
            if let Some(part) = self.parts.remove(&key) {
                self.forgotten += u64::from(!due);
                return Some(part);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(key: u64, time: Nanos) -> Part {
        Part { key, start: 0, length: 0, time, index: time as usize, id: 0, timestamp: None }
    }

    fn range(start: u32, length: u32, time: Nanos) -> Part {
        Part { start, length, ..whole(1, time) }
    }

    /// Returns the pieces of a range: start, length, and the time of the part that contained it.
    fn pieces(waiting: &mut UnmatchedPackets, packet: &Part) -> Vec<(u32, u32, Option<Nanos>)> {
        let mut pieces = Vec::new();
        waiting.take_range(packet, |piece, part| {
            pieces.push((piece.start, piece.length, part.map(|part| part.time)));
        });
        pieces
    }

    #[test]
    fn take_whole_returns_oldest_of_equal_packets() {
        let mut waiting = UnmatchedPackets::default();
        for (time, key) in [(1, 7), (2, 8), (3, 7), (4, 7)] {
            waiting.insert(whole(key, time));
        }
        assert_eq!(waiting.take_whole(7), Some(whole(7, 1)));
        assert_eq!(waiting.take_expired(2), None);
        assert_eq!(waiting.take_expired(4), Some(whole(8, 2)));
        assert_eq!(waiting.take_expired(4), Some(whole(7, 3)));
        assert_eq!(waiting.take_expired(4), None);
        assert_eq!(waiting.take_whole(7), Some(whole(7, 4)));
        assert_eq!((waiting.take_whole(7), waiting.take_expired(9)), (None, None));
    }

    #[test]
    fn take_expired_removes_parts_above_maximum() {
        let mut waiting = UnmatchedPackets::default();
        for number in 0..=MAX_ORDERED_PARTS as u64 {
            waiting.insert(whole(number, number));
        }
        assert_eq!(waiting.take_expired(0), Some(whole(0, 0)));
        assert_eq!((waiting.take_expired(0), waiting.forgotten), (None, 1));
    }

    #[test]
    fn ranges_are_split_and_joined() {
        let mut waiting = UnmatchedPackets::default();
        let begin = u32::MAX - 1499; // the ranges pass the largest sequence number
        waiting.insert(range(begin, 3000, 1));
        waiting.insert(range(1500, 1000, 2));
        assert_eq!(pieces(&mut waiting, &range(0, 1000, 9)), [(0, 1000, Some(1))]);
        // The rest of the first range, a gap, the second range, and bytes never seen.
        let rest = [(1000, 500, Some(1)), (1500, 1000, Some(2)), (2500, 500, None)];
        assert_eq!(pieces(&mut waiting, &range(1000, 2000, 9)), rest);
        assert_eq!(pieces(&mut waiting, &range(begin, 1500, 9)), [(begin, 1500, Some(1))]);
        assert!(waiting.is_empty());
        let mut across = UnmatchedPackets::default();
        across.insert(range(500, 1000, 1));
        let all = [(begin, 2000, None), (500, 1000, Some(1)), (1500, 10, None)];
        assert_eq!(pieces(&mut across, &range(begin, 3010, 9)), all);
    }

    #[test]
    fn retransmission_is_matched_by_timestamp_or_identification_or_last() {
        let mut waiting = UnmatchedPackets::default();
        for (time, id) in [(1, 11), (5, 12), (9, 13)] {
            let timestamp = Some(100 + time as u32);
            waiting.insert(Part { id, timestamp, ..range(0, 3000, time) });
        }
        let packet = Part { timestamp: Some(105), ..range(1000, 1000, 20) };
        assert_eq!(pieces(&mut waiting, &packet), [(1000, 1000, Some(5))]);
        let packet = Part { id: 11, ..range(0, 1000, 20) };
        assert_eq!(pieces(&mut waiting, &packet), [(0, 1000, Some(1))]);
        assert_eq!(pieces(&mut waiting, &range(0, 1000, 20)), [(0, 1000, Some(9))]);
    }

    #[test]
    fn equal_ranges_take_bounded_time() {
        let mut waiting = UnmatchedPackets::default();
        for time in 0..20_000 {
            waiting.insert(Part { timestamp: Some(2), ..range(0, 1000, time) });
            waiting.insert(Part { timestamp: Some(2), ..range(time as u32, 1, time) });
            let packet = Part { timestamp: Some(1), ..range(0, 20_000, time) };
            assert!(pieces(&mut waiting, &packet).len() <= MAX_COMPARISONS);
        }
    }
}
