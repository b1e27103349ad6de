//! Segments in flight, from the oldest unacknowledged byte to the newest sent, in order and without
//! gaps.

use std::collections::VecDeque;
use std::mem::replace;

use super::scoreboard::NewlySackedRange;
use crate::segment::Nanos;

/// A range of sequence numbers that was sent in one frame, or that was not captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SentRange {
    /// First byte.
    pub(super) start: u64,
    /// Time of the first capture or, for a hole, of its detection.
    pub(super) first: Nanos,
    /// Time of the last capture.
    pub(super) last: Nanos,
    /// Number of sequence numbers.
    pub(super) length: u32,
    /// Timestamp value of the last transmission; 0 if there is no timestamp option.
    pub(super) timestamp: u32,
    /// IPv4 identification of the first transmission; 0 if there is none.
    pub(super) ip_id: u16,
    /// Number of captured transmissions; 0 for a hole.
    pub(super) sends: u8,
    /// True if SACK covers the range.
    pub(super) sacked: bool,
    /// A SYN or FIN, which uses one sequence number and shows nothing about the path under load.
    pub(super) control: bool,
}

impl SentRange {
    /// First byte after the range.
    #[inline(always)]
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    /// Sent more than once, so that an acknowledgement does not show which transmission arrived.
    #[inline(always)]
    pub(super) fn is_retransmitted(&self) -> bool {
        self.sends > 1
    }
}

/// History of the bytes of a segment that did not continue the sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OverlappedBytesHistory {
    /// Bytes captured before.
    pub(super) seen: u64,
    /// Bytes that filled a hole.
    pub(super) filled: u64,
    /// Time when the hole was detected.
    pub(super) noticed: Nanos,
    /// IP identification and timestamp of the first segment captured after the hole.
    pub(super) after: Option<(u16, u32)>,
    /// Time of the previous transmission.
    pub(super) last_sent: Option<Nanos>,
    /// Maximum number of transmissions.
    pub(super) sends: u8,
    /// True if some bytes were acknowledged before they were captured.
    pub(super) disordered: bool,
}

/// Compact form of [`SentRange`]: a segment ends where the next one starts.
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
    fn from_sent_range(sent: &SentRange) -> Self {
        let SentRange { start, first, timestamp, ip_id, sends, sacked, control, .. } = *sent;
        let marks = (u8::from(sacked) * SACKED) | (u8::from(control) * CONTROL);
        Self { start, first, timestamp, ip_id, sends, marks }
    }

    fn new_hole(start: u64, noticed: Nanos) -> Self {
        Self { start, first: noticed, ..Self::default() }
    }

    /// A hole that begins at `start`, with the properties of this hole.
    fn part_from(&self, start: u64) -> Self {
        Self { start, marks: 0, ..*self }
    }

    /// Returns the full form, given the end and the time of the last transmission.
    #[inline(always)]
    fn into_sent_range(self, end: u64, last: Nanos) -> SentRange {
        let Self { start, first, timestamp, ip_id, sends, marks } = self;
        SentRange {
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

/// Segments in flight, stored compactly because there may be many for each connection.
#[derive(Clone, Debug, Default)]
pub(super) struct SegmentsInFlight {
    segments: VecDeque<StoredSegment>,
    /// First byte after the segments.
    end: u64,
    /// Starts of the segments that were sent more than once, with the time of the last
    /// transmission, in order.
    repeated: VecDeque<(u64, Nanos)>,
}

/// Maximum number of stored segments; more means that acknowledgements are missing from the
/// capture.
pub(super) const MAX_SEGMENTS: usize = 1 << 15;
/// Initial capacity: the initial window (RFC 6928) fits after one growth.
const MIN_CAPACITY: usize = 8;

impl SegmentsInFlight {
    /// Appends a segment at or after `next`; skipped bytes become a hole.
    #[inline]
    pub(super) fn append_after_hole(&mut self, next: u64, sent: SentRange) {
        let mut from = next;
        while from < sent.start {
            self.push_stored_segment(StoredSegment::new_hole(from, sent.first));
            from = sent.start.min(from + u64::from(u32::MAX));
        }
        self.push_stored_segment(StoredSegment::from_sent_range(&sent));
        self.end = sent.end();
        while self.segments.len() > MAX_SEGMENTS {
            self.pop_oldest();
        }
    }

    /// Appends a hole for `[next, end)`: data whose sequence numbers show that they were sent.
    /// `shown_by`: IP identification and timestamp of the sender's segment that showed them, or 0.
    pub(super) fn append_hole(
        &mut self,
        (next, end): (u64, u64),
        noticed: Nanos,
        (ip_id, timestamp): (u16, u32),
    ) {
        self.push_stored_segment(StoredSegment {
            ip_id,
            timestamp,
            ..StoredSegment::new_hole(next, noticed)
        });
        self.end = end;
    }

    #[inline]
    fn push_stored_segment(&mut self, kept: StoredSegment) {
        let room = self.segments.capacity();
        if self.segments.len() == room {
            // Grows by half: most queues stay short.
            self.segments.reserve_exact((room / 2).max(MIN_CAPACITY));
        }
        self.segments.push_back(kept);
    }

    /// Adds a hole at `start`: data in flight before the capture began.
    pub(super) fn prepend_hole(&mut self, start: u64, noticed: Nanos) {
        if self.segments.front().is_some_and(|first| first.start > start) {
            self.segments.push_front(StoredSegment::new_hole(start, noticed));
        }
    }

    /// First byte after the segment at `index`.
    #[inline(always)]
    fn end_of(&self, index: usize) -> u64 {
        self.segments.get(index + 1).map_or(self.end, |next| next.start)
    }

    /// Records a further transmission of `[start, end)`. A hole is filled with `sent`. Frames
    /// larger than a `full` segment are aggregated.
    pub(super) fn record_retransmission(
        &mut self,
        sent: SentRange,
        full: u32,
    ) -> OverlappedBytesHistory {
        let (start, end) = (sent.start, sent.end());
        let mut overlap = OverlappedBytesHistory::default();
        self.split_frame_at(start, full);
        self.split_frame_at(end, full);
        let mut index = self.index_of_number(start);
        while let Some(&segment) = self.segments.get(index).filter(|segment| segment.start < end) {
            let bytes = self.end_of(index).min(end) - segment.start.max(start);
            if segment.sends == 0 {
                overlap.filled += bytes;
                overlap.noticed = segment.first;
                // The segment without data that showed the hole, or the next segment with data.
                let shown = segment.ip_id != 0 || segment.timestamp != 0;
                let next = self.segments.range(index + 1..).find(|next| next.sends > 0);
                let after = if shown { Some(&segment) } else { next };
                overlap.after = after.map(|next| (next.ip_id, next.timestamp));
                index = self.fill_hole(index, sent);
            } else {
                overlap.seen += bytes;
                overlap.last_sent = overlap
                    .last_sent
                    .max(Some(self.record_repeated_transmission(&segment, sent.last)));
                overlap.sends = overlap.sends.max(segment.sends);
                let known = &mut self.segments[index];
                known.sends = known.sends.saturating_add(1);
                known.timestamp = sent.timestamp;
                index += 1;
            }
        }
        overlap
    }

    /// Splits an aggregated frame at `number`, so that each part keeps its own history. A sender
    /// does the same when a part is lost.
    fn split_frame_at(&mut self, number: u64, full: u32) {
        let index = self.index_of_number(number);
        let Some(&segment) = self.segments.get(index) else { return };
        let aggregated = self.end_of(index) - segment.start > u64::from(full);
        if segment.start >= number || segment.sends == 0 || !aggregated {
            return;
        }
        if segment.sends > 1 {
            let after = self.repeated.partition_point(|one| one.0 <= segment.start);
            let time = self.repeated.get(after.wrapping_sub(1)).map_or(segment.first, |one| one.1);
            self.repeated.insert(after, (number, time));
        }
        self.segments.insert(index + 1, StoredSegment { start: number, ..segment });
    }

    /// Records a retransmission at `time` and returns the time of the previous transmission.
    fn record_repeated_transmission(&mut self, segment: &StoredSegment, time: Nanos) -> Nanos {
        let index = self.repeated.partition_point(|one| one.0 < segment.start);
        if segment.sends > 1 {
            return self
                .repeated
                .get_mut(index)
                .map_or(segment.first, |one| replace(&mut one.1, time));
        }
        self.repeated.insert(index, (segment.start, time));
        segment.first
    }

    /// Fills the hole at `index` with `sent`; returns the index after the filled part.
    fn fill_hole(&mut self, index: usize, sent: SentRange) -> usize {
        let (hole, hole_end) = (self.segments[index], self.end_of(index));
        let start = hole.start.max(sent.start);
        let end = hole_end.min(sent.end());
        let mut filled_index = index;
        if hole.start < start {
            self.segments[index] = hole.part_from(hole.start);
            filled_index += 1;
            self.segments.insert(filled_index, StoredSegment::default());
        }
        let sacked = hole.marks & SACKED;
        let filled = StoredSegment::from_sent_range(&SentRange { start, sacked: false, ..sent });
        self.segments[filled_index] = StoredSegment { marks: filled.marks | sacked, ..filled };
        if end < hole_end {
            self.segments.insert(filled_index + 1, hole.part_from(end));
        }
        filled_index + 1
    }

    /// Captured payload from `from` on, bytes.
    pub(super) fn payload_from(&self, from: u64) -> u64 {
        let payload = |index: usize| {
            let bytes = self.end_of(index).saturating_sub(self.segments[index].start.max(from));
            let segment = self.segments[index];
            if segment.sends > 0 && segment.marks & CONTROL == 0 { bytes } else { 0 }
        };
        (0..self.segments.len()).map(payload).sum()
    }

    /// Time of the first transmission of the oldest captured data in flight.
    pub(super) fn first_payload_time(&self) -> Option<Nanos> {
        let data = |kept: &&StoredSegment| kept.sends > 0 && kept.marks & CONTROL == 0;
        self.segments.iter().find(data).map(|kept| kept.first)
    }

    /// First capture time of the oldest data in flight.
    pub(super) fn oldest_sent(&self) -> Option<Nanos> {
        self.segments.iter().find(|sent| sent.sends > 0).map(|sent| sent.first)
    }

    /// Whether the oldest data below `to` were sent once and not covered by SACK.
    pub(super) fn was_oldest_sent_once_unsacked(&self, to: u64) -> bool {
        let data = |kept: &&StoredSegment| kept.sends > 0 && kept.marks & CONTROL == 0;
        let mut below = self.segments.iter().take_while(|kept| kept.start < to);
        below.find(data).is_some_and(|kept| kept.sends == 1 && kept.marks & SACKED == 0)
    }

    /// Removes the oldest segment if it is completely acknowledged by `to`.
    #[inline]
    pub(super) fn take_oldest_until(&mut self, to: u64) -> Option<SentRange> {
        if self.segments.is_empty() || self.end_of(0) > to {
            return None;
        }
        self.pop_oldest()
    }

    /// Removes the part below `to` of the oldest segment, an aggregated frame. The rest keeps its
    /// send time.
    #[inline(always)]
    pub(super) fn take_part_of_oldest(&mut self, to: u64) -> Option<SentRange> {
        match self.segments.front() {
            Some(first) if first.start < to => self.split_oldest_at(to),
            _ => None,
        }
    }

    #[inline(never)]
    fn split_oldest_at(&mut self, to: u64) -> Option<SentRange> {
        let first = self.segments.front_mut()?;
        let part = StoredSegment { start: first.start, ..*first };
        first.start = to;
        let repeated = self.repeated.front_mut().filter(|one| one.0 == part.start);
        let last = repeated.map_or(part.first, |one| {
            one.0 = to;
            one.1
        });
        Some(part.into_sent_range(to, last))
    }

    /// Removes the oldest segment.
    #[inline]
    fn pop_oldest(&mut self) -> Option<SentRange> {
        let end = self.end_of(0);
        let kept = self.segments.pop_front()?;
        let repeated = if kept.sends > 1 { self.repeated.pop_front() } else { None };
        Some(kept.into_sent_range(end, repeated.map_or(kept.first, |one| one.1)))
    }

    /// Marks segments covered by SACK. Calls `on_new` with the send time of each newly covered
    /// segment that was sent once.
    pub(super) fn mark_sacked(
        &mut self,
        gain: NewlySackedRange,
        full: u32,
        mut on_new: impl FnMut(Nanos),
    ) {
        self.split_frame_at(gain.stretch.0, full);
        self.split_frame_at(gain.stretch.1, full);
        let from = self.index_of_number(gain.from);
        for index in from..self.segments.len() {
            let end = self.end_of(index);
            let Some(segment) = self.segments.get_mut(index).filter(|one| one.start < gain.to)
            else {
                break;
            };
            // A segment that began before the gain may be complete only now.
            let complete = segment.start >= gain.stretch.0 && end <= gain.stretch.1;
            if complete && segment.marks & SACKED == 0 {
                segment.marks |= SACKED;
                if segment.sends == 1 && segment.marks & CONTROL == 0 {
                    on_new(segment.first);
                }
            }
        }
    }

    /// Index of the first segment that ends after `start`.
    fn index_of_number(&self, start: u64) -> usize {
        // Fast path: usually the oldest segment.
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

    fn sent(start: u64, end: u64, time: Nanos) -> SentRange {
        let length = (end - start) as u32;
        SentRange { start, length, first: time, last: time, sends: 1, ..SentRange::default() }
    }

    impl SegmentsInFlight {
        /// Returns start, end and number of transmissions of a segment.
        fn range(&self, index: usize) -> (u64, u64, u8) {
            (self.segments[index].start, self.end_of(index), self.segments[index].sends)
        }
    }

    #[test]
    fn resend_fills_hole_from_both_sides() {
        let mut flight = SegmentsInFlight::default();
        flight.append_after_hole(0, sent(0, 10, 1));
        flight.append_after_hole(10, sent(40, 50, 2));
        let late = flight.record_retransmission(sent(20, 30, 3), 0);
        assert_eq!((late.seen, late.filled, late.noticed), (0, 10, 2));
        assert_eq!(late.after, Some((0, 0)));
        let both = flight.record_retransmission(sent(5, 25, 4), 0);
        assert_eq!((both.seen, both.filled, both.last_sent), (10, 10, Some(3)));
        let sends: Vec<_> = (0..flight.segments.len()).map(|index| flight.range(index)).collect();
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
    fn take_part_removes_acknowledged_half() {
        let mut flight = SegmentsInFlight::default();
        flight.append_after_hole(0, sent(0, 100, 1));
        assert_eq!(flight.take_oldest_until(40), None);
        let (part, none) = (flight.take_part_of_oldest(40), flight.take_part_of_oldest(40));
        assert_eq!(part.map(|s| (s.start, s.length, s.first)), Some((0, 40, 1)));
        assert_eq!(none, None);
        assert_eq!(flight.take_oldest_until(100).map(|s| (s.start, s.length)), Some((40, 60)));
    }

    #[test]
    fn resend_returns_previous_send_time() {
        let mut flight = SegmentsInFlight::default();
        (0..4).for_each(|n| flight.append_after_hole(10 * n, sent(10 * n, 10 * n + 10, n)));
        for (start, time, before) in [(20, 7, 2), (0, 8, 0), (20, 9, 7), (30, 10, 3)] {
            let overlap = flight.record_retransmission(sent(start, start + 10, time), 0);
            assert_eq!(overlap.last_sent, Some(before));
        }
        assert_eq!(
            flight.take_part_of_oldest(5).map(|s| (s.start, s.length, s.last)),
            Some((0, 5, 8))
        );
        let taken = std::iter::from_fn(|| flight.take_oldest_until(40));
        let taken: Vec<_> = taken.map(|s| (s.start, s.length, s.first, s.last, s.sends)).collect();
        assert_eq!(
            taken,
            [(5, 5, 0, 8, 2), (10, 10, 1, 1, 1), (20, 10, 2, 9, 3), (30, 10, 3, 10, 2)]
        );
        assert!(flight.repeated.is_empty());
    }

    proptest! {
        /// Compares with a set of bytes: new bytes, seen bytes, and no gaps.
        #[test]
        fn flight_matches_set_of_bytes(segments in prop::collection::vec((0_u64..300, 1_u64..40), 1..60)) {
            let mut flight = SegmentsInFlight::default();
            let mut seen = [false; 400];
            let mut next = 0;
            for (time, (start, length)) in segments.into_iter().enumerate() {
                let end = start + length;
                let old = end.min(next);
                let known = seen[start as usize..end as usize].iter().filter(|s| **s).count();
                let mut overlap = OverlappedBytesHistory::default();
                if start < next {
                    overlap = flight.record_retransmission(sent(start, old, time as u64), 0);
                    prop_assert_eq!(overlap.seen + overlap.filled, old - start);
                }
                if end > next {
                    flight.append_after_hole(next, sent(start.max(next), end, time as u64));
                    next = end;
                }
                prop_assert_eq!(overlap.seen, known as u64);
                seen[start as usize..end as usize].fill(true);
                let mut expected = 0;
                for index in 0..flight.segments.len() {
                    let (start, end, sends) = flight.range(index);
                    prop_assert_eq!(start, expected);
                    prop_assert!(start < end);
                    expected = end;
                    prop_assert!(seen[start as usize..end as usize].iter().all(|s| *s == (sends > 0)));
                }
                prop_assert_eq!(expected, next);
            }
        }
    }
}
