//! What was seen at one tap and not yet at the other.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use crate::segment::Nanos;

/// More packets than this are not kept in mind, whether they wait or not.
const MOST: usize = 1 << 19;

/// Packets that look alike, the oldest first; there is almost always one.
#[derive(Debug)]
struct Alike {
    time: Nanos,
    place: usize,
    later: VecDeque<(Nanos, usize)>,
}

/// The packets of one tap that wait to be seen at the other.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    by_identity: HashMap<u64, Alike>,
    /// All that came, in order; most do not wait any more.
    order: VecDeque<(Nanos, u64)>,
    pub(super) forgotten: u64,
    overdue: bool,
}

impl Waiting {
    /// A packet begins to wait; `place` is where its direction is.
    pub(super) fn put(&mut self, identity: u64, time: Nanos, place: usize) {
        match self.by_identity.entry(identity) {
            Entry::Vacant(free) => {
                free.insert(Alike { time, place, later: VecDeque::new() });
            }
            Entry::Occupied(mut alike) => {
                alike.get_mut().later.push_back((time, place));
            }
        }
        self.order.push_back((time, identity));
        self.overdue = self.order.len() > MOST;
    }

    /// The oldest that looks like this waits no longer.
    pub(super) fn take(&mut self, identity: u64) -> Option<(Nanos, usize)> {
        let Entry::Occupied(mut alike) = self.by_identity.entry(identity) else { return None };
        let first = (alike.get().time, alike.get().place);
        match alike.get_mut().later.pop_front() {
            Some((time, place)) => {
                alike.get_mut().time = time;
                alike.get_mut().place = place;
            }
            None => {
                alike.remove();
            }
        }
        Some(first)
    }

    /// Directions have other places now; packets of those without one wait no longer.
    pub(super) fn renumber(&mut self, places: &[Option<usize>]) {
        let mut forgotten = 0;
        self.by_identity.retain(|_, alike| {
            let all = std::iter::once((alike.time, alike.place)).chain(alike.later.drain(..));
            let mut kept: VecDeque<_> =
                all.filter_map(|(time, place)| Some((time, places[place]?))).collect();
            forgotten += usize::from(kept.is_empty());
            let Some((time, place)) = kept.pop_front() else { return false };
            *alike = Alike { time, place, later: kept };
            true
        });
        self.forgotten += forgotten as u64;
    }

    /// The next one that was seen before `until`, or for which there is no room; it waits no longer.
    pub(super) fn leave(&mut self, until: i128) -> Option<(Nanos, usize)> {
        while let Some(&(time, identity)) = self.order.front() {
            let due = i128::from(time) < until;
            if !due && !self.overdue {
                return None;
            }
            self.order.pop_front();
            self.overdue = self.order.len() > MOST;
            if self.by_identity.get(&identity).is_some_and(|alike| alike.time == time) {
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
            waiting.put(identity, time, time as usize);
        }
        assert_eq!(waiting.take(7), Some((1, 1)));
        assert_eq!(waiting.leave(2), None);
        assert_eq!(waiting.leave(4), Some((2, 2)));
        assert_eq!(waiting.leave(4), Some((3, 3)));
        assert_eq!(waiting.leave(4), None);
        assert_eq!(waiting.take(7), Some((4, 4)));
        assert_eq!((waiting.take(7), waiting.leave(9)), (None, None));
    }

    #[test]
    fn there_is_no_room_for_all() {
        let mut waiting = Waiting::default();
        for number in 0..=MOST as u64 {
            waiting.put(number, number, 0);
        }
        assert_eq!(waiting.leave(0), Some((0, 0)));
        assert_eq!((waiting.leave(0), waiting.forgotten), (None, 1));
    }
}
