//! Followers on threads of their own, where there are processors for them.
//!
//! A connection is always followed by the same one, by its place. What they are told goes out in batches, of which a
//! few at most are in progress; reports come back with the turn in which their connections ended.

use std::sync::mpsc::{Receiver, channel};

use super::batch::{Batch, MOST_SEGMENTS, Step};
use super::follower::Follower;
use super::live::Beginning;
use super::worker::{Found, IN_PROGRESS, Work, Worker, reports};
use crate::analysis::ConnectionReport;
use crate::segment::{Nanos, Segment};

/// Events that a segment can bring: one by what it acknowledges, two by what it retransmits.
const EVENTS: usize = 3;

/// A report, and whose turn it is among all.
type Turned = (u64, ConnectionReport);

impl Work for Follower {
    type Batch = Batch;
    type Report = Turned;

    fn work(&mut self, batch: &mut Batch) -> Vec<Turned> {
        let found = self.follow(batch);
        batch.clear();
        found
    }
}

#[derive(Debug)]
struct Member {
    batch: Batch,
    worker: Worker<Follower>,
}

impl Member {
    fn send(&mut self) {
        if !self.batch.steps.is_empty() {
            self.batch = self.worker.tell(std::mem::take(&mut self.batch));
        }
    }
}

/// Followers on threads.
#[derive(Debug)]
pub(super) struct Team {
    members: Vec<Member>,
    /// A power of two.
    shift: u32,
    found: Receiver<Found<Turned>>,
}

impl Team {
    /// Two to the power of `shift` share what a follower knows; `None` if there are no threads to be had.
    pub(super) fn new(home: &mut Follower, shift: u32) -> Option<Self> {
        let (sender, found) = channel();
        let start = |_| Worker::start("connections", sender.clone());
        let workers = (0..1 << shift).map(start).collect::<Option<Vec<_>>>()?;
        let shares = home.split(shift).into_iter().zip(workers);
        let members = shares.map(|(share, worker)| {
            worker.hand(share);
            Member { batch: Batch::default(), worker }
        });
        Some(Self { members: members.collect(), shift, found })
    }

    pub(super) fn shift(&self) -> u32 {
        self.shift
    }

    /// What is to be done at a place. Whether a batch has gone out.
    #[inline]
    pub(super) fn tell(&mut self, place: usize, step: Step) -> bool {
        self.add(place, |batch, own| batch.tell(own, step))
    }

    /// The same: how the connection of a place begins.
    pub(super) fn meet(&mut self, place: usize, beginning: &Beginning) -> bool {
        self.add(place, |batch, own| batch.meet(own, beginning))
    }

    /// A log that a place is to follow. Whether a batch has gone out.
    #[inline]
    pub(super) fn settle(&mut self, place: usize, log: &[u8]) -> bool {
        self.add(place, |batch, own| batch.add(own, log))
    }

    /// The same of one segment; `last`: the latest time of those before it.
    #[inline]
    pub(super) fn push(
        &mut self,
        place: usize,
        segment: &Segment,
        from: usize,
        last: Nanos,
    ) -> bool {
        self.add(place, |batch, own| batch.push(own, segment, from, last))
    }

    #[inline(always)]
    fn add(&mut self, place: usize, what: impl FnOnce(&mut Batch, usize)) -> bool {
        let member = &mut self.members[place & ((1 << self.shift) - 1)];
        what(&mut member.batch, place >> self.shift);
        let full = member.batch.is_full();
        if full {
            member.send();
        }
        full
    }

    /// Reports that have come, by their turns; `wait`: for at least one, unless none is to come.
    pub(super) fn found(&mut self, wait: bool) -> Vec<Turned> {
        let mut first = None;
        if wait {
            self.members.iter_mut().for_each(Member::send);
            first = self.found.recv().ok();
        }
        first.into_iter().chain(self.found.try_iter()).flat_map(reports).collect()
    }

    /// The threads end; `home` takes back what they know. The reports that are left.
    pub(super) fn dissolve(mut self, home: &mut Follower) -> Vec<Turned> {
        self.members.iter_mut().for_each(Member::send);
        let members = std::mem::take(&mut self.members);
        let parts = members.into_iter().filter_map(|member| member.worker.end()).collect();
        // Before what is missing is missed: of one that panicked, this says so.
        let found = self.found(false);
        home.join(parts, self.shift);
        found
    }
}

/// Events that may come of what is in progress in a team of two to the power of `shift`.
pub(super) fn most_events(shift: u32) -> usize {
    (IN_PROGRESS * MOST_SEGMENTS * EVENTS) << shift
}
