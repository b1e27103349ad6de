//! Followers on threads of their own, where there are processors for them.
//!
//! A connection is always followed by the same one, by its place. What they are told goes out in batches, of which a
//! few at most are in progress; reports come back with the turn in which their connections ended.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::batch::{Batch, MOST_SEGMENTS, Step};
use super::follower::Follower;
use crate::analysis::ConnectionReport;
use crate::segment::{Nanos, Segment};

/// Batches that wait for a follower.
const QUEUED: usize = 4;
/// Events that a segment can bring: one by what it acknowledges, two by what it retransmits.
const EVENTS: usize = 3;

/// Reports with their turns, or what a follower panicked with.
type Found = Result<Vec<(u64, ConnectionReport)>, Box<dyn Any + Send>>;

#[derive(Debug)]
struct Member {
    batch: Batch,
    batches: SyncSender<Batch>,
    /// Batches that were followed, to be filled again.
    spare: Receiver<Batch>,
    thread: JoinHandle<Option<Follower>>,
}

/// Followers on threads.
#[derive(Debug)]
pub(super) struct Team {
    members: Vec<Member>,
    /// A power of two.
    shift: u32,
    found: Receiver<Found>,
}

impl Team {
    /// Two to the power of `shift` share what a follower knows; `None` if there are no threads to be had.
    pub(super) fn new(home: &mut Follower, shift: u32) -> Option<Self> {
        let (sender, found) = channel();
        let mut started = Vec::new();
        for _ in 0..1 << shift {
            let (hand, taken) = sync_channel(1);
            let (batches, queue) = sync_channel(QUEUED);
            let (emptied, spare) = channel();
            let sender = sender.clone();
            let work = move || work(taken.recv().ok()?, &queue, &emptied, &sender);
            let thread = Builder::new().name("connections".to_owned()).spawn(work).ok()?;
            started.push((hand, batches, spare, thread));
        }
        let shares = home.split(shift).into_iter().zip(started);
        let members = shares.map(|(share, (hand, batches, spare, thread))| {
            // It waits for nothing else: the channel is open.
            let _ = hand.send(share);
            Member { batch: Batch::default(), batches, spare, thread }
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

    /// The same, with the segment that it is about.
    #[inline]
    pub(super) fn show(&mut self, place: usize, step: Step, segment: &Segment) -> bool {
        self.add(place, |batch, own| {
            batch.firsts.push(*segment);
            batch.tell(own, step);
        })
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
    pub(super) fn found(&mut self, wait: bool) -> Vec<(u64, ConnectionReport)> {
        let mut first = None;
        if wait {
            self.members.iter_mut().for_each(Member::send);
            first = self.found.recv().ok();
        }
        let open = |found: Found| found.unwrap_or_else(|panic| resume_unwind(panic));
        first.into_iter().chain(self.found.try_iter()).flat_map(open).collect()
    }

    /// The threads end; `home` takes back what they know. The reports that are left.
    pub(super) fn dissolve(mut self, home: &mut Follower) -> Vec<(u64, ConnectionReport)> {
        self.members.iter_mut().for_each(Member::send);
        let mut parts = Vec::new();
        for Member { batches, thread, .. } in std::mem::take(&mut self.members) {
            drop(batches);
            let part = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            parts.extend(part);
        }
        // Before what is missing is missed: of one that panicked, this says so.
        let found = self.found(false);
        home.join(parts, self.shift);
        found
    }
}

/// Events that may come of what is in progress in a team of two to the power of `shift`.
pub(super) fn most_events(shift: u32) -> usize {
    ((QUEUED + 2) * MOST_SEGMENTS * EVENTS) << shift
}

impl Member {
    fn send(&mut self) {
        if !self.batch.steps.is_empty() {
            // If nobody takes it any more, its follower has said why.
            let next = self.spare.try_recv().unwrap_or_default();
            let _ = self.batches.send(std::mem::replace(&mut self.batch, next));
        }
    }
}

/// What a member does, until no batches come any more; `None` if it panicked.
fn work(
    mut follower: Follower,
    queue: &Receiver<Batch>,
    emptied: &Sender<Batch>,
    sender: &Sender<Found>,
) -> Option<Follower> {
    let all = AssertUnwindSafe(|| {
        for mut batch in queue {
            let found = follower.follow(&batch);
            batch.clear();
            // It is taken again, or not.
            let _ = emptied.send(batch);
            // Nobody listens any more if the whole was given up.
            if !found.is_empty() && sender.send(Ok(found)).is_err() {
                break;
            }
        }
    });
    match catch_unwind(all) {
        Ok(()) => Some(follower),
        Err(panic) => {
            let _ = sender.send(Err(panic));
            None
        }
    }
}
