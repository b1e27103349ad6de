//! Packets of scripts: `P. 1:1001(1000) ack 1 win 257 <nop,nop,sack 3:4>`.

use super::{ScriptError, not_supported};

/// ECN bits of a packet; `Any` if the script does not specify them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnSpec {
    Any,
    NotCapable,
    Capable,
    Scalable,
    Marked,
}

/// TCP options of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionSpec {
    /// `<...>`: any options.
    pub any: bool,
    pub mss: Option<u32>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: Option<(u32, u32)>,
    pub sacks: Vec<(u64, u64)>,
    /// Fields of accurate ECN in the order `e1b`, `ceb`, `e0b`.
    pub accurate_ecn: Option<Vec<u32>>,
}

/// A packet that arrives or is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketSpec {
    pub flags: String,
    pub start: u64,
    pub len: u32,
    pub ack: Option<u64>,
    pub window: Option<u32>,
    pub ecn: EcnSpec,
    pub options: OptionSpec,
}

/// Parses a packet.
pub fn parse(text: &str) -> Result<PacketSpec, ScriptError> {
    let (ecn, rest) = parse_ecn(text)?;
    let (head, options) = match rest.split_once('<') {
        Some((head, options)) => (head, parse_options(options.trim_end_matches('>').trim())?),
        None => (rest, OptionSpec::default()),
    };
    let mut words = head.split_whitespace();
    let flags = words.next().unwrap_or_default();
    let parsed = if flags == "-" { Some(flags.to_owned()) } else { parse_flags(flags) };
    let Some(flags) = parsed.filter(|flags| !flags.is_empty()) else {
        return not_supported(format!("{flags:?} are not TCP flags"));
    };
    let Some((start, end, len)) = words.next().and_then(parse_sequence_range) else {
        return not_supported(format!("no sequence numbers in {text:?}"));
    };
    if end - start != u64::from(len) {
        return not_supported(format!("{start}:{end} does not have {len} bytes"));
    }
    let mut spec = PacketSpec { flags, start, len, ack: None, window: None, ecn, options };
    while let Some(word) = words.next() {
        let value = words.next().and_then(|value| value.parse::<u64>().ok());
        match (word, value) {
            ("ack", Some(ack)) => spec.ack = Some(ack),
            ("win", Some(window)) => spec.window = u32::try_from(window).ok(),
            _ => return not_supported(format!("{word:?} of a packet")),
        }
    }
    Ok(spec)
}

fn parse_ecn(text: &str) -> Result<(EcnSpec, &str), ScriptError> {
    let Some(bracket) = text.strip_prefix('[') else { return Ok((EcnSpec::Any, text)) };
    let Some((bits, rest)) = bracket.split_once(']') else {
        return not_supported(format!("[ is not closed in {text:?}"));
    };
    let ecn = match bits.trim() {
        "noecn" => EcnSpec::NotCapable,
        "ect0" | "ect01" => EcnSpec::Capable,
        "ect1" => EcnSpec::Scalable,
        "ce" => EcnSpec::Marked,
        other => return not_supported(format!("[{other}] of a packet")),
    };
    Ok((ecn, rest.trim_start()))
}

/// `1:1001(1000)`
fn parse_sequence_range(text: &str) -> Option<(u64, u64, u32)> {
    let (numbers, len) = text.split_once('(')?;
    let (start, end) = numbers.split_once(':')?;
    let len = len.strip_suffix(')')?.parse().ok()?;
    Some((start.parse().ok()?, end.parse().ok()?, len))
}

fn parse_options(text: &str) -> Result<OptionSpec, ScriptError> {
    let mut options = OptionSpec::default();
    for option in text.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        let words: Vec<&str> = option.split_whitespace().collect();
        let number = |index: usize| words.get(index).and_then(|word| word.parse::<u32>().ok());
        match words.as_slice() {
            ["..."] => options.any = true,
            ["nop" | "eol"] => (),
            ["mss", _] => options.mss = number(1),
            ["wscale", _] => options.window_scale = number(1).and_then(|n| n.try_into().ok()),
            ["sackOK"] => options.sack_permitted = true,
            ["TS", "val", _, "ecr", _] => {
                let (Some(value), Some(echo)) = (number(2), number(4)) else {
                    return not_supported(format!("option {option:?}"));
                };
                options.timestamps = Some((value, echo));
            }
            ["ECN", fields @ ..] if fields.len() % 2 == 0 => {
                let Some(bytes) = parse_accurate_ecn(fields) else {
                    return not_supported(format!("option {option:?}"));
                };
                options.accurate_ecn = Some(bytes);
            }
            ["sack", blocks @ ..] => {
                for block in blocks {
                    let Some((start, end)) = block.split_once(':') else {
                        return not_supported(format!("SACK block {block:?}"));
                    };
                    match (start.parse(), end.parse()) {
                        (Ok(start), Ok(end)) => options.sacks.push((start, end)),
                        _ => return not_supported(format!("SACK block {block:?}")),
                    }
                }
            }
            _ => return not_supported(format!("option {option:?}")),
        }
    }
    Ok(options)
}

/// Parses `e1b 1 ceb 0 e0b 1`, in any order, or only the first fields.
fn parse_accurate_ecn(words: &[&str]) -> Option<Vec<u32>> {
    let mut bytes = Vec::new();
    for name in ["e1b", "ceb", "e0b"].iter().take(words.len() / 2) {
        let pair = words.chunks(2).find(|pair| pair[0] == *name)?;
        bytes.push(pair[1].parse().ok()?);
    }
    Some(bytes)
}

/// Flags of a packet; a digit stands for the flags A, W and E of accurate ECN.
fn parse_flags(text: &str) -> Option<String> {
    let mut flags = String::new();
    for letter in text.chars() {
        match letter.to_digit(8) {
            Some(ace) => {
                let bits = [(4, 'A'), (2, 'W'), (1, 'E')];
                flags.extend(bits.iter().filter(|(bit, _)| ace & bit != 0).map(|(_, flag)| flag));
            }
            None if "SFRP.AEW".contains(letter) => flags.push(letter),
            None => return None,
        }
    }
    Some(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_flags_numbers_and_options() {
        let spec = parse("[ect0] PE. 1:1001(1000) ack 1 win 257 <nop,nop,sack 1:2 4:6>").unwrap();
        assert_eq!((spec.flags.as_str(), spec.start, spec.len), ("PE.", 1, 1000));
        assert_eq!((spec.ack, spec.window, spec.ecn), (Some(1), Some(257), EcnSpec::Capable));
        assert_eq!(spec.options.sacks, [(1, 2), (4, 6)]);
        let syn = parse("S 0:0(0) <mss 1460,sackOK,TS val 5 ecr 0,nop,wscale 7>").unwrap();
        assert_eq!((syn.options.mss, syn.options.window_scale), (Some(1460), Some(7)));
        assert_eq!(syn.options.timestamps, Some((5, 0)));
        assert!(parse("S. 0:0(0) ack 1 <...>").unwrap().options.any);
        let accurate = parse("[ect1] EA. 1:1(0) ack 9 <ECN e1b 1 ceb 0 e0b 9,nop>").unwrap();
        assert_eq!((accurate.ecn, accurate.flags.as_str()), (EcnSpec::Scalable, "EA."));
        assert_eq!(accurate.options.accurate_ecn, Some(vec![1, 0, 9]));
    }

    #[test]
    fn unsupported_packets_are_named() {
        for text in ["S 0:0(0) <FO abcd,nop>", "X 0:0(0)", ". 1:1(0) urg 3", ". 1:9(0) ack 1"] {
            assert!(matches!(parse(text), Err(ScriptError::NotSupported(_))), "{text}");
        }
    }
}
