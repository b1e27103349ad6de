//! Counts acknowledgements that the receiver sent and the tap did not capture, by IP
//! identification. Linux and other stacks number the packets of a connection sequentially, so a
//! return path that drops or filters acknowledgements leaves gaps.

use crate::segment::{Flags, Segment};

/// Larger steps do not count packets: identifications are random or shared by many connections.
const MAX_COUNTING_STEP: u16 = 64;
/// Minimum share of steps that count packets.
const MIN_COUNTING_SHARE: f64 = 0.95;
/// Minimum number of steps for a decision.
const MIN_STEPS: u32 = 20;

/// Steps between the IP identifications of the receiver's segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IpIdSteps {
    /// Identification of the previous segment, if that was a single packet without data.
    last: Option<u16>,
    steps: u32,
    counted: u32,
    skipped: u64,
}

impl IpIdSteps {
    #[inline]
    pub(super) fn add_segment(&mut self, segment: &Segment) {
        let Some(id) = segment.ip_id else { return };
        let bare = segment.payload == 0 && !segment.flags.contains_any(Flags::SYN);
        if let Some(last) = std::mem::replace(&mut self.last, bare.then_some(id)) {
            let step = id.wrapping_sub(last);
            self.steps = self.steps.saturating_add(1);
            if (1..=MAX_COUNTING_STEP).contains(&step) {
                self.counted += 1;
                self.skipped += u64::from(step - 1);
            }
        }
    }

    /// Number of missing segments of the receiver; `None` if their identifications do not count
    /// packets.
    pub(super) fn missing_segments(&self) -> Option<u64> {
        let counts = f64::from(self.counted) >= MIN_COUNTING_SHARE * f64::from(self.steps);
        (counts && self.steps >= MIN_STEPS).then_some(self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::EMPTY_SEGMENT;

    fn missing(ids: impl Iterator<Item = u16>) -> Option<u64> {
        let mut numbering = IpIdSteps::default();
        ids.for_each(|id| numbering.add_segment(&Segment { ip_id: Some(id), ..EMPTY_SEGMENT }));
        numbering.missing_segments()
    }

    #[test]
    fn missing_counts_gaps_of_a_counter() {
        assert_eq!(missing((65_500..=65_535).chain(0..100)), Some(0));
        assert_eq!(missing((0..300).step_by(3)), Some(2 * 99));
        assert_eq!(missing((0..200).filter(|id| id % 10 != 0)), Some(19));
    }

    #[test]
    fn missing_is_none_for_other_identifications() {
        assert_eq!(missing((0..100).map(|n: u16| n.wrapping_mul(25_173))), None);
        assert_eq!(missing(std::iter::repeat_n(0, 100)), None);
        assert_eq!(missing(0..20), None);
    }

    #[test]
    fn missing_ignores_steps_after_data_frames() {
        let mut numbering = IpIdSteps::default();
        for n in 0..50 {
            // Ten packets in one frame; the first has the next number.
            numbering.add_segment(&Segment { ip_id: Some(11 * n), ..EMPTY_SEGMENT });
            numbering.add_segment(&Segment {
                ip_id: Some(11 * n + 1),
                payload: 14_480,
                ..EMPTY_SEGMENT
            });
        }
        assert_eq!(numbering.missing_segments(), Some(0));
    }
}
