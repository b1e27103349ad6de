//! What is kept beside each connection, in little memory: enough to find it, and its latest segments until there
//! are several to follow together.
//!
//! What is known of thousands of connections does not fit into a processor's caches: following a segment fetches
//! some thirty lines of it from memory. Eight segments of a connection at once need hardly more than one.

use super::key::Key;
use super::live::Connection;
use crate::frame::BLANK;
use crate::segment::{Endpoint, Flags, Nanos, Options, Segment};

/// Segments that wait at most.
const ROOM: usize = 8;

/// What most segments say; addresses, and all that only a few have, are left out.
#[derive(Clone, Copy, Debug, Default)]
struct Brief {
    time: Nanos,
    ip_bytes: u32,
    payload: u32,
    sequence: u32,
    acknowledgement: u32,
    timestamps: (u32, u32),
    ip_id: u16,
    window: u16,
    flags: Flags,
    ecn: u8,
    /// From the second end.
    from: bool,
    timed: bool,
    identified: bool,
}

impl Brief {
    /// `None` if it says more than fits.
    #[inline]
    fn of(segment: &Segment, from: usize) -> Option<Self> {
        let Options { timestamps, sack_blocks, cut, .. } = segment.options;
        let turns = segment.flags.any(Flags::SYN | Flags::FIN | Flags::RST);
        (!turns && sack_blocks == 0 && !cut && !segment.fragment).then(|| Self {
            time: segment.time,
            ip_bytes: segment.ip_bytes,
            payload: segment.payload,
            sequence: segment.sequence,
            acknowledgement: segment.acknowledgement,
            timestamps: timestamps.unwrap_or_default(),
            ip_id: segment.ip_id.unwrap_or_default(),
            window: segment.window,
            flags: segment.flags,
            ecn: segment.ecn,
            from: from == 1,
            timed: timestamps.is_some(),
            identified: segment.ip_id.is_some(),
        })
    }

    #[inline]
    fn restore(&self, ends: &[Endpoint; 2]) -> Segment {
        let [source, destination] = if self.from { [ends[1], ends[0]] } else { *ends };
        Segment {
            time: self.time,
            source,
            destination,
            ip_id: self.identified.then_some(self.ip_id),
            ecn: self.ecn,
            ip_bytes: self.ip_bytes,
            payload: self.payload,
            sequence: self.sequence,
            acknowledgement: self.acknowledgement,
            flags: self.flags,
            window: self.window,
            options: Options { timestamps: self.timed.then_some(self.timestamps), ..BLANK.options },
            ..BLANK
        }
    }
}

/// What is at hand of a connection.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) key: Key,
    pub(super) number: u64,
    /// When its last segment was captured.
    pub(super) last: Nanos,
    /// Nothing more is expected of it.
    pub(super) over: bool,
    /// Frames have been captured twice that came from each end.
    pub(super) twice: [bool; 2],
    waits: u8,
    /// The first is that of who sent the first segment.
    ends: [Endpoint; 2],
    waiting: [Brief; ROOM],
}

impl Lane {
    pub(super) fn new(key: Key, number: u64, first: &Segment) -> Self {
        Self {
            key,
            number,
            last: first.time,
            over: false,
            twice: [false; 2],
            waits: 0,
            ends: [first.source, first.destination],
            waiting: [Brief::default(); ROOM],
        }
    }

    /// Which end sent it. (One end talking to itself is taken for the first.)
    #[inline(always)]
    pub(super) fn from(&self, segment: &Segment) -> usize {
        usize::from(self.ends[0] != segment.source)
    }

    /// Takes a segment to wait, if it says no more than most. There is room for one.
    #[inline]
    pub(super) fn take(&mut self, segment: &Segment, from: usize) -> bool {
        let brief = Brief::of(segment, from);
        if let Some(brief) = brief {
            self.waiting[usize::from(self.waits)] = brief;
            self.waits += 1;
        }
        brief.is_some()
    }

    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        usize::from(self.waits) == ROOM
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.waits == 0
    }

    /// Lets `connection` follow what waits.
    pub(super) fn settle(&mut self, connection: &mut Connection) {
        for brief in self.waiting.iter().take(self.waits.into()) {
            connection.push(&brief.restore(&self.ends));
        }
        self.waits = 0;
    }
}
