//! Sequence numbers of 32 bits as numbers of 64 that never wrap.

/// Where a sequence space begins, so that what lies before its first number has a number too.
const ORIGIN: u64 = 1 << 32;

/// The first number seen of a sequence space.
pub(super) fn first(sequence: u32) -> u64 {
    ORIGIN + u64::from(sequence)
}

/// The number with the low 32 bits `sequence` that lies nearest to `near`.
#[inline(always)]
pub(super) fn unwrapped(near: u64, sequence: u32) -> u64 {
    let ahead = sequence.wrapping_sub(near as u32) as i32;
    near.wrapping_add_signed(i64::from(ahead))
}

/// Whether the 32-bit timestamp `a` is earlier than `b`.
#[inline(always)]
pub(super) fn earlier(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_wrap_is_a_step_like_any_other() {
        let before = first(u32::MAX);
        assert_eq!(unwrapped(before, 5), before + 6);
        assert_eq!(unwrapped(before + 6, u32::MAX), before);
        assert_eq!(unwrapped(first(3), u32::MAX), first(3) - 4);
        assert!(earlier(u32::MAX, 2) && !earlier(2, u32::MAX));
    }

    proptest! {
        #[test]
        fn steps_of_less_than_half_the_space_are_followed(
            start: u32,
            steps in prop::collection::vec(0_u64..1 << 31, 0..50),
        ) {
            let mut truth = first(start);
            let mut near = truth;
            for step in steps {
                truth += step;
                near = unwrapped(near, truth as u32);
                prop_assert_eq!(near, truth);
            }
        }
    }
}
