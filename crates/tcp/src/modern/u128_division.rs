//! Division of 128-bit numbers that usually fit into 64 bits.

/// Returns the quotient, rounded down. A 128-bit division is many times slower than a 64-bit one.
#[inline(always)]
pub(crate) fn divide_u128(dividend: u128, divisor: u64) -> u128 {
    match u64::try_from(dividend) {
        Ok(dividend) => u128::from(dividend / divisor),
        Err(_) => dividend / u128::from(divisor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_divisions_agree() {
        let max = u128::from(u64::MAX);
        for dividend in [0, 1, 999, max - 1, max, max + 1, 1000 * max, u128::MAX] {
            for divisor in [1, 7, 1000, u64::MAX] {
                assert_eq!(divide_u128(dividend, divisor), dividend / u128::from(divisor));
            }
        }
    }
}
