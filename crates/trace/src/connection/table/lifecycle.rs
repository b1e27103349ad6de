//! Start and end of a connection by its SYNs, FINs and RSTs: enough to distinguish it from the next
//! connection between the same ends.

use crate::analysis::ConnectionEnd;
use crate::segment::{Flags, Nanos, Segment};

/// Flags that change the state.
pub(super) const LIFECYCLE_FLAGS: u8 = Flags::SYN | Flags::FIN | Flags::RST;

/// State of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LifecycleState {
    /// Initial sequence numbers of captured SYNs.
    isn: [Option<u32>; 2],
    finished: [bool; 2],
    pub(super) end: ConnectionEnd,
    /// Frame number and time of the first segment.
    pub(super) frame: u64,
    pub(super) time: Nanos,
    /// Plot points granted per direction.
    pub(super) points: usize,
    /// Frames captured twice, from each end.
    pub(super) copies: [u64; 2],
}

impl LifecycleState {
    /// Creates the state at the first segment.
    pub(super) fn new(first: &Segment) -> Self {
        let mut lifecycle = Self { frame: first.frame, time: first.time, ..Self::default() };
        lifecycle.process_segment(first, 0, false);
        lifecycle
    }

    /// Processes a segment from the end `from`; only SYN, FIN and RST have an effect. `talked`: the
    /// end has sent something other than a SYN.
    pub(super) fn process_segment(&mut self, segment: &Segment, from: usize, talked: bool) {
        let flags = segment.flags;
        // Before the SYN-ACK, a RST with another number answers an acknowledgement of an old
        // connection between the same ends (RFC 9293, 3.10.7.3). The SYN is then sent again.
        let opened = self.isn[from].filter(|_| !talked && self.isn[1 - from].is_none());
        let old = opened.is_some_and(|isn| segment.sequence != isn.wrapping_add(1));
        let reset = flags.contains_any(Flags::RST) && !old;
        if flags.contains_any(Flags::SYN) && !flags.contains_any(Flags::RST) {
            self.isn[from] = Some(segment.sequence);
        }
        self.finished[from] |= flags.contains_any(Flags::FIN);
        if self.end == ConnectionEnd::Open && reset {
            self.end = ConnectionEnd::Reset;
        } else if self.end == ConnectionEnd::Open && self.finished == [true; 2] {
            self.end = ConnectionEnd::Closed;
        }
    }

    /// Whether no more segments are expected.
    pub(super) fn has_ended(&self) -> bool {
        self.end != ConnectionEnd::Open
    }

    /// Whether a SYN of the end `from` opens a new connection. `talked`: the end has sent something
    /// other than a SYN.
    pub(super) fn opens_new_connection(&self, syn: &Segment, from: usize, talked: bool) -> bool {
        let another = self.isn[from].map_or(talked, |isn| isn != syn.sequence);
        another && (!syn.flags.contains_any(Flags::ACK) || self.has_ended())
    }
}
