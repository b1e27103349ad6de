//! Where the capture was taken: how long each end takes to answer, seen from the tap.

use crate::segment::{Flags, Nanos, Segment};

/// Where the tap is, as seen from a direction's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// At the sender: acknowledgements arrive a whole round trip after the data.
    Sender,
    /// At the receiver: data and acknowledgements say nothing of the path.
    Receiver,
    /// TapComparison the two.
    Middle,
    /// The capture does not say.
    #[default]
    Unknown,
}

/// A tap is at an end that takes less than this share of the round trip.
const NEAR_SHARE: f64 = 0.1;
/// Round trips shorter than this are within a machine or a rack: both ends are near.
const MIN_ROUND_TRIP: Nanos = 50_000;

/// Round trips from the tap to both ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tap {
    ends: [End; 2],
    /// Who opened the connection, and when; gone when the SYN is retransmitted, as nobody knows which one is answered.
    opened: Option<(usize, Nanos)>,
    answered: Option<Nanos>,
    handshake: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, Default)]
struct End {
    /// How soon the handshake, or an echoed timestamp, was answered at best.
    answers: Option<Nanos>,
    /// A timestamp that went towards this end and that it has not echoed, and when.
    awaited: Option<(u32, Nanos)>,
}

impl End {
    fn answer(&mut self, took: Nanos) {
        self.answers = Some(self.answers.map_or(took, |least| least.min(took)));
    }
}

impl Tap {
    /// Reads what a segment from the end `from` says.
    #[inline]
    pub(crate) fn read(&mut self, segment: &Segment, from: usize) {
        if segment.flags.any(Flags::SYN) || self.answered.is_some() {
            self.shake_hands(segment, from);
        }
        let Some((value, echo)) = segment.options.timestamps else { return };
        let end = &mut self.ends[from];
        if let Some((_, since)) = end.awaited.filter(|awaited| awaited.0 == echo) {
            end.answer(segment.time.saturating_sub(since));
            end.awaited = None;
        }
        let other = &mut self.ends[1 - from];
        // One at a time. After a second it will not be echoed any more.
        if other.awaited.is_none_or(|(_, since)| segment.time.saturating_sub(since) > 1_000_000_000)
        {
            other.awaited = Some((value, segment.time));
        }
    }

    fn shake_hands(&mut self, segment: &Segment, from: usize) {
        let (syn, ack) = (segment.flags.any(Flags::SYN), segment.flags.any(Flags::ACK));
        match (syn, ack, self.opened, self.answered) {
            (true, false, None, None) if self.handshake.is_none() => {
                self.opened = Some((from, segment.time));
            }
            (true, true, Some((opener, since)), None) if opener != from => {
                self.ends[from].answer(segment.time.saturating_sub(since));
                self.answered = Some(segment.time);
            }
            (false, true, Some((opener, since)), Some(answered)) if opener == from => {
                self.ends[from].answer(segment.time.saturating_sub(answered));
                self.handshake = Some(segment.time.saturating_sub(since));
                (self.opened, self.answered) = (None, None);
            }
            (true, ..) => (self.opened, self.answered) = (None, None),
            _ => {}
        }
    }

    /// From the tap to the end `end` and back.
    #[inline(always)]
    pub(crate) fn round_trip(&self, end: usize) -> Option<Nanos> {
        self.ends[end].answers
    }

    /// From the SYN to the acknowledgement of its answer: the whole path.
    pub(crate) fn handshake(&self) -> Option<Nanos> {
        self.handshake
    }

    /// Which side the tap is on for data from the end `from`. `far`: the least RTT of data and acknowledgements.
    pub(crate) fn side(&self, from: usize, far: Option<Nanos>) -> Side {
        let away = [self.round_trip(1 - from), far].into_iter().flatten().min();
        let (Some(near), Some(away)) = (self.round_trip(from), away) else { return Side::Unknown };
        let whole = near.saturating_add(away);
        if whole < MIN_ROUND_TRIP {
            return Side::Unknown;
        }
        match near as f64 / whole as f64 {
            share if share <= NEAR_SHARE => Side::Sender,
            share if share >= 1.0 - NEAR_SHARE => Side::Receiver,
            _ => Side::Middle,
        }
    }
}
