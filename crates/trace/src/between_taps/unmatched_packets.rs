//! Packets seen at one tap, but not yet at the other.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use crate::segment::Nanos;

/// Maximum number of packets in `order`, matched or not.
const MAX_ORDERED_PACKETS: usize = 1 << 19;

/// Packets with the same identity, oldest first; almost always one.
#[derive(Debug)]
struct PacketsWithSameIdentity {
    time: Nanos,
    index: usize,
    later: VecDeque<(Nanos, usize)>,
}

/// Packets of one tap that have not been seen at the other.
#[derive(Debug, Default)]
pub(super) struct UnmatchedPackets {
    by_identity: HashMap<u64, PacketsWithSameIdentity>,
    /// All packets in order; most have been matched.
    order: VecDeque<(Nanos, u64)>,
    pub(super) forgotten: u64,
    overdue: bool,
}

impl UnmatchedPackets {
    /// Adds a packet. `index`: index of its direction.
    pub(super) fn insert(&mut self, identity: u64, time: Nanos, index: usize) {
        match self.by_identity.entry(identity) {
            Entry::Vacant(free) => {
                free.insert(PacketsWithSameIdentity { time, index, later: VecDeque::new() });
            }
            Entry::Occupied(mut entry) => {
                entry.get_mut().later.push_back((time, index));
            }
        }
        self.order.push_back((time, identity));
        self.overdue = self.order.len() > MAX_ORDERED_PACKETS;
    }

    /// Removes the oldest packet with this identity.
    pub(super) fn take(&mut self, identity: u64) -> Option<(Nanos, usize)> {
        let Entry::Occupied(mut entry) = self.by_identity.entry(identity) else { return None };
        let first = (entry.get().time, entry.get().index);
        match entry.get_mut().later.pop_front() {
            Some((time, index)) => {
                entry.get_mut().time = time;
                entry.get_mut().index = index;
            }
            None => {
                entry.remove();
            }
        }
        Some(first)
    }

    /// Updates the indices of directions, and removes packets of dropped directions.
    pub(super) fn renumber_directions(&mut self, indices: &[Option<usize>]) {
        let mut forgotten = 0;
        self.by_identity.retain(|_, entry| {
            let all = std::iter::once((entry.time, entry.index)).chain(entry.later.drain(..));
            let mut kept: VecDeque<_> =
                all.filter_map(|(time, index)| Some((time, indices[index]?))).collect();
            forgotten += usize::from(kept.is_empty());
            let Some((time, index)) = kept.pop_front() else { return false };
            *entry = PacketsWithSameIdentity { time, index, later: kept };
            true
        });
        self.forgotten += forgotten as u64;
    }

    /// Removes the next packet that was seen before `until` or exceeds the maximum number.
    pub(super) fn take_expired(&mut self, until: i128) -> Option<(Nanos, usize)> {
        while let Some(&(time, identity)) = self.order.front() {
            let due = i128::from(time) < until;
            if !due && !self.overdue {
                return None;
            }
            self.order.pop_front();
            self.overdue = self.order.len() > MAX_ORDERED_PACKETS;
            if self.by_identity.get(&identity).is_some_and(|entry| entry.time == time) {
                self.forgotten += u64::from(!due);
                return self.take(identity);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_returns_oldest_of_equal_packets() {
        let mut waiting = UnmatchedPackets::default();
        for (time, identity) in [(1, 7), (2, 8), (3, 7), (4, 7)] {
            waiting.insert(identity, time, time as usize);
        }
        assert_eq!(waiting.take(7), Some((1, 1)));
        assert_eq!(waiting.take_expired(2), None);
        assert_eq!(waiting.take_expired(4), Some((2, 2)));
        assert_eq!(waiting.take_expired(4), Some((3, 3)));
        assert_eq!(waiting.take_expired(4), None);
        assert_eq!(waiting.take(7), Some((4, 4)));
        assert_eq!((waiting.take(7), waiting.take_expired(9)), (None, None));
    }

    #[test]
    fn take_expired_removes_packets_above_maximum() {
        let mut waiting = UnmatchedPackets::default();
        for number in 0..=MAX_ORDERED_PACKETS as u64 {
            waiting.insert(number, number, 0);
        }
        assert_eq!(waiting.take_expired(0), Some((0, 0)));
        assert_eq!((waiting.take_expired(0), waiting.forgotten), (None, 1));
    }
}
