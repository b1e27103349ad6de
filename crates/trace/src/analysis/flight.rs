//! The segments between the oldest unacknowledged byte and the newest sent: in order, without gaps.

use std::collections::VecDeque;
use std::mem::replace;

use super::scoreboard::Gain;
use crate::segment::Nanos;

/// A stretch of the sequence space that was sent as one, or that nobody saw being sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Its first byte.
    pub(super) start: u64,
    /// When it was first captured; of a hole, when the hole was noticed.
    pub(super) first: Nanos,
    /// When it was last captured.
    pub(super) last: Nanos,
    /// How many sequence numbers it takes.
    pub(super) length: u32,
    /// Timestamp value of the last transmission, 0 without the option.
    pub(super) timestamp: u32,
    /// IPv4 identification of the first transmission, 0 without.
    pub(super) ip_id: u16,
    /// Transmissions captured; 0 is a hole.
    pub(super) sends: u8,
    /// The receiver has said that it holds it.
    pub(super) sacked: bool,
    /// A SYN or a FIN, which take a number each and say nothing about the path under load.
    pub(super) control: bool,
}

impl Sent {
    /// The first byte after it.
    #[inline(always)]
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    /// Sent more than once, so that an ack does not say which transmission it answers.
    #[inline(always)]
    pub(super) fn ambiguous(&self) -> bool {
        self.sends > 1
    }
}

/// What was known of the bytes of a segment that did not continue the sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Overlap {
    /// Bytes that had been captured before.
    pub(super) seen: u64,
    /// Bytes that a hole lacked.
    pub(super) filled: u64,
    /// When the hole was noticed.
    pub(super) noticed: Nanos,
    /// The segment captured after the hole, by which it was noticed: IP identification, timestamp.
    pub(super) after: Option<(u16, u32)>,
    /// When the bytes were last sent.
    pub(super) last_sent: Option<Nanos>,
    /// How often, at most.
    pub(super) sends: u8,
    /// They were acknowledged before they were captured.
    pub(super) disordered: bool,
}

/// A segment as it is kept: it ends where the next begins.
#[derive(Clone, Copy, Debug, Default)]
struct StoredSegment {
    start: u64,
    first: Nanos,
    timestamp: u32,
    ip_id: u16,
    sends: u8,
    marks: u8,
}

const SACKED: u8 = 1;
const CONTROL: u8 = 2;

impl StoredSegment {
    fn of(sent: &Sent) -> Self {
        let Sent { start, first, timestamp, ip_id, sends, sacked, control, .. } = *sent;
        let marks = (u8::from(sacked) * SACKED) | (u8::from(control) * CONTROL);
        Self { start, first, timestamp, ip_id, sends, marks }
    }

    fn hole(start: u64, noticed: Nanos) -> Self {
        Self { start, first: noticed, ..Self::default() }
    }

    /// The same with its end and the time of its last transmission.
    #[inline(always)]
    fn sent(self, end: u64, last: Nanos) -> Sent {
        let Self { start, first, timestamp, ip_id, sends, marks } = self;
        Sent {
            start,
            first,
            last,
            length: u32::try_from(end - start).unwrap_or(u32::MAX),
            timestamp,
            ip_id,
            sends,
            sacked: marks & SACKED != 0,
            control: marks & CONTROL != 0,
        }
    }
}

/// The segments in flight. There are many for each connection that is followed: they are kept in little memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    segments: VecDeque<StoredSegment>,
    /// The first byte after them.
    end: u64,
    /// Where those begin that were sent more than once, and when they were last sent; in order.
    repeated: VecDeque<(u64, Nanos)>,
}

/// More segments than this are not kept: acks are missing from such a capture.
pub(super) const MAX_SEGMENTS: usize = 1 << 15;
/// Room for so many is made at first.
const LEAST: usize = 2;

impl Flight {
    /// Fetches both ends of it from memory.
    #[inline]
    pub(super) fn prefetch(&self) -> u64 {
        let ends = [self.segments.front(), self.segments.back()];
        ends.iter().flatten().fold(0, |sum: u64, kept| sum.wrapping_add(kept.start))
    }

    /// Appends what continues the sequence at `next`; what it jumps over becomes a hole.
    #[inline]
    pub(super) fn append(&mut self, next: u64, sent: Sent) {
        let mut from = next;
        while from < sent.start {
            self.push(StoredSegment::hole(from, sent.first));
            from = sent.start.min(from + u64::from(u32::MAX));
        }
        self.push(StoredSegment::of(&sent));
        self.end = sent.end();
        while self.segments.len() > MAX_SEGMENTS {
            self.pop();
        }
    }

    #[inline]
    fn push(&mut self, kept: StoredSegment) {
        let room = self.segments.capacity();
        if self.segments.len() == room {
            // By half as many: most of them stay as long as they are.
            self.segments.reserve_exact((room / 2).max(LEAST));
        }
        self.segments.push_back(kept);
    }

    /// What begins at `start` was in flight before anything was captured.
    pub(super) fn prepend(&mut self, start: u64, noticed: Nanos) {
        if self.segments.front().is_some_and(|first| first.start > start) {
            self.segments.push_front(StoredSegment::hole(start, noticed));
        }
    }

    /// The first byte after the segment at a place.
    #[inline(always)]
    fn end_of(&self, at: usize) -> u64 {
        self.segments.get(at + 1).map_or(self.end, |next| next.start)
    }

    /// Notes a further transmission of `[start, end)`, holes being filled with `sent`. Frames larger than a `full`
    /// segment are aggregated.
    pub(super) fn resend(&mut self, sent: Sent, full: u32) -> Overlap {
        let (start, end) = (sent.start, sent.end());
        let mut overlap = Overlap::default();
        self.split(start, full);
        self.split(end, full);
        let mut at = self.position(start);
        while let Some(&found) = self.segments.get(at).filter(|found| found.start < end) {
            let bytes = self.end_of(at).min(end) - found.start.max(start);
            if found.sends == 0 {
                overlap.filled += bytes;
                overlap.noticed = found.first;
                let next = self.segments.range(at + 1..).find(|next| next.sends > 0);
                overlap.after = next.map(|next| (next.ip_id, next.timestamp));
                at = self.fill(at, sent);
            } else {
                overlap.seen += bytes;
                overlap.last_sent = overlap.last_sent.max(Some(self.repeat(&found, sent.last)));
                overlap.sends = overlap.sends.max(found.sends);
                let known = &mut self.segments[at];
                known.sends = known.sends.saturating_add(1);
                known.timestamp = sent.timestamp;
                at += 1;
            }
        }
        overlap
    }

    /// Splits the aggregated frame around `number`, so that each part keeps its own history. A sender splits an
    /// aggregated frame in the same way when a part of it is lost.
    fn split(&mut self, number: u64, full: u32) {
        let at = self.position(number);
        let Some(&whole) = self.segments.get(at) else { return };
        let aggregated = self.end_of(at) - whole.start > u64::from(full);
        if whole.start >= number || whole.sends == 0 || !aggregated {
            return;
        }
        if whole.sends > 1 {
            let after = self.repeated.partition_point(|one| one.0 <= whole.start);
            let time = self.repeated.get(after.wrapping_sub(1)).map_or(whole.first, |one| one.1);
            self.repeated.insert(after, (number, time));
        }
        self.segments.insert(at + 1, StoredSegment { start: number, ..whole });
    }

    /// A segment is sent once more at `time`; when it was last sent before.
    fn repeat(&mut self, found: &StoredSegment, time: Nanos) -> Nanos {
        let place = self.repeated.partition_point(|one| one.0 < found.start);
        if found.sends > 1 {
            return self
                .repeated
                .get_mut(place)
                .map_or(found.first, |one| replace(&mut one.1, time));
        }
        self.repeated.insert(place, (found.start, time));
        found.first
    }

    /// Puts `sent` into the hole at `at`; returns the place after what it filled.
    fn fill(&mut self, at: usize, sent: Sent) -> usize {
        let (hole, hole_end) = (self.segments[at], self.end_of(at));
        let start = hole.start.max(sent.start);
        let end = hole_end.min(sent.end());
        let mut place = at;
        if hole.start < start {
            self.segments[at] = StoredSegment::hole(hole.start, hole.first);
            place += 1;
            self.segments.insert(place, StoredSegment::default());
        }
        let sacked = hole.marks & SACKED;
        let filled = StoredSegment::of(&Sent { start, sacked: false, ..sent });
        self.segments[place] = StoredSegment { marks: filled.marks | sacked, ..filled };
        if end < hole_end {
            self.segments.insert(place + 1, StoredSegment::hole(end, hole.first));
        }
        place + 1
    }

    /// Whether the oldest data below `to` were sent once, and SACK had not covered them.
    pub(super) fn oldest_is_alone(&self, to: u64) -> bool {
        let data = |kept: &&StoredSegment| kept.sends > 0 && kept.marks & CONTROL == 0;
        let mut below = self.segments.iter().take_while(|kept| kept.start < to);
        below.find(data).is_some_and(|kept| kept.sends == 1 && kept.marks & SACKED == 0)
    }

    /// Takes what is acknowledged up to `to`, segment by segment.
    #[inline]
    pub(super) fn take_until(&mut self, to: u64) -> Option<Sent> {
        if self.segments.is_empty() || self.end_of(0) > to {
            return None;
        }
        self.pop()
    }

    /// Takes the part below `to` of the oldest segment: of an aggregated frame, some segments. The rest was sent at
    /// the same time.
    #[inline(always)]
    pub(super) fn take_part(&mut self, to: u64) -> Option<Sent> {
        match self.segments.front() {
            Some(first) if first.start < to => self.cut(to),
            _ => None,
        }
    }

    #[inline(never)]
    fn cut(&mut self, to: u64) -> Option<Sent> {
        let first = self.segments.front_mut()?;
        let part = StoredSegment { start: first.start, ..*first };
        first.start = to;
        let repeated = self.repeated.front_mut().filter(|one| one.0 == part.start);
        let last = repeated.map_or(part.first, |one| {
            one.0 = to;
            one.1
        });
        Some(part.sent(to, last))
    }

    /// Takes the oldest.
    #[inline]
    fn pop(&mut self) -> Option<Sent> {
        let end = self.end_of(0);
        let kept = self.segments.pop_front()?;
        let repeated = if kept.sends > 1 { self.repeated.pop_front() } else { None };
        Some(kept.sent(end, repeated.map_or(kept.first, |one| one.1)))
    }

    /// Marks what the receiver holds now; calls `found` with the time of each first transmission that is new and
    /// the only one.
    pub(super) fn mark_sacked(&mut self, gain: Gain, full: u32, mut found: impl FnMut(Nanos)) {
        self.split(gain.stretch.0, full);
        self.split(gain.stretch.1, full);
        let from = self.position(gain.from);
        for at in from..self.segments.len() {
            let end = self.end_of(at);
            let Some(segment) = self.segments.get_mut(at).filter(|one| one.start < gain.to) else {
                break;
            };
            // One that began before the gain may be whole only now.
            let whole = segment.start >= gain.stretch.0 && end <= gain.stretch.1;
            if whole && segment.marks & SACKED == 0 {
                segment.marks |= SACKED;
                if segment.sends == 1 && segment.marks & CONTROL == 0 {
                    found(segment.first);
                }
            }
        }
    }

    /// The place of the first segment that ends after `start`.
    fn position(&self, start: u64) -> usize {
        // Most often it is the oldest.
        if self.segments.is_empty() || self.end_of(0) > start {
            return 0;
        }
        if start >= self.end {
            return self.segments.len();
        }
        self.segments.partition_point(|segment| segment.start <= start) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(start: u64, end: u64, time: Nanos) -> Sent {
        let length = (end - start) as u32;
        Sent { start, length, first: time, last: time, sends: 1, ..Sent::default() }
    }

    impl Flight {
        /// A segment's first byte, the one after its last, and how often it was sent.
        fn told(&self, at: usize) -> (u64, u64, u8) {
            (self.segments[at].start, self.end_of(at), self.segments[at].sends)
        }
    }

    #[test]
    fn a_hole_is_filled_from_both_sides() {
        let mut flight = Flight::default();
        flight.append(0, sent(0, 10, 1));
        flight.append(10, sent(40, 50, 2));
        let late = flight.resend(sent(20, 30, 3), 0);
        assert_eq!((late.seen, late.filled, late.noticed), (0, 10, 2));
        assert_eq!(late.after, Some((0, 0)));
        let both = flight.resend(sent(5, 25, 4), 0);
        assert_eq!((both.seen, both.filled, both.last_sent), (10, 10, Some(3)));
        let sends: Vec<_> = (0..flight.segments.len()).map(|at| flight.told(at)).collect();
        let expected = [
            (0, 5, 1),
            (5, 10, 2),
            (10, 20, 1),
            (20, 25, 2),
            (25, 30, 1),
            (30, 40, 0),
            (40, 50, 1),
        ];
        assert_eq!(sends, expected);
    }

    #[test]
    fn half_a_segment_is_acknowledged() {
        let mut flight = Flight::default();
        flight.append(0, sent(0, 100, 1));
        assert_eq!(flight.take_until(40), None);
        let (part, none) = (flight.take_part(40), flight.take_part(40));
        assert_eq!(part.map(|s| (s.start, s.length, s.first)), Some((0, 40, 1)));
        assert_eq!(none, None);
        assert_eq!(flight.take_until(100).map(|s| (s.start, s.length)), Some((40, 60)));
    }

    #[test]
    fn when_it_was_last_sent_is_known_of_each() {
        let mut flight = Flight::default();
        (0..4).for_each(|n| flight.append(10 * n, sent(10 * n, 10 * n + 10, n)));
        for (start, time, before) in [(20, 7, 2), (0, 8, 0), (20, 9, 7), (30, 10, 3)] {
            let overlap = flight.resend(sent(start, start + 10, time), 0);
            assert_eq!(overlap.last_sent, Some(before));
        }
        assert_eq!(flight.take_part(5).map(|s| (s.start, s.length, s.last)), Some((0, 5, 8)));
        let taken = std::iter::from_fn(|| flight.take_until(40));
        let taken: Vec<_> = taken.map(|s| (s.start, s.length, s.first, s.last, s.sends)).collect();
        assert_eq!(
            taken,
            [(5, 5, 0, 8, 2), (10, 10, 1, 1, 1), (20, 10, 2, 9, 3), (30, 10, 3, 10, 2)]
        );
        assert!(flight.repeated.is_empty());
    }

    proptest! {
        /// Beside a set of bytes: what is new, what was seen, and no gap anywhere.
        #[test]
        fn it_knows_what_was_seen(segments in prop::collection::vec((0_u64..300, 1_u64..40), 1..60)) {
            let mut flight = Flight::default();
            let mut seen = [false; 400];
            let mut next = 0;
            for (time, (start, length)) in segments.into_iter().enumerate() {
                let end = start + length;
                let old = end.min(next);
                let known = seen[start as usize..end as usize].iter().filter(|s| **s).count();
                let mut overlap = Overlap::default();
                if start < next {
                    overlap = flight.resend(sent(start, old, time as u64), 0);
                    prop_assert_eq!(overlap.seen + overlap.filled, old - start);
                }
                if end > next {
                    flight.append(next, sent(start.max(next), end, time as u64));
                    next = end;
                }
                prop_assert_eq!(overlap.seen, known as u64);
                seen[start as usize..end as usize].fill(true);
                let mut at = 0;
                for place in 0..flight.segments.len() {
                    let (start, end, sends) = flight.told(place);
                    prop_assert_eq!(start, at);
                    prop_assert!(start < end);
                    at = end;
                    prop_assert!(seen[start as usize..at as usize].iter().all(|s| *s == (sends > 0)));
                }
                prop_assert_eq!(at, next);
            }
        }
    }
}
