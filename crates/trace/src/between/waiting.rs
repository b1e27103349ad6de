//! What was seen at one tap and not yet at the other.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use crate::segment::Nanos;

/// More packets than this are not kept in mind, whether they wait or not.
const MAX_WAITING: usize = 1 << 19;

/// Packets that look entry, the oldest first; there is almost always one.
#[derive(Debug)]
struct SameIdentity {
    time: Nanos,
    index: usize,
    later: VecDeque<(Nanos, usize)>,
}

/// The packets of one tap that wait to be seen at the other.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    by_identity: HashMap<u64, SameIdentity>,
    /// All that came, in order; most do not wait any more.
    order: VecDeque<(Nanos, u64)>,
    pub(super) forgotten: u64,
    overdue: bool,
}

impl Waiting {
    /// A packet begins to wait; `index` is where its direction is.
    pub(super) fn insert(&mut self, identity: u64, time: Nanos, index: usize) {
        match self.by_identity.entry(identity) {
            Entry::Vacant(free) => {
                free.insert(SameIdentity { time, index, later: VecDeque::new() });
            }
            Entry::Occupied(mut entry) => {
                entry.get_mut().later.push_back((time, index));
            }
        }
        self.order.push_back((time, identity));
        self.overdue = self.order.len() > MAX_WAITING;
    }

    /// The oldest that looks like this waits no longer.
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

    /// Directions have other indices now; packets of those without one wait no longer.
    pub(super) fn renumber(&mut self, indices: &[Option<usize>]) {
        let mut forgotten = 0;
        self.by_identity.retain(|_, entry| {
            let all = std::iter::once((entry.time, entry.index)).chain(entry.later.drain(..));
            let mut kept: VecDeque<_> =
                all.filter_map(|(time, index)| Some((time, indices[index]?))).collect();
            forgotten += usize::from(kept.is_empty());
            let Some((time, index)) = kept.pop_front() else { return false };
            *entry = SameIdentity { time, index, later: kept };
            true
        });
        self.forgotten += forgotten as u64;
    }

    /// The next one that was seen before `until`, or for which there is no room; it waits no longer.
    pub(super) fn take_expired(&mut self, until: i128) -> Option<(Nanos, usize)> {
        while let Some(&(time, identity)) = self.order.front() {
            let due = i128::from(time) < until;
            if !due && !self.overdue {
                return None;
            }
            self.order.pop_front();
            self.overdue = self.order.len() > MAX_WAITING;
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
    fn of_those_that_look_alike_the_oldest_goes_first() {
        let mut waiting = Waiting::default();
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
    fn there_is_no_room_for_all() {
        let mut waiting = Waiting::default();
        for number in 0..=MAX_WAITING as u64 {
            waiting.insert(number, number, 0);
        }
        assert_eq!(waiting.take_expired(0), Some((0, 0)));
        assert_eq!((waiting.take_expired(0), waiting.forgotten), (None, 1));
    }
}
