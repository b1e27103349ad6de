//! What happens next: the pending events in their total order.
//!
//! Almost every event of a network of fixed delays is scheduled at "now plus a constant". Events
//! with the same constant come due in the order in which they were scheduled, so each constant
//! gets a *delay line*, a plain first-in first-out queue, and the next event of all is the
//! earliest of the lines' heads. That costs a few instructions where a heap
//! of everything pending costs a few hundred. What would not come due in order on its line goes
//! to a heap of stragglers, so the order never depends on the assumption.
//!
//! The order is total: by time, at equal times by line (as [`Place`] lists them, then by class),
//! within a line by the order of scheduling; stragglers follow the lines. Timers come last, so
//! that an acknowledgement that arrives just when a timer expires is heard first.

mod delay_line;
mod heads;
mod timers;
pub mod wheel;

use crate::clock::Nanos;
use crate::packet::Packet;
pub(crate) use delay_line::DelayLine;
pub(crate) use heads::{Heads, LAST};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
pub use timers::Timer;
use timers::Timers;

/// Where a packet is when its event comes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// An acknowledgement that had to wait reaches its sender.
    Sender,
    /// A data packet has reached its receiver, and what it answers the return bottleneck.
    Return,
    /// The same, for the first packet that waits behind another of its source on the egress link.
    ReturnSecond,
    /// The same, for a packet whose predecessor there has just gone.
    ReturnQueued,
    /// A data packet reaches the bottleneck after another of its source.
    BottleneckQueued,
    /// A data packet reaches the bottleneck from a source that is farther away than others.
    Bottleneck,
}

/// All places, in their order.
const PLACES: [Place; 6] = [
    Place::Sender,
    Place::Return,
    Place::ReturnSecond,
    Place::ReturnQueued,
    Place::BottleneckQueued,
    Place::Bottleneck,
];

/// The next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet is somewhere.
    Packet(Place, Packet),
    /// A timer of a source may have expired.
    Timer(Timer, u32),
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
pub struct EventQueue {
    classes: usize,
    lines: Vec<DelayLine>,
    /// What the packets of each line are about to do, and their class.
    places: Vec<(Place, u16)>,
    stragglers: BinaryHeap<Reverse<Straggler>>,
    scheduled: u64,
    timers: Timers,
    heads: Heads,
    #[cfg(debug_assertions)]
    now: Nanos,
}

impl EventQueue {
    /// An empty event_queue for `classes` classes of sources.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        let lines = PLACES.len() * classes;
        Self {
            classes,
            lines: vec![DelayLine::default(); lines],
            places: (0..lines)
                .map(|line| (PLACES[line / classes], (line % classes) as u16))
                .collect(),
            stragglers: BinaryHeap::new(),
            scheduled: 0,
            timers: Timers::new(),
            heads: Heads::new(lines + 2),
            #[cfg(debug_assertions)]
            now: 0,
        }
    }

    /// Schedules a packet of class `class`.
    #[inline(always)]
    pub fn schedule(&mut self, place: Place, class: usize, time: Nanos, packet: Packet) {
        if !self.schedule_in_order(place, class, time, packet) {
            self.push_straggler(place as usize * self.classes + class, time, packet);
        }
    }

    /// Schedules a packet if that keeps its line in order; says whether it did.
    #[inline(always)]
    pub fn schedule_in_order(
        &mut self,
        place: Place,
        class: usize,
        time: Nanos,
        packet: Packet,
    ) -> bool {
        self.check_order(time);
        let at = place as usize * self.classes + class;
        let line = &mut self.lines[at];
        let goes = line.push(time, packet);
        if goes && line.len() == 1 {
            self.heads.set(at, time);
        }
        goes
    }

    /// Schedules a packet that may come due a little before others on its line.
    #[inline(always)]
    pub fn schedule_nearly_in_order(
        &mut self,
        place: Place,
        class: usize,
        time: Nanos,
        packet: Packet,
    ) {
        if !self.schedule_in_order(place, class, time, packet) {
            self.insert(place as usize * self.classes + class, time, packet);
        }
    }

    #[cold]
    fn insert(&mut self, line: usize, time: Nanos, packet: Packet) {
        match self.lines[line].insert(time, packet) {
            Some(0) => self.heads.set(line, time),
            Some(_) => {}
            None => self.push_straggler(line, time, packet),
        }
    }

    #[cold]
    fn push_straggler(&mut self, line: usize, time: Nanos, packet: Packet) {
        self.scheduled += 1;
        let key = (time, line as u32, self.scheduled);
        self.stragglers.push(Reverse(Straggler { key, packet }));
        let queue = self.lines.len();
        self.heads.set(queue, time.min(self.heads.of(queue)));
    }

    /// Sets a timer of a source, or of a class.
    pub fn set_timer(&mut self, timer: Timer, source: u32, time: Nanos) {
        self.check_order(time);
        let time = time.min(LAST);
        self.timers.set(timer, source, time);
        let queue = self.lines.len() + 1;
        self.heads.set(queue, time.min(self.heads.of(queue)));
    }

    /// The queue that holds the next event and when it is due, `heads::LAST` if there is none.
    #[inline(always)]
    #[must_use]
    pub fn next(&self) -> (usize, Nanos) {
        self.heads.first()
    }

    /// When the first packet of a class comes to a place, `heads::LAST` if none is on its way.
    #[inline(always)]
    #[must_use]
    pub fn next_arrival(&self, place: Place, class: usize) -> Nanos {
        self.heads.of(place as usize * self.classes + class)
    }

    /// What the packets of a queue are about to do, and their class; `None` if it is one of the heaps.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, queue: usize) -> Option<(Place, u16)> {
        self.places.get(queue).copied()
    }

    /// The packets of a queue in the order in which they come; it has a place.
    pub fn packets(&self, queue: usize) -> impl Iterator<Item = &Packet> {
        self.lines[queue].packets()
    }

    /// Takes the packet that [`EventQueue::next`] has just told of; its queue has a place.
    #[inline(always)]
    pub fn take(&mut self, queue: usize, due: Nanos) -> Packet {
        self.advance_to(due);
        let line = &mut self.lines[queue];
        let packet = line.take();
        self.heads.set(queue, line.first().unwrap_or(LAST));
        packet
    }

    /// Takes the event that [`EventQueue::next`] has just told of; its queue has no place.
    #[inline(always)]
    pub fn take_from_heap(&mut self, queue: usize, due: Nanos) -> Event {
        self.advance_to(due);
        let (event, next) = if queue == self.lines.len() {
            let Reverse(first) = self.stragglers.pop().expect("the head of the heap was seen");
            let next = self.stragglers.peek().map_or(LAST, |s| s.0.key.0);
            (Event::Packet(self.places[first.key.1 as usize].0, first.packet), next)
        } else {
            let (timer, source, next) = self.timers.take();
            (Event::Timer(timer, source), next)
        };
        self.heads.set(queue, next);
        event
    }

    /// Time never goes back: checked where debug assertions are on.
    #[inline(always)]
    fn check_order(&self, _time: Nanos) {
        #[cfg(debug_assertions)]
        assert!(_time >= self.now, "an event at {_time} in the past of {}", self.now);
    }

    #[inline(always)]
    fn advance_to(&mut self, _time: Nanos) {
        self.check_order(_time);
        #[cfg(debug_assertions)]
        {
            self.now = _time;
        }
    }

    /// Packets pending, by whether the test holds for them.
    pub fn count(&self, test: impl Fn(&Packet) -> bool) -> u64 {
        let on_lines = self.lines.iter().flat_map(DelayLine::packets).filter(|p| test(p)).count();
        let astray = self.stragglers.iter().filter(|s| test(&s.0.packet)).count();
        (on_lines + astray) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Label;
    use proptest::prelude::*;

    fn packet(number: u32) -> Packet {
        Packet::new(0, 1, number, Label::default())
    }

    proptest! {
        /// Whatever is scheduled comes out by time, then line, then order of scheduling.
        #[test]
        fn the_order_is_total(
            events in prop::collection::vec((0_u64..50, 0..PLACES.len(), 0_usize..3), 1..200),
        ) {
            let mut event_queue = EventQueue::new(3);
            let mut expected = Vec::new();
            for (number, (time, place, class)) in events.into_iter().enumerate() {
                event_queue.schedule(PLACES[place], class, time, packet(number as u32));
                expected.push((time, place * 3 + class, number as u32));
            }
            expected.sort_unstable();
            let mut last = 0;
            let mut found = Vec::new();
            loop {
                let (queue, due) = event_queue.next();
                if due == LAST {
                    break;
                }
                prop_assert!(due >= last);
                last = due;
                let event = match event_queue.place(queue) {
                    Some((place, _)) => Event::Packet(place, event_queue.take(queue, due)),
                    None => event_queue.take_from_heap(queue, due),
                };
                if let Event::Packet(place, packet) = event {
                    found.push((last, place, packet.number()));
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
        let mut event_queue = EventQueue::new(1);
        event_queue.set_timer(Timer::Pacing, 1, 10);
        event_queue.set_timer(Timer::Retransmission, 4, 10);
        event_queue.set_timer(Timer::DelayedAck, 5, 10);
        event_queue.schedule(Place::Bottleneck, 0, 10, packet(1));
        event_queue.schedule(Place::Sender, 0, 10, packet(2));
        let mut take = || {
            let (queue, due) = event_queue.next();
            match event_queue.place(queue) {
                Some((place, _)) => Event::Packet(place, event_queue.take(queue, due)),
                None => event_queue.take_from_heap(queue, due),
            }
        };
        assert_eq!(take(), Event::Packet(Place::Sender, packet(2)));
        assert_eq!(take(), Event::Packet(Place::Bottleneck, packet(1)));
        assert_eq!(take(), Event::Timer(Timer::DelayedAck, 5));
        assert_eq!(take(), Event::Timer(Timer::Retransmission, 4));
        assert_eq!(take(), Event::Timer(Timer::Pacing, 1));
        assert_eq!(event_queue.next().1, LAST);
    }
}
