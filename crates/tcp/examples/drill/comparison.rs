//! Comparison of sent packets with the packets that a script expects.

use std::collections::HashMap;

use super::packet::{EcnSpec, PacketSpec};
use tcpcast_link::Ecn;
use tcpcast_link::time::{MILLISECOND, Nanos};
use tcpcast_tcp::modern::{Segment, Timestamps};

/// Start time of a script, late enough that no timestamp is zero.
pub const SCRIPT_START: Nanos = 100_000_000_000;
/// Default tolerance of the time of a packet, as in packetdrill.
const DEFAULT_TOLERANCE: Nanos = 4 * MILLISECOND;

/// Settings and state of the comparison.
#[derive(Clone, Debug)]
pub struct PacketComparison {
    /// Tolerance of the time of a packet.
    pub tolerance: Nanos,
    /// Whether values of sent timestamps are compared.
    pub compares_timestamps: bool,
    /// Offset of our timestamps from those in the script, which the first sent packet defines.
    timestamp_offset: Option<u32>,
    /// Our timestamp for each timestamp in the script.
    timestamps: HashMap<u32, u32>,
    /// Whether the script sets the size of the receive buffer.
    pub has_buffer_size: bool,
}

impl Default for PacketComparison {
    fn default() -> Self {
        Self {
            tolerance: DEFAULT_TOLERANCE,
            compares_timestamps: false,
            timestamp_offset: None,
            timestamps: HashMap::new(),
            has_buffer_size: false,
        }
    }
}

impl PacketComparison {
    /// Compares a sent packet with the expected one; the error describes the difference.
    pub fn compare(&mut self, spec: &PacketSpec, got: &Segment) -> Result<(), String> {
        let differ = |what: &str, expected: String, got: String| {
            if expected == got { Ok(()) } else { Err(format!("{what} {got}, not {expected}")) }
        };
        let expected: String = spec.flags.chars().filter(|&c| c != 'P').collect();
        let sorted = |text: String| {
            let mut letters: Vec<char> = text.chars().collect();
            letters.sort_unstable();
            letters.into_iter().collect::<String>()
        };
        differ("flags", sorted(expected), sorted(format_flags(got)))?;
        differ("sequence number", spec.start.to_string(), got.seq.to_string())?;
        differ("bytes", spec.len.to_string(), got.len.to_string())?;
        if got.flags.ack {
            differ("ack", format!("{:?}", spec.ack), format!("{:?}", Some(got.ack)))?;
        }
        let ecn = match spec.ecn {
            EcnSpec::Any => got.ecn,
            EcnSpec::NotCapable => Ecn::NotEct,
            EcnSpec::Capable => Ecn::Ect0,
            EcnSpec::Scalable => Ecn::Ect1,
            EcnSpec::Marked => Ecn::Ce,
        };
        differ("congestion bits", format!("{ecn:?}"), format!("{:?}", got.ecn))?;
        if spec.options.any {
            return Ok(());
        }
        let wanted = &spec.options;
        differ("mss", format!("{:?}", wanted.mss), format!("{:?}", got.options.mss))?;
        // Without a buffer size in the script, the window scale depends on the host of its author.
        let number =
            |scale: Option<u8>| if self.has_buffer_size { scale } else { scale.map(|_| 0) };
        let scales = (number(wanted.window_scale), number(got.options.window_scale));
        differ("wscale", format!("{:?}", scales.0), format!("{:?}", scales.1))?;
        let sack = (wanted.sack_permitted.to_string(), got.options.sack_permitted.to_string());
        differ("sackOK", sack.0, sack.1)?;
        let sacks: Vec<_> = got.options.sacks.as_slice().iter().map(|b| (b.start, b.end)).collect();
        differ("sack", format!("{:?}", wanted.sacks), format!("{sacks:?}"))?;
        let fields = got
            .options
            .accurate_ecn
            .map(|option| option.bytes[..usize::from(option.fields)].to_vec());
        differ("ECN", format!("{:?}", wanted.accurate_ecn), format!("{fields:?}"))?;
        self.compare_timestamps(wanted.timestamps, got.options.timestamps)
    }

    /// Forgets the timestamps of an earlier connection.
    pub fn start_connection(&mut self) {
        self.timestamp_offset = None;
        self.timestamps.clear();
    }

    /// Our timestamp that an arriving packet echoes as `script`.
    pub fn echoed_timestamp(&self, script: u32) -> u32 {
        let offset = self.timestamp_offset.filter(|_| script != 0).unwrap_or(0);
        self.timestamps.get(&script).copied().unwrap_or(script.wrapping_add(offset))
    }

    /// Compares timestamps: our values, if wanted, relative to the first one, and echoed values
    /// exactly.
    fn compare_timestamps(
        &mut self,
        wanted: Option<(u32, u32)>,
        got: Option<Timestamps>,
    ) -> Result<(), String> {
        match (wanted, got) {
            (None, None) => Ok(()),
            (Some((value, echo)), Some(got)) => {
                let offset = *self.timestamp_offset.get_or_insert(got.value.wrapping_sub(value));
                self.timestamps.insert(value, got.value);
                let ticks = self.tolerance.div_ceil(MILLISECOND) as i32;
                let error = got.value.wrapping_sub(offset).wrapping_sub(value) as i32;
                if self.compares_timestamps && error.abs() > ticks {
                    return Err(format!("TS val {}", i64::from(value) + i64::from(error)));
                }
                if echo == got.echo { Ok(()) } else { Err(format!("TS ecr {}", got.echo)) }
            }
            (None, Some(_)) => Err("with a TS option".to_owned()),
            (Some(_), None) => Err("without a TS option".to_owned()),
        }
    }
}

/// Formats a time as in scripts.
pub fn format_seconds(at: Nanos) -> String {
    format!("{:.6}", at.saturating_sub(SCRIPT_START) as f64 / 1e9)
}

fn format_flags(segment: &Segment) -> String {
    let flags = segment.flags;
    let letters = [
        (flags.syn, 'S'),
        (flags.fin, 'F'),
        (flags.rst, 'R'),
        (flags.ae, 'A'),
        (flags.ece, 'E'),
        (flags.cwr, 'W'),
        (flags.ack, '.'),
    ];
    letters.into_iter().filter(|(set, _)| *set).map(|(_, letter)| letter).collect()
}

/// Formats a sent packet as in scripts.
pub fn format_segment(at: Nanos, segment: &Segment) -> String {
    let end = segment.seq + u64::from(segment.len);
    let (flags, seq, len, ack) = (format_flags(segment), segment.seq, segment.len, segment.ack);
    let sacks: String = segment
        .options
        .sacks
        .as_slice()
        .iter()
        .map(|b| format!(" {}:{}", b.start, b.end))
        .collect();
    let options = if sacks.is_empty() { String::new() } else { format!(" <sack{sacks}>") };
    format!("{flags} {seq}:{end}({len}) ack {ack}{options} at {}", format_seconds(at))
}

/// Formats an expected packet.
pub fn format_spec(spec: &PacketSpec) -> String {
    let ack = spec.ack.map_or(String::new(), |ack| format!(" ack {ack}"));
    let end = spec.start + u64::from(spec.len);
    format!("{} {}:{end}({}){ack}", spec.flags, spec.start, spec.len)
}
