//! Acknowledgements that the receiver sent and the tap did not see, by the identifications of their IP packets. Linux
//! and others number the packets of a connection one by one; a return path that drops or filters acks leaves gaps.

use crate::segment::{Flags, Segment};

/// Larger steps do not count packets: the identification is random, or of a counter that many connections share.
const LARGEST_STEP: u16 = 64;
/// Share of the steps that must count packets.
const COUNTED: f64 = 0.95;
/// Fewer steps do not show how packets are numbered.
const ENOUGH_STEPS: u32 = 20;

/// Steps between the identifications of segments from the receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbering {
    /// Identification of the segment before, if that was a single packet without data.
    last: Option<u16>,
    steps: u32,
    counted: u32,
    skipped: u64,
}

impl Numbering {
    #[inline]
    pub(super) fn read(&mut self, segment: &Segment) {
        let Some(id) = segment.ip_id else { return };
        let bare = segment.payload == 0 && !segment.flags.any(Flags::SYN);
        if let Some(last) = std::mem::replace(&mut self.last, bare.then_some(id)) {
            let step = id.wrapping_sub(last);
            self.steps = self.steps.saturating_add(1);
            if (1..=LARGEST_STEP).contains(&step) {
                self.counted += 1;
                self.skipped += u64::from(step - 1);
            }
        }
    }

    /// Segments of the receiver that the capture lacks; `None` if their identifications do not count packets.
    pub(super) fn missing(&self) -> Option<u64> {
        let counts = f64::from(self.counted) >= COUNTED * f64::from(self.steps);
        (counts && self.steps >= ENOUGH_STEPS).then_some(self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::BLANK;

    fn missing(ids: impl Iterator<Item = u16>) -> Option<u64> {
        let mut numbering = Numbering::default();
        ids.for_each(|id| numbering.read(&Segment { ip_id: Some(id), ..BLANK }));
        numbering.missing()
    }

    #[test]
    fn gaps_of_a_counter_are_missing_packets() {
        assert_eq!(missing((65_500..=65_535).chain(0..100)), Some(0));
        assert_eq!(missing((0..300).step_by(3)), Some(2 * 99));
        assert_eq!(missing((0..200).filter(|id| id % 10 != 0)), Some(19));
    }

    #[test]
    fn other_identifications_show_nothing() {
        assert_eq!(missing((0..100).map(|n: u16| n.wrapping_mul(25_173))), None);
        assert_eq!(missing(std::iter::repeat_n(0, 100)), None);
        assert_eq!(missing(0..20), None);
    }

    #[test]
    fn a_frame_with_data_may_have_several_packets() {
        let mut numbering = Numbering::default();
        for n in 0..50 {
            // Ten packets in one frame, the first with the next number.
            numbering.read(&Segment { ip_id: Some(11 * n), ..BLANK });
            numbering.read(&Segment { ip_id: Some(11 * n + 1), payload: 14_480, ..BLANK });
        }
        assert_eq!(numbering.missing(), Some(0));
    }
}
