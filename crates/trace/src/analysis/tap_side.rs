//! Locates the tap on the path by the response times of both ends.

use crate::segment::{Flags, Nanos, Segment};

/// Position of the tap relative to a direction's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TapSide {
    /// At the sender: acknowledgements arrive a full round trip after the data.
    Sender,
    /// At the receiver: data and acknowledgements show nothing about the path.
    Receiver,
    /// Between sender and receiver.
    Middle,
    /// Unknown.
    #[default]
    Unknown,
}

/// Round-trip time to an end from which the tap counts as remote.
pub(super) const MIN_REMOTE_RTT: Nanos = 1_000_000;
/// The tap is at an end whose share of the round trip is at most this.
const MAX_NEAR_RTT_SHARE: f64 = 0.1;
/// Shorter round trips are within a machine or rack, so that both ends are near.
const MIN_DISTINCT_RTT: Nanos = 50_000;

/// Round-trip times from the tap to both ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct TapRtts {
    ends: [TapToEndRtt; 2],
    /// Opener of the connection and the time of its SYN; cleared if the SYN is retransmitted,
    /// because the SYN-ACK is then ambiguous.
    opened: Option<(usize, Nanos)>,
    answered: Option<Nanos>,
    handshake: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TapToEndRtt {
    /// Shortest response time to a handshake segment or timestamp.
    min_response: Option<Nanos>,
    /// A timestamp sent to this end and not yet echoed, and its time.
    awaited: Option<(u32, Nanos)>,
}

impl TapToEndRtt {
    fn add_answer_time(&mut self, took: Nanos) {
        self.min_response = Some(self.min_response.map_or(took, |min| min.min(took)));
    }
}

impl TapRtts {
    /// Processes a segment from the end `from`.
    #[inline]
    pub(crate) fn process_segment(&mut self, segment: &Segment, from: usize) {
        if segment.flags.contains_any(Flags::SYN) || self.answered.is_some() {
            self.process_handshake(segment, from);
        }
        let Some((value, echo)) = segment.options.timestamps else { return };
        let end = &mut self.ends[from];
        if let Some((_, since)) = end.awaited.filter(|awaited| awaited.0 == echo) {
            end.add_answer_time(segment.time.saturating_sub(since));
            end.awaited = None;
        }
        let other = &mut self.ends[1 - from];
        // One timestamp at a time; after a second, the echo is not expected any longer.
        if other.awaited.is_none_or(|(_, since)| segment.time.saturating_sub(since) > 1_000_000_000)
        {
            other.awaited = Some((value, segment.time));
        }
    }

    fn process_handshake(&mut self, segment: &Segment, from: usize) {
        let (syn, ack) =
            (segment.flags.contains_any(Flags::SYN), segment.flags.contains_any(Flags::ACK));
        match (syn, ack, self.opened, self.answered) {
            (true, false, None, None) if self.handshake.is_none() => {
                self.opened = Some((from, segment.time));
            }
            (true, true, Some((opener, since)), None) if opener != from => {
                self.ends[from].add_answer_time(segment.time.saturating_sub(since));
                self.answered = Some(segment.time);
            }
            (false, true, Some((opener, since)), Some(answered)) if opener == from => {
                self.ends[from].add_answer_time(segment.time.saturating_sub(answered));
                self.handshake = Some(segment.time.saturating_sub(since));
                (self.opened, self.answered) = (None, None);
            }
            (true, ..) => (self.opened, self.answered) = (None, None),
            _ => {}
        }
    }

    /// Round-trip time from the tap to the end `end`.
    #[inline(always)]
    pub(crate) fn rtt_to_end(&self, end: usize) -> Option<Nanos> {
        self.ends[end].min_response
    }

    /// Time from the SYN to the acknowledgement of the SYN-ACK: the RTT of the full path.
    pub(crate) fn handshake_rtt(&self) -> Option<Nanos> {
        self.handshake
    }

    /// Returns the position of the tap for data from the end `from`. `far`: minimum RTT of data and
    /// acknowledgements.
    pub(crate) fn tap_side(&self, from: usize, far: Option<Nanos>) -> TapSide {
        let far_rtt = [self.rtt_to_end(1 - from), far].into_iter().flatten().min();
        let (Some(tap_rtt), Some(far_rtt)) = (self.rtt_to_end(from), far_rtt) else {
            return TapSide::Unknown;
        };
        let total = tap_rtt.saturating_add(far_rtt);
        if total < MIN_DISTINCT_RTT {
            return TapSide::Unknown;
        }
        match tap_rtt as f64 / total as f64 {
            share if share <= MAX_NEAR_RTT_SHARE => TapSide::Sender,
            share if share >= 1.0 - MAX_NEAR_RTT_SHARE => TapSide::Receiver,
            _ => TapSide::Middle,
        }
    }
}
