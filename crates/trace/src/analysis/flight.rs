//! The segments between the oldest unacknowledged byte and the newest sent: in order, without gaps.

use std::collections::VecDeque;

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

    fn hole(start: u64, end: u64, noticed: Nanos) -> Self {
        let length = u32::try_from(end - start).unwrap_or(u32::MAX);
        Self { start, length, first: noticed, last: noticed, ..Self::default() }
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

/// The segments in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    segments: VecDeque<Sent>,
}

/// More segments than this are not kept: acks are missing from such a capture.
pub(super) const MOST_SEGMENTS: usize = 1 << 15;

impl Flight {
    /// Fetches both ends of it from memory.
    #[inline]
    pub(super) fn fetch(&self) -> u64 {
        let ends = [self.segments.front(), self.segments.back()];
        ends.iter().flatten().fold(0, |sum: u64, sent| sum.wrapping_add(sent.start))
    }

    /// Appends what continues the sequence at `next`; what it jumps over becomes a hole.
    #[inline]
    pub(super) fn append(&mut self, next: u64, sent: Sent) {
        let mut from = next;
        while from < sent.start {
            let end = sent.start.min(from + u64::from(u32::MAX));
            self.segments.push_back(Sent::hole(from, end, sent.first));
            from = end;
        }
        self.segments.push_back(sent);
        while self.segments.len() > MOST_SEGMENTS {
            self.segments.pop_front();
        }
    }

    /// What begins at `start` was in flight before anything was captured.
    pub(super) fn prepend(&mut self, start: u64, noticed: Nanos) {
        if let Some(first) = self.segments.front().filter(|first| first.start > start) {
            self.segments.push_front(Sent::hole(start, first.start, noticed));
        }
    }

    /// Notes a further transmission of `[start, end)`, holes being filled with `sent`.
    pub(super) fn resend(&mut self, sent: Sent) -> Overlap {
        let (start, end) = (sent.start, sent.end());
        let mut overlap = Overlap::default();
        let mut at = self.position(start);
        while let Some(&found) = self.segments.get(at).filter(|found| found.start < end) {
            let bytes = found.end().min(end) - found.start.max(start);
            if found.sends == 0 {
                overlap.filled += bytes;
                overlap.noticed = found.first;
                let next = self.segments.range(at + 1..).find(|next| next.sends > 0);
                overlap.after = next.map(|next| (next.ip_id, next.timestamp));
                at = self.fill(at, sent);
            } else {
                overlap.seen += bytes;
                overlap.last_sent = overlap.last_sent.max(Some(found.last));
                overlap.sends = overlap.sends.max(found.sends);
                let known = &mut self.segments[at];
                known.sends = known.sends.saturating_add(1);
                known.last = sent.last;
                known.timestamp = sent.timestamp;
                at += 1;
            }
        }
        overlap
    }

    /// Puts `sent` into the hole at `at`; returns the place after what it filled.
    fn fill(&mut self, at: usize, sent: Sent) -> usize {
        let hole = self.segments[at];
        let start = hole.start.max(sent.start);
        let end = hole.end().min(sent.end());
        let mut place = at;
        if hole.start < start {
            self.segments[at] = Sent::hole(hole.start, start, hole.first);
            place += 1;
            self.segments.insert(place, Sent::default());
        }
        // Not longer than the hole, so it fits.
        let length = (end - start) as u32;
        self.segments[place] = Sent { start, length, sacked: hole.sacked, ..sent };
        if end < hole.end() {
            self.segments.insert(place + 1, Sent::hole(end, hole.end(), hole.first));
        }
        place + 1
    }

    /// Takes what is acknowledged up to `to`, segment by segment.
    #[inline]
    pub(super) fn take_until(&mut self, to: u64) -> Option<Sent> {
        let first = self.segments.front_mut()?;
        if first.end() <= to {
            return self.segments.pop_front();
        }
        if first.start < to {
            // Half a super-segment. What is left was sent when all of it was.
            first.length = (first.end() - to) as u32;
            first.start = to;
        }
        None
    }

    /// Marks what the receiver holds now; calls `found` for each segment that is new.
    pub(super) fn mark_sacked(&mut self, gain: Gain, mut found: impl FnMut(&Sent)) {
        let from = self.position(gain.from);
        for segment in self.segments.range_mut(from..) {
            if segment.start >= gain.to {
                break;
            }
            // One that began before the gain may be whole only now.
            let whole = segment.start >= gain.stretch.0 && segment.end() <= gain.stretch.1;
            if whole && !segment.sacked {
                segment.sacked = true;
                found(segment);
            }
        }
    }

    /// The place of the first segment that ends after `start`.
    fn position(&self, start: u64) -> usize {
        // Most often it is the oldest.
        match self.segments.front() {
            Some(first) if first.end() > start => 0,
            _ => self.segments.partition_point(|segment| segment.end() <= start),
        }
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

    #[test]
    fn a_hole_is_filled_from_both_sides() {
        let mut flight = Flight::default();
        flight.append(0, sent(0, 10, 1));
        flight.append(10, sent(40, 50, 2));
        let late = flight.resend(sent(20, 30, 3));
        assert_eq!((late.seen, late.filled, late.noticed), (0, 10, 2));
        assert_eq!(late.after, Some((0, 0)));
        let both = flight.resend(sent(5, 25, 4));
        assert_eq!((both.seen, both.filled, both.last_sent), (10, 10, Some(3)));
        let sends: Vec<_> = flight.segments.iter().map(|s| (s.start, s.end(), s.sends)).collect();
        assert_eq!(sends, [(0, 10, 2), (10, 20, 1), (20, 30, 2), (30, 40, 0), (40, 50, 1)]);
    }

    #[test]
    fn half_a_segment_is_acknowledged() {
        let mut flight = Flight::default();
        flight.append(0, sent(0, 100, 1));
        assert_eq!(flight.take_until(40), None);
        assert_eq!(flight.take_until(100).map(|s| (s.start, s.length)), Some((40, 60)));
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
                    overlap = flight.resend(sent(start, old, time as u64));
                    prop_assert_eq!(overlap.seen + overlap.filled, old - start);
                }
                if end > next {
                    flight.append(next, sent(start.max(next), end, time as u64));
                    next = end;
                }
                prop_assert_eq!(overlap.seen, known as u64);
                seen[start as usize..end as usize].fill(true);
                let mut at = 0;
                for segment in &flight.segments {
                    prop_assert_eq!(segment.start, at);
                    at = segment.end();
                    prop_assert!(seen[segment.start as usize..at as usize].iter().all(|s| *s == (segment.sends > 0)));
                }
                prop_assert_eq!(at, next);
            }
        }
    }
}
