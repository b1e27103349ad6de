//! What happens next: the pending events in their total order.
//!
//! Almost every event of a network of fixed delays is scheduled at "now plus a constant". Events
//! with the same constant come due in the order in which they were scheduled, so each constant
//! gets a *delay line*, a plain first-in first-out queue, and the next event of all is the
//! earliest of the lines' heads, kept by a tournament. That costs a few instructions where a heap
//! of everything pending costs a few hundred. What would not come due in order on its line goes
//! to a heap of stragglers, so the order never depends on the assumption.
//!
//! The order is total: by time, at equal times by line (as [`Role`] lists them, then by class),
//! within a line by the order of scheduling; stragglers follow the lines. Timers come last, so
//! that an acknowledgement that arrives just when a timer expires is heard first.

use crate::clock::{NEVER, Nanos};
use crate::packet::Packet;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Where a packet is when its event comes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// An acknowledgement reaches its sender.
    AtSender,
    /// A data packet has reached its receiver, and what it answers the return bottleneck.
    AtReturn,
    /// The same, for a packet that waited behind another of its source on the egress link.
    AtReturnQueued,
    /// A data packet reaches the bottleneck.
    AtBottleneck,
    /// The same, for a packet that waited behind another of its source on the ingress link.
    AtBottleneckQueued,
}

/// How many roles there are.
const ROLES: usize = 5;
const ROLE_OF: [Role; ROLES] = [
    Role::AtSender,
    Role::AtReturn,
    Role::AtReturnQueued,
    Role::AtBottleneck,
    Role::AtBottleneckQueued,
];

/// What a timer is for. At equal times the order is this one, then that of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A receiver's delayed acknowledgement.
    DelayedAck,
    /// A sender's retransmission timer.
    Retransmission,
    /// The end of a silence.
    Start,
}

/// The next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet is somewhere.
    Packet(Role, Packet),
    /// A timer of a source may have expired.
    Timer(Timer, u32),
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    time: Nanos,
    packet: Packet,
}

/// A straggler: time, line, order of scheduling, packet.
#[derive(Debug)]
struct Straggler {
    key: (Nanos, u32, u64),
    packet: Packet,
}

impl PartialEq for Straggler {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Straggler {}
impl PartialOrd for Straggler {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Straggler {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// The pending events of one run.
#[derive(Debug)]
pub struct Agenda {
    classes: usize,
    lines: Vec<VecDeque<Pending>>,
    stragglers: BinaryHeap<Reverse<Straggler>>,
    scheduled: u64,
    timers: BinaryHeap<Reverse<(Nanos, Timer, u32)>>,
    heads: Vec<Nanos>,
    winners: Vec<u32>,
    now: Nanos,
}

impl Agenda {
    /// An empty agenda for `classes` classes of sources.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        let lines = ROLES * classes;
        let leaves = (lines + 2).next_power_of_two();
        let mut agenda = Self {
            classes,
            lines: vec![VecDeque::new(); lines],
            stragglers: BinaryHeap::new(),
            scheduled: 0,
            timers: BinaryHeap::new(),
            heads: vec![NEVER; leaves],
            winners: vec![0; leaves],
            now: 0,
        };
        for leaf in 0..leaves {
            agenda.replay(leaf);
        }
        agenda
    }

    /// Schedules a packet of class `class`.
    #[inline]
    pub fn packet(&mut self, role: Role, class: usize, time: Nanos, packet: Packet) {
        debug_assert!(time >= self.now, "scheduled in the past");
        let at = role as usize * self.classes + class;
        let line = &mut self.lines[at];
        match line.back() {
            Some(last) if last.time > time => self.straggler(at, time, packet),
            Some(_) => line.push_back(Pending { time, packet }),
            None => {
                line.push_back(Pending { time, packet });
                self.heads[at] = time;
                self.replay(at);
            }
        }
    }

    #[cold]
    fn straggler(&mut self, line: usize, time: Nanos, packet: Packet) {
        self.scheduled += 1;
        let key = (time, line as u32, self.scheduled);
        self.stragglers.push(Reverse(Straggler { key, packet }));
        let leaf = self.lines.len();
        if time < self.heads[leaf] {
            self.heads[leaf] = time;
            self.replay(leaf);
        }
    }

    /// Sets a timer of a source.
    pub fn timer(&mut self, timer: Timer, source: u32, time: Nanos) {
        debug_assert!(time >= self.now, "a timer in the past");
        self.timers.push(Reverse((time, timer, source)));
        let leaf = self.lines.len() + 1;
        if time < self.heads[leaf] {
            self.heads[leaf] = time;
            self.replay(leaf);
        }
    }

    /// When the next event is due, [`NEVER`] if none is.
    #[inline]
    #[must_use]
    pub fn next_time(&self) -> Nanos {
        self.heads[self.winners[1] as usize]
    }

    /// Takes the next event, which is due at [`Agenda::next_time`]; there must be one.
    #[inline]
    pub fn take(&mut self) -> Event {
        let leaf = self.winners[1] as usize;
        debug_assert!(self.heads[leaf] >= self.now, "time went back");
        self.now = self.heads[leaf];
        if let Some(line) = self.lines.get_mut(leaf) {
            let head = line.pop_front().expect("the head of the line was seen");
            self.heads[leaf] = line.front().map_or(NEVER, |next| next.time);
            self.replay(leaf);
            Event::Packet(ROLE_OF[leaf / self.classes], head.packet)
        } else {
            self.take_from_heap(leaf)
        }
    }

    fn take_from_heap(&mut self, leaf: usize) -> Event {
        let event = if leaf == self.lines.len() {
            let Reverse(next) = self
                .stragglers
                .pop()
                .expect("the head of the heap was seen");
            self.heads[leaf] = self.stragglers.peek().map_or(NEVER, |s| s.0.key.0);
            Event::Packet(ROLE_OF[next.key.1 as usize / self.classes], next.packet)
        } else {
            let Reverse((_, timer, source)) = self.timers.pop().expect("a timer was seen");
            self.heads[leaf] = self.timers.peek().map_or(NEVER, |t| t.0.0);
            Event::Timer(timer, source)
        };
        self.replay(leaf);
        event
    }

    /// Packets pending, by whether the test holds for them.
    pub fn count(&self, test: impl Fn(&Packet) -> bool) -> u64 {
        let on_lines = self
            .lines
            .iter()
            .flatten()
            .filter(|p| test(&p.packet))
            .count();
        let astray = self.stragglers.iter().filter(|s| test(&s.0.packet)).count();
        (on_lines + astray) as u64
    }

    /// Replays the matches of one leaf up to the root; at equal times the lower leaf wins.
    #[inline]
    fn replay(&mut self, leaf: usize) {
        let leaves = self.heads.len();
        let mut node = (leaves + leaf) / 2;
        while node >= 1 {
            let (left, right) = (2 * node, 2 * node + 1);
            let (a, b) = if left >= leaves {
                (left - leaves, right - leaves)
            } else {
                (self.winners[left] as usize, self.winners[right] as usize)
            };
            self.winners[node] = if self.heads[b] < self.heads[a] { b } else { a } as u32;
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Kind;
    use proptest::prelude::*;

    fn packet(number: u32) -> Packet {
        Packet {
            source: 0,
            connection: 1,
            number,
            kind: Kind::Data,
        }
    }

    proptest! {
        /// Whatever is scheduled comes out by time, then line, then order of scheduling.
        #[test]
        fn the_order_is_total(
            events in prop::collection::vec((0_u64..50, 0_usize..5, 0_usize..3), 1..200),
        ) {
            let mut agenda = Agenda::new(3);
            let mut expected = Vec::new();
            for (number, (time, role, class)) in events.into_iter().enumerate() {
                agenda.packet(ROLE_OF[role], class, time, packet(number as u32));
                expected.push((time, role * 3 + class, number as u32));
            }
            expected.sort_unstable();
            let mut last = 0;
            let mut found = Vec::new();
            while agenda.next_time() != NEVER {
                prop_assert!(agenda.next_time() >= last);
                last = agenda.next_time();
                if let Event::Packet(role, packet) = agenda.take() {
                    found.push((last, role, packet.number));
                }
            }
            // Stragglers come after the lines at equal times, so the order within one time may
            // differ from the plain sort only by that; times and contents may not.
            prop_assert_eq!(found.len(), expected.len());
            let times: Vec<_> = found.iter().map(|f| f.0).collect();
            let wanted: Vec<_> = expected.iter().map(|e| e.0).collect();
            prop_assert_eq!(times, wanted);
        }
    }

    #[test]
    fn at_equal_times_acks_come_before_data_and_timers_last() {
        let mut agenda = Agenda::new(1);
        agenda.timer(Timer::Retransmission, 4, 10);
        agenda.timer(Timer::DelayedAck, 5, 10);
        agenda.packet(Role::AtBottleneck, 0, 10, packet(1));
        agenda.packet(Role::AtSender, 0, 10, packet(2));
        assert_eq!(agenda.take(), Event::Packet(Role::AtSender, packet(2)));
        assert_eq!(agenda.take(), Event::Packet(Role::AtBottleneck, packet(1)));
        assert_eq!(agenda.take(), Event::Timer(Timer::DelayedAck, 5));
        assert_eq!(agenda.take(), Event::Timer(Timer::Retransmission, 4));
        assert_eq!(agenda.next_time(), NEVER);
    }
}
