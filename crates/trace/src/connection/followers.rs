//! Connections are followed at home, or by a team; what is told is the same, and so are the reports.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::Step;
use super::follower::Follower;
use super::live::Beginning;
use super::team::{Team, most_events};
use crate::analysis::{Budget, ConnectionReport, End};
use crate::segment::{Nanos, Segment};

/// Reports that a team is asked for ahead.
const ASKED: usize = 256;

/// Who follows, and the reports that come of it, in the order in which their connections ended.
#[derive(Debug)]
pub(super) struct Followers {
    home: Follower,
    team: Option<Team>,
    budget: Arc<Budget>,
    /// Reports that nobody has taken, some of which are still to come, and the turn of the first.
    reports: VecDeque<Option<ConnectionReport>>,
    first: u64,
}

impl Followers {
    /// One, at home: of a direction so many `events` are kept, of all as many as the budget grants.
    pub(super) fn new(events: usize, budget: Budget) -> Self {
        let budget = Arc::new(budget);
        let home = Follower::new(events, Arc::clone(&budget));
        Self { home, team: None, budget, reports: VecDeque::new(), first: 0 }
    }

    /// From now on two to the power of `shift` follow, on threads of their own, if there are any to be had.
    pub(super) fn part(&mut self, shift: u32) {
        if self.budget.left() >= most_events(shift) {
            self.team = Team::new(&mut self.home, shift);
        }
    }

    /// The same, if others follow by now.
    pub(super) fn part_anew(&mut self, shift: u32) {
        self.come_home();
        self.part(shift);
    }

    /// Begins to follow the connection of a place.
    pub(super) fn meet(&mut self, place: usize, beginning: &Beginning) {
        let Some(team) = &mut self.team else {
            return self.home.meet(place, beginning);
        };
        let gone = team.meet(place, beginning);
        self.sent(gone);
    }

    /// The next segment of a place; `last`: the latest time of those before it.
    #[inline]
    pub(super) fn push(&mut self, place: usize, segment: &Segment, from: usize, last: Nanos) {
        let Some(team) = &mut self.team else {
            return self.home.push(place, segment);
        };
        let gone = team.push(place, segment, from, last);
        self.sent(gone);
    }

    /// Follows what a log of a place says.
    #[inline]
    pub(super) fn settle(&mut self, place: usize, log: &[u8]) {
        let Some(team) = &mut self.team else {
            return self.home.settle(place, log);
        };
        let gone = team.settle(place, log);
        self.sent(gone);
    }

    /// The connection of a place is over; of `copies` frames from each end, each was captured twice.
    pub(super) fn end(&mut self, place: usize, end: End, copies: [u64; 2]) {
        let Some(team) = &mut self.team else {
            return self.reports.extend(self.home.end(place, end, copies).map(Some));
        };
        let turn = self.first + self.reports.len() as u64;
        self.reports.push_back(None);
        let gone = team.tell(place, Step::End { turn, end, copies });
        self.sent(gone);
    }

    /// Fetches from memory what will change at these places.
    pub(super) fn fetch(&self, places: &[usize]) {
        if self.team.is_none() {
            self.home.fetch(places.iter().copied());
        }
    }

    /// The next report, if it is there; `wait`: it is known to come.
    pub(super) fn report(&mut self, wait: bool) -> Option<ConnectionReport> {
        loop {
            if let Some(report) = self.reports.front_mut()?.take() {
                self.reports.pop_front();
                self.first += 1;
                return Some(report);
            }
            let found = self.team.as_mut()?.found(wait);
            if found.is_empty() {
                return None;
            }
            self.note(found);
        }
    }

    /// There is time to ask for more reports: a team makes some ahead, while at home what is made is best taken at once.
    pub(super) fn has_time(&self) -> bool {
        self.reports.len() < if self.team.is_some() { ASKED } else { 1 }
    }

    fn note(&mut self, found: Vec<(u64, ConnectionReport)>) {
        for (turn, report) in found {
            let place = (turn - self.first) as usize;
            if let Some(place) = self.reports.get_mut(place) {
                *place = Some(report);
            }
        }
    }

    /// A batch has gone out, or not. Which events are kept when few may be depends on the order among connections, so
    /// then one follows all, in the order in which it is told, as if there had been no team.
    #[inline]
    fn sent(&mut self, gone: bool) {
        if gone {
            self.come_home_if_scarce();
        }
    }

    fn come_home_if_scarce(&mut self) {
        if self.team.as_ref().is_some_and(|team| self.budget.left() < most_events(team.shift())) {
            self.come_home();
        }
    }

    fn come_home(&mut self) {
        if let Some(team) = self.team.take() {
            let found = team.dissolve(&mut self.home);
            self.note(found);
        }
    }
}
