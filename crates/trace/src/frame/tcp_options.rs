//! Parses TCP options, and detects truncated or malformed ones.

use super::{NO_OPTIONS, u16_at, u32_at};
use crate::segment::{MAX_SACK_BLOCKS, Options};

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// Accurate ECN, with the bytes of ECT(0) first, and with those of ECT(1) first: RFC 9768.
const ACCURATE_ECN_0: u8 = 172;
const ACCURATE_ECN_1: u8 = 174;

/// Maximum window shift, RFC 7323, section 2.3.
const MAX_SHIFT: u8 = 14;

/// Parses the available options (`kept`) of `length` bytes; three kinds are valid only in a SYN.
#[inline(always)]
pub(super) fn read_options(kept: &[u8], length: usize, syn: bool) -> Options {
    let mut options = NO_OPTIONS;
    match kept {
        [] if length == 0 => {}
        // The usual form of nearly all stacks without other options (RFC 7323, appendix A).
        [NOP, NOP, TIMESTAMPS, 10, values @ ..] if kept.len() == 12 && length == 12 => {
            options.timestamps = Some((u32_at(values, 0), u32_at(values, 4)));
        }
        _ => parse_all(&mut options, kept, length, syn),
    }
    options
}

fn parse_all(options: &mut Options, kept: &[u8], length: usize, syn: bool) {
    let mut rest = kept;
    loop {
        match *rest {
            [] => {
                options.cut |= kept.len() < length;
                return;
            }
            [END, ..] => return,
            [NOP, ..] => rest = &rest[1..],
            [kind, size, ..] if size >= 2 && usize::from(size) <= rest.len() => {
                let (option, following) = rest.split_at(size.into());
                let understood = parse_option(options, kind, &option[2..], syn);
                options.cut |= !understood;
                rest = following;
            }
            // Invalid size: the start of the next option is unknown.
            _ => {
                options.cut = true;
                return;
            }
        }
    }
}

/// Parses one option. Returns false if its size is invalid.
fn parse_option(options: &mut Options, kind: u8, value: &[u8], syn: bool) -> bool {
    match (kind, value.len()) {
        (MSS, 2) => options.mss = syn.then(|| u16_at(value, 0)).or(options.mss),
        (WINDOW_SCALE, 1) => {
            let shift = value[0].min(MAX_SHIFT);
            options.window_scale = syn.then_some(shift).or(options.window_scale);
        }
        (SACK_PERMITTED, 0) => options.sack_permitted |= syn,
        (SACK, size) => {
            let blocks = value.chunks_exact(8).take(MAX_SACK_BLOCKS);
            options.sack_blocks = 0;
            for (slot, block) in options.sack.iter_mut().zip(blocks) {
                *slot = (u32_at(block, 0), u32_at(block, 4));
                options.sack_blocks += 1;
            }
            return size % 8 == 0;
        }
        (TIMESTAMPS, 8) => options.timestamps = Some((u32_at(value, 0), u32_at(value, 4))),
        (ACCURATE_ECN_0 | ACCURATE_ECN_1, 0 | 3) => {}
        // In both orders, the second field counts the bytes with CE.
        (ACCURATE_ECN_0 | ACCURATE_ECN_1, 6 | 9) => {
            options.ce_bytes = Some(u32::from_be_bytes([0, value[3], value[4], value[5]]));
        }
        (MSS | WINDOW_SCALE | SACK_PERMITTED | TIMESTAMPS | ACCURATE_ECN_0 | ACCURATE_ECN_1, _) => {
            return false;
        }
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_complete(bytes: &[u8], syn: bool) -> Options {
        read_options(bytes, bytes.len(), syn)
    }

    #[test]
    fn read_parses_syn_of_linux() {
        let bytes = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 0, 1, 3, 3, 7];
        let expected = Options {
            mss: Some(1460),
            sack_permitted: true,
            timestamps: Some((7, 0)),
            window_scale: Some(7),
            ..NO_OPTIONS
        };
        assert_eq!(read_complete(&bytes, true), expected);
        let later = Options { timestamps: Some((7, 0)), ..NO_OPTIONS };
        assert_eq!(read_complete(&bytes, false), later);
    }

    #[test]
    fn read_parses_sack_blocks_and_timestamps() {
        let mut bytes = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 18];
        for edge in [10_u32, 20, 30, 40] {
            bytes.extend(edge.to_be_bytes());
        }
        let options = read_complete(&bytes, false);
        assert_eq!(options.sack_blocks, 2);
        assert_eq!(options.sack[..2], [(10, 20), (30, 40)]);
        assert_eq!(options.timestamps, Some((1, 2)));
        assert!(!options.cut);
    }

    #[test]
    fn read_parses_both_orders_of_accurate_ecn() {
        for kind in [172, 174] {
            let bytes = [kind, 11, 0, 0, 1, 1, 2, 3, 0, 0, 1, 1];
            assert_eq!(read_complete(&bytes, false).ce_bytes, Some(0x01_02_03));
            assert_eq!(read_complete(&[kind, 5, 0, 0, 1, 1, 1, 1], false), NO_OPTIONS);
            assert!(read_complete(&[kind, 7, 0, 0, 1, 1, 1, 1], false).cut);
        }
    }

    #[test]
    fn read_marks_every_truncation_and_keeps_complete_options() {
        let bytes = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 10, 0, 0, 0, 3, 0, 0, 0, 4];
        for kept in 0..bytes.len() {
            let options = read_options(&bytes[..kept], bytes.len(), false);
            assert!(options.cut, "{kept}");
            assert_eq!(options.timestamps.is_some(), kept >= 12, "{kept}");
            assert_eq!(options.sack_blocks, 0);
        }
        assert!(!read_options(&bytes, bytes.len(), false).cut);
    }

    #[test]
    fn read_rejects_invalid_sizes() {
        for bytes in [[3, 0, 7, 0], [3, 1, 7, 0], [3, 9, 7, 0], [2, 3, 7, 0], [8, 4, 0, 0]] {
            assert_eq!(
                read_complete(&bytes, true),
                Options { cut: true, ..NO_OPTIONS },
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn read_ignores_empty_sack_and_marks_partial_block() {
        assert_eq!(read_complete(&[5, 2, 1, 1], false), NO_OPTIONS);
        let half = [5, 14, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0];
        let options = read_complete(&half, false);
        assert_eq!((options.sack_blocks, options.sack[0], options.cut), (1, (1, 2), true));
    }

    #[test]
    fn read_limits_window_shift_to_14() {
        assert_eq!(read_complete(&[3, 3, 255, 0], true).window_scale, Some(14));
    }

    #[test]
    fn read_stops_at_end_of_list() {
        assert_eq!(read_complete(&[0, 2, 4, 9], true), NO_OPTIONS);
    }
}
