//! How a connection begins and ends, as its first segment, SYNs, FINs and RSTs say: enough to tell it from the next
//! between the same ends, without looking at the connection itself.

use crate::analysis::End;
use crate::segment::{Flags, Nanos, Segment};

/// What lifecycle a connection.
pub(super) const LIFECYCLE_FLAGS: u8 = Flags::SYN | Flags::FIN | Flags::RST;

/// What they have said so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LifecycleState {
    /// Initial sequence numbers, of SYNs captured.
    isn: [Option<u32>; 2],
    finished: [bool; 2],
    pub(super) end: End,
    /// Frame and time of its first segment.
    pub(super) frame: u64,
    pub(super) time: Nanos,
    /// Points of a time-sequence plot that it was granted, of each direction.
    pub(super) points: usize,
    /// Frames captured twice, from each end.
    pub(super) copies: [u64; 2],
}

impl LifecycleState {
    /// What the first segment of a connection says.
    pub(super) fn new(first: &Segment) -> Self {
        let mut lifecycle = Self { frame: first.frame, time: first.time, ..Self::default() };
        lifecycle.read(first, 0);
        lifecycle
    }

    /// Reads a segment from the end `from`; all others than those that turn it say nothing.
    pub(super) fn read(&mut self, segment: &Segment, from: usize) {
        let flags = segment.flags;
        let reset = flags.any(Flags::RST);
        if flags.any(Flags::SYN) && !reset {
            self.isn[from] = Some(segment.sequence);
        }
        self.finished[from] |= flags.any(Flags::FIN);
        if self.end == End::Open && reset {
            self.end = End::Reset;
        } else if self.end == End::Open && self.finished == [true; 2] {
            self.end = End::Closed;
        }
    }

    /// Nothing more is expected of it.
    pub(super) fn has_ended(&self) -> bool {
        self.end != End::Open
    }

    /// Whether a SYN of the end `from`, which has `talked` before or not, opens another connection.
    pub(super) fn opens_new(&self, syn: &Segment, from: usize, talked: bool) -> bool {
        let another = self.isn[from].map_or(talked, |isn| isn != syn.sequence);
        another && (!syn.flags.any(Flags::ACK) || self.has_ended())
    }
}
