//! Kept for each connection, in little memory: enough to find it, and its latest segments until there
//! are several to follow together.
//!
//! What is known of thousands of connections does not fit into a processor's caches: following a segment fetches
//! some thirty lines of it from memory. Some forty segments of a connection at once need hardly more than one.

use super::key::Key;
use super::live::Connection;
use crate::analysis::Budget;
use crate::frame::BLANK;
use crate::segment::{Flags, Nanos, Options, Segment};

/// Segments that wait at most.
const ROOM: usize = 40;
/// From so many on it is time to follow them.
const ENOUGH: u8 = 36;

const FROM: u8 = 0x80;
const TIMED: u8 = 0x40;
const IDENTIFIED: u8 = 0x20;
const ECN: u8 = 0x03;

/// What most segments say; addresses, and all that only a few have, are left out. Two are one line of memory.
#[derive(Clone, Copy, Debug, Default)]
struct Brief {
    /// Since the segment before, ns.
    elapsed: u32,
    payload: u32,
    sequence: u32,
    acknowledgement: u32,
    timestamps: (u32, u32),
    ip_id: u16,
    window: u16,
    flags: Flags,
    /// Bytes of the IP packet that are not payload.
    headers: u8,
    /// ECN; whether it comes from the second end; which of the above it has.
    marks: u8,
}

impl Brief {
    /// `None` if it says more than fits. `last`: when the one before it was captured.
    #[inline]
    fn of(segment: &Segment, from: usize, last: Nanos) -> Option<Self> {
        let Options { timestamps, sack_blocks, cut, .. } = segment.options;
        let turns = segment.flags.any(Flags::SYN | Flags::FIN | Flags::RST);
        if turns || sack_blocks != 0 || cut || segment.fragment || segment.ecn > ECN {
            return None;
        }
        let mark = |has, mark| if has { mark } else { 0 };
        Some(Self {
            elapsed: u32::try_from(segment.time.checked_sub(last)?).ok()?,
            payload: segment.payload,
            sequence: segment.sequence,
            acknowledgement: segment.acknowledgement,
            timestamps: timestamps.unwrap_or_default(),
            ip_id: segment.ip_id.unwrap_or_default(),
            window: segment.window,
            flags: segment.flags,
            headers: u8::try_from(segment.ip_bytes.checked_sub(segment.payload)?).ok()?,
            marks: segment.ecn
                | mark(from == 1, FROM)
                | mark(timestamps.is_some(), TIMED)
                | mark(segment.ip_id.is_some(), IDENTIFIED),
        })
    }

    /// Writes it over a segment that came from the same end.
    #[inline]
    fn restore(&self, segment: &mut Segment, time: Nanos) {
        segment.time = time;
        segment.ip_id = self.has(IDENTIFIED).then_some(self.ip_id);
        segment.ecn = self.marks & ECN;
        segment.ip_bytes = self.payload + u32::from(self.headers);
        segment.payload = self.payload;
        segment.sequence = self.sequence;
        segment.acknowledgement = self.acknowledgement;
        segment.flags = self.flags;
        segment.window = self.window;
        segment.options.timestamps = self.has(TIMED).then_some(self.timestamps);
    }

    #[inline(always)]
    fn has(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }
}

/// What is at hand of a connection.
#[derive(Clone, Debug)]
#[repr(align(64))] // one line of memory
pub(super) struct Lane {
    pub(super) key: Key,
    pub(super) number: u64,
    /// When its last segment was captured.
    pub(super) last: Nanos,
    /// It has a connection.
    pub(super) live: bool,
    /// One segment was captured of it; the connection is made with the second.
    pub(super) lone: bool,
    /// Nothing more is expected of it.
    pub(super) over: bool,
    /// Frames have been captured twice that came from each end.
    pub(super) twice: [bool; 2],
    /// The first segment came from the higher end.
    high: bool,
    waits: u8,
}

/// The segments that wait.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Waiting([Brief; ROOM]);

impl Waiting {
    pub(super) fn new() -> Self {
        Self([Brief::default(); ROOM])
    }

    /// Fetches it from memory; what comes of it says nothing.
    #[inline]
    pub(super) fn fetch(&self) -> u64 {
        self.0.iter().step_by(2).map(|brief| u64::from(brief.elapsed)).sum()
    }

    /// Fetches where the lane's next segment goes.
    #[inline]
    pub(super) fn fetch_next(&self, lane: &Lane) -> u64 {
        self.0.get(usize::from(lane.waits)).map_or(0, |brief| brief.elapsed.into())
    }
}

impl Lane {
    /// `high`: the first segment comes from the higher end.
    pub(super) fn new(key: Key, high: bool, number: u64, time: Nanos) -> Self {
        Self {
            key,
            number,
            last: time,
            live: true,
            lone: true,
            over: false,
            twice: [false; 2],
            high,
            waits: 0,
        }
    }

    /// Which end sent what comes from the higher one, or not. (One end talking to itself is taken for the first.)
    #[inline(always)]
    pub(super) fn from(&self, high: bool) -> usize {
        usize::from(high != self.high)
    }

    /// Takes a segment to wait, if it says no more than most and there is room; then it is the last.
    #[inline]
    pub(super) fn take(&mut self, waiting: &mut Waiting, segment: &Segment, from: usize) -> bool {
        let Some(place) = waiting.0.get_mut(usize::from(self.waits)) else { return false };
        let Some(brief) = Brief::of(segment, from, self.last) else { return false };
        *place = brief;
        self.waits += 1;
        self.last = segment.time;
        true
    }

    /// It is time to follow them: it has just become so.
    #[inline(always)]
    pub(super) fn is_due(&self) -> bool {
        self.waits == ENOUGH
    }

    /// Lets a connection follow what waits.
    #[inline(always)]
    pub(super) fn settle(&mut self, waiting: &Waiting, known: &mut Connection, budget: &Budget) {
        if self.waits > 0 {
            self.settle_all(waiting, known, budget);
        }
    }

    #[inline(never)]
    fn settle_all(&mut self, waiting: &Waiting, known: &mut Connection, budget: &Budget) {
        let (mut time, [first, second]) = (known.last(), known.ends());
        let mut segments = [
            Segment { source: first, destination: second, ..BLANK },
            Segment { source: second, destination: first, ..BLANK },
        ];
        for brief in waiting.0.iter().take(self.waits.into()) {
            time += Nanos::from(brief.elapsed);
            let segment = &mut segments[usize::from(brief.has(FROM))];
            brief.restore(segment, time);
            known.push(segment, budget);
        }
        self.waits = 0;
    }
}
