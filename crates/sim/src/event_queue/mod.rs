//! Event queue: pending events in a total order.
//!
//! Almost every event of a network with fixed delays is scheduled at "now plus a constant". Events
//! with the same constant occur in the order of scheduling, so each constant has a *delay line*, a
//! plain first-in first-out queue, and the next event is the earliest head of the lines. This takes
//! a few instructions, compared with a few hundred for a heap of all events. Events that would be
//! out of order on their line are stored in a heap of stragglers, so the order does not depend on
//! the assumption.
//!
//! Events are ordered by time; at equal times by line (in the order of [`PacketPlace`], then by
//! class); and within a line by the order of scheduling. Stragglers follow the lines. Timers are
//! last, so an acknowledgement that arrives exactly when a timer expires is processed first.

mod delay_line;
mod queue_heads;
pub mod timer_wheel;
mod timers;

use crate::clock::Nanos;
use crate::packet::Packet;
pub(crate) use delay_line::DelayLine;
pub(crate) use queue_heads::{MAX_TIME, QueueHeads};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use timers::PendingTimers;
pub use timers::TimerKind;

/// Place of a packet at its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketPlace {
    /// An acknowledgement that waited reaches its sender.
    Sender,
    /// A data packet has reached its receiver, and the response the return bottleneck.
    Return,
    /// As `Return`, for the first packet that waits behind another packet of its source on the
    /// egress link.
    ReturnSecond,
    /// As `Return`, for a packet whose predecessor has just left the egress link.
    ReturnQueued,
    /// A data packet reaches the first shared hop behind another packet of its source.
    BottleneckQueued,
    /// A data packet reaches the first shared hop.
    Bottleneck,
}

/// All places in order.
const PACKET_PLACES: [PacketPlace; 6] = [
    PacketPlace::Sender,
    PacketPlace::Return,
    PacketPlace::ReturnSecond,
    PacketPlace::ReturnQueued,
    PacketPlace::BottleneckQueued,
    PacketPlace::Bottleneck,
];

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkEvent {
    /// A packet at a place.
    Packet(PacketPlace, Packet),
    /// A timer of a source or class.
    Timer(TimerKind, u32),
}

/// A packet scheduled out of order on its line; the key is time, line, order of scheduling.
#[derive(Debug)]
struct OutOfOrderPacket {
    key: (Nanos, u32, u64),
    packet: Packet,
}

impl PartialEq for OutOfOrderPacket {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for OutOfOrderPacket {}
impl PartialOrd for OutOfOrderPacket {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for OutOfOrderPacket {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// The pending events of one run.
#[derive(Debug)]
pub struct EventQueue {
    classes: usize,
    lines: Vec<DelayLine>,
    /// Place and class of each line.
    places: Vec<(PacketPlace, u16)>,
    stragglers: BinaryHeap<Reverse<OutOfOrderPacket>>,
    scheduled: u64,
    timers: PendingTimers,
    heads: QueueHeads,
    #[cfg(debug_assertions)]
    now: Nanos,
}

impl EventQueue {
    /// Creates an empty queue for `classes` classes of sources.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        let lines = PACKET_PLACES.len() * classes;
        Self {
            classes,
            lines: vec![DelayLine::default(); lines],
            places: (0..lines)
                .map(|line| (PACKET_PLACES[line / classes], (line % classes) as u16))
                .collect(),
            stragglers: BinaryHeap::new(),
            scheduled: 0,
            timers: PendingTimers::new(),
            heads: QueueHeads::new(lines + 2),
            #[cfg(debug_assertions)]
            now: 0,
        }
    }

    /// Schedules the event of a packet of class `class`.
    #[inline(always)]
    pub fn schedule_packet(
        &mut self,
        place: PacketPlace,
        class: usize,
        time: Nanos,
        packet: Packet,
    ) {
        if !self.schedule_in_order(place, class, time, packet) {
            self.push_straggler(place as usize * self.classes + class, time, packet);
        }
    }

    /// Schedules a packet if this keeps its line in order. Returns true if the packet was
    /// scheduled.
    #[inline(always)]
    pub fn schedule_in_order(
        &mut self,
        place: PacketPlace,
        class: usize,
        time: Nanos,
        packet: Packet,
    ) -> bool {
        self.assert_not_in_past(time);
        let index = place as usize * self.classes + class;
        let line = &mut self.lines[index];
        let is_in_order = line.push_in_order(time, packet);
        if is_in_order && line.len() == 1 {
            self.heads.set_head(index, time);
        }
        is_in_order
    }

    /// Schedules a packet that may precede a few earlier scheduled packets on its line.
    #[inline(always)]
    pub fn schedule_with_overtaking(
        &mut self,
        place: PacketPlace,
        class: usize,
        time: Nanos,
        packet: Packet,
    ) {
        if !self.schedule_in_order(place, class, time, packet) {
            self.insert_into_line_or_heap(place as usize * self.classes + class, time, packet);
        }
    }

    #[cold]
    fn insert_into_line_or_heap(&mut self, line: usize, time: Nanos, packet: Packet) {
        match self.lines[line].insert_by_time(time, packet) {
            Some(0) => self.heads.set_head(line, time),
            Some(_) => {}
            None => self.push_straggler(line, time, packet),
        }
    }

    #[cold]
    fn push_straggler(&mut self, line: usize, time: Nanos, packet: Packet) {
        self.scheduled += 1;
        let key = (time, line as u32, self.scheduled);
        self.stragglers.push(Reverse(OutOfOrderPacket { key, packet }));
        let queue = self.lines.len();
        self.heads.set_head(queue, time.min(self.heads.head_time(queue)));
    }

    /// Sets a timer of a source or class.
    pub fn set_timer(&mut self, timer: TimerKind, source: u32, time: Nanos) {
        self.assert_not_in_past(time);
        let time = time.min(MAX_TIME);
        self.timers.set_timer(timer, source, time);
        let queue = self.lines.len() + 1;
        self.heads.set_head(queue, time.min(self.heads.head_time(queue)));
    }

    /// Queue and time of the next event; time `heads::MAX_TIME` if there is none.
    #[inline(always)]
    #[must_use]
    pub fn next_event(&self) -> (usize, Nanos) {
        self.heads.earliest_head()
    }

    /// Time of the first packet of a class at a place; `heads::MAX_TIME` if there is none.
    #[inline(always)]
    #[must_use]
    pub fn next_arrival(&self, place: PacketPlace, class: usize) -> Nanos {
        self.heads.head_time(place as usize * self.classes + class)
    }

    /// Place and class of the packets of a queue; `None` for the stragglers and timers.
    #[inline(always)]
    #[must_use]
    pub fn place_and_class_of(&self, queue: usize) -> Option<(PacketPlace, u16)> {
        self.places.get(queue).copied()
    }

    /// Packets of a delay line in order.
    pub fn pending_packets(&self, queue: usize) -> impl Iterator<Item = &Packet> {
        self.lines[queue].packets()
    }

    /// Takes the packet that [`EventQueue::next_event`] has just returned, from a delay line.
    #[inline(always)]
    pub fn take_packet_from_line(&mut self, queue: usize, due: Nanos) -> Packet {
        self.advance_to(due);
        let line = &mut self.lines[queue];
        let packet = line.take_first();
        self.heads.set_head(queue, line.first_time().unwrap_or(MAX_TIME));
        packet
    }

    /// Takes the event that [`EventQueue::next_event`] has just returned, from the stragglers or
    /// timers.
    #[inline(always)]
    pub fn take_straggler_or_timer(&mut self, queue: usize, due: Nanos) -> NetworkEvent {
        self.advance_to(due);
        let (event, next) = if queue == self.lines.len() {
            let Reverse(first) = self.stragglers.pop().expect("the head of the heap was seen");
            let next = self.stragglers.peek().map_or(MAX_TIME, |s| s.0.key.0);
            (NetworkEvent::Packet(self.places[first.key.1 as usize].0, first.packet), next)
        } else {
            let (timer, source, next) = self.timers.take_first();
            (NetworkEvent::Timer(timer, source), next)
        };
        self.heads.set_head(queue, next);
        event
    }

    /// Checks in debug builds that `time` is not in the past.
    #[inline(always)]
    fn assert_not_in_past(&self, _time: Nanos) {
        #[cfg(debug_assertions)]
        assert!(_time >= self.now, "an event at {_time} in the past of {}", self.now);
    }

    #[inline(always)]
    fn advance_to(&mut self, _time: Nanos) {
        self.assert_not_in_past(_time);
        #[cfg(debug_assertions)]
        {
            self.now = _time;
        }
    }

    /// Number of pending packets for which `test` returns true.
    pub fn count_pending_packets(&self, test: impl Fn(&Packet) -> bool) -> u64 {
        let on_lines = self.lines.iter().flat_map(DelayLine::packets).filter(|p| test(p)).count();
        let stragglers = self.stragglers.iter().filter(|s| test(&s.0.packet)).count();
        (on_lines + stragglers) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketLabel;
    use proptest::prelude::*;

    fn packet(number: u32) -> Packet {
        Packet::new(0, 1, number, PacketLabel::default())
    }

    proptest! {
        /// Events are taken by time, then by line, then in the order of scheduling.
        #[test]
        fn events_are_taken_in_order_of_time(
            events in prop::collection::vec((0_u64..50, 0..PACKET_PLACES.len(), 0_usize..3), 1..200),
        ) {
            let mut event_queue = EventQueue::new(3);
            let mut expected = Vec::new();
            for (number, (time, place, class)) in events.into_iter().enumerate() {
                event_queue.schedule_packet(PACKET_PLACES[place], class, time, packet(number as u32));
                expected.push((time, place * 3 + class, number as u32));
            }
            expected.sort_unstable();
            let mut last = 0;
            let mut taken = Vec::new();
            loop {
                let (queue, due) = event_queue.next_event();
                if due == MAX_TIME {
                    break;
                }
                prop_assert!(due >= last);
                last = due;
                let event = match event_queue.place_and_class_of(queue) {
                    Some((place, _)) => NetworkEvent::Packet(place, event_queue.take_packet_from_line(queue, due)),
                    None => event_queue.take_straggler_or_timer(queue, due),
                };
                if let NetworkEvent::Packet(place, packet) = event {
                    taken.push((last, place, packet.number()));
                }
            }
            // Compares times only: stragglers follow the lines at equal times, so the order within
            // one time may differ from the plain sort.
            prop_assert_eq!(taken.len(), expected.len());
            let times: Vec<_> = taken.iter().map(|f| f.0).collect();
            let wanted: Vec<_> = expected.iter().map(|e| e.0).collect();
            prop_assert_eq!(times, wanted);
        }
    }

    #[test]
    fn acks_precede_data_and_timers_at_equal_times() {
        let mut event_queue = EventQueue::new(1);
        event_queue.set_timer(TimerKind::Pacing, 1, 10);
        event_queue.set_timer(TimerKind::Retransmission, 4, 10);
        event_queue.set_timer(TimerKind::DelayedAck, 5, 10);
        event_queue.schedule_packet(PacketPlace::Bottleneck, 0, 10, packet(1));
        event_queue.schedule_packet(PacketPlace::Sender, 0, 10, packet(2));
        let mut take = || {
            let (queue, due) = event_queue.next_event();
            match event_queue.place_and_class_of(queue) {
                Some((place, _)) => {
                    NetworkEvent::Packet(place, event_queue.take_packet_from_line(queue, due))
                }
                None => event_queue.take_straggler_or_timer(queue, due),
            }
        };
        assert_eq!(take(), NetworkEvent::Packet(PacketPlace::Sender, packet(2)));
        assert_eq!(take(), NetworkEvent::Packet(PacketPlace::Bottleneck, packet(1)));
        assert_eq!(take(), NetworkEvent::Timer(TimerKind::DelayedAck, 5));
        assert_eq!(take(), NetworkEvent::Timer(TimerKind::Retransmission, 4));
        assert_eq!(take(), NetworkEvent::Timer(TimerKind::Pacing, 1));
        assert_eq!(event_queue.next_event().1, MAX_TIME);
    }
}
