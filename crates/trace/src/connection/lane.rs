//! Kept for each connection, in little memory: enough to find it, and its latest segments until there
//! are several to follow together.
//!
//! What is known of thousands of connections does not fit into a processor's caches: following a segment fetches
//! some thirty lines of it from memory. Some forty segments of a connection at once need hardly more than one.

use super::key::Key;
use super::live::Connection;
use super::turns::TURNS;
use crate::analysis::{Budget, SAME_IDS};
use crate::frame::BLANK;
use crate::segment::{Flags, Nanos, Options, Segment};

/// Segments that wait at most.
pub(super) const ROOM: usize = 40;
/// From so many on it is time to follow them.
const ENOUGH: u8 = 36;

const FROM: u8 = 0x80;
const TIMED: u8 = 0x40;
const IDENTIFIED: u8 = 0x20;
const ECN: u8 = 0x03;

/// What most segments say; addresses, and all that only a few have, are left out. Two are one line of memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Brief {
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
        let turns = segment.flags.any(TURNS);
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
    /// The last IP identification from each end, and how many before it in a row were the same.
    seen_ids: [u16; 2],
    same_ids: [u8; 2],
    said: u8,
    waits: u8,
}

/// What is said of a lane, a bit each. It has a connection;
pub(super) const LIVE: u8 = 1;
/// one segment was captured of it: the connection is made with the second;
pub(super) const LONE: u8 = 1 << 1;
/// nothing more is expected of it;
pub(super) const OVER: u8 = 1 << 2;
/// the first segment came from the higher end;
const HIGH: u8 = 1 << 3;
/// frames have been captured twice that came from the first end, and from the second;
const TWICE: u8 = 1 << 4;
/// the first end has sent anything but a SYN, and the second.
const TALKED: u8 = 1 << 6;

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
            seen_ids: [0; 2],
            same_ids: [0; 2],
            said: LIVE | LONE | if high { HIGH } else { 0 },
            waits: 0,
        }
    }

    #[inline(always)]
    pub(super) fn is(&self, bit: u8) -> bool {
        self.said & bit != 0
    }

    pub(super) fn say(&mut self, bit: u8, holds: bool) {
        self.said = if holds { self.said | bit } else { self.said & !bit };
    }

    /// Frames have been captured twice that came from an end.
    pub(super) fn twice(&self, from: usize) -> bool {
        self.is(TWICE << from)
    }

    /// They have been now.
    pub(super) fn say_twice(&mut self, from: usize) {
        self.said |= TWICE << from;
    }

    /// An end has sent anything but a SYN.
    pub(super) fn talked(&self, from: usize) -> bool {
        self.is(TALKED << from)
    }

    /// Whether the packets of an end have identifications that tell them apart.
    pub(super) fn identifies(&self, from: usize) -> bool {
        self.same_ids[from] < SAME_IDS
    }

    /// Notes a segment that is no copy.
    #[inline]
    pub(super) fn note(&mut self, segment: &Segment, from: usize) {
        let id = segment.ip_id.unwrap_or(0);
        let same = id == self.seen_ids[from];
        self.same_ids[from] = if same { self.same_ids[from].saturating_add(1) } else { 0 };
        self.seen_ids[from] = id;
        if !segment.flags.any(Flags::SYN | Flags::RST) {
            self.said |= TALKED << from;
        }
    }

    /// Which end sent what comes from the higher one, or not. (One end talking to itself is taken for the first.)
    #[inline(always)]
    pub(super) fn from(&self, high: bool) -> usize {
        usize::from(high != self.is(HIGH))
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

    /// A segment that need not wait, in short, if it says no more than most; then it is the last.
    #[inline]
    pub(super) fn brief(&mut self, segment: &Segment, from: usize) -> Option<Brief> {
        let brief = Brief::of(segment, from, self.last)?;
        self.last = segment.time;
        Some(brief)
    }

    /// It is time to follow them: it has just become so.
    #[inline(always)]
    pub(super) fn is_due(&self) -> bool {
        self.waits == ENOUGH
    }

    /// What waits; it waits no longer.
    #[inline(always)]
    pub(super) fn release<'a>(&mut self, waiting: &'a Waiting) -> &'a [Brief] {
        let waits = std::mem::take(&mut self.waits);
        waiting.0.get(..waits.into()).unwrap_or_default()
    }
}

/// Lets a connection follow what has waited.
#[inline(never)]
pub(super) fn settle(briefs: &[Brief], known: &mut Connection, budget: &Budget) {
    let (mut time, [first, second]) = (known.last(), known.ends());
    let mut segments = [
        Segment { source: first, destination: second, ..BLANK },
        Segment { source: second, destination: first, ..BLANK },
    ];
    for brief in briefs {
        time += Nanos::from(brief.elapsed);
        let segment = &mut segments[usize::from(brief.has(FROM))];
        brief.restore(segment, time);
        known.push(segment, budget);
    }
}
