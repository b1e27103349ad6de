//! Conversion of 32-bit sequence numbers to 64-bit numbers that never wrap.

/// Start of the sequence space, so that lower numbers can also be represented.
const FIRST_NUMBER: u64 = 1 << 32;

/// Returns the 64-bit number of the first number seen in a sequence space.
pub(super) fn unwrap_first_sequence(sequence: u32) -> u64 {
    FIRST_NUMBER + u64::from(sequence)
}

/// Returns the number with the low 32 bits `sequence` that is nearest to `near`.
#[inline(always)]
pub(super) fn unwrap_near(near: u64, sequence: u32) -> u64 {
    let ahead = sequence.wrapping_sub(near as u32) as i32;
    near.wrapping_add_signed(i64::from(ahead))
}

/// Whether the 32-bit timestamp `a` is earlier than `b`.
#[inline(always)]
pub(super) fn is_earlier_timestamp(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unwrapped_crosses_wrap_in_both_directions() {
        let before = unwrap_first_sequence(u32::MAX);
        assert_eq!(unwrap_near(before, 5), before + 6);
        assert_eq!(unwrap_near(before + 6, u32::MAX), before);
        assert_eq!(unwrap_near(unwrap_first_sequence(3), u32::MAX), unwrap_first_sequence(3) - 4);
        assert!(is_earlier_timestamp(u32::MAX, 2) && !is_earlier_timestamp(2, u32::MAX));
    }

    proptest! {
        #[test]
        fn unwrapped_follows_steps_below_half_of_space(
            start: u32,
            steps in prop::collection::vec(0_u64..1 << 31, 0..50),
        ) {
            let mut expected = unwrap_first_sequence(start);
            let mut near = expected;
            for step in steps {
                expected += step;
                near = unwrap_near(near, expected as u32);
                prop_assert_eq!(near, expected);
            }
        }
    }
}
