//! Statistics of the reading: frames, skipped frames, and damage of the file.

use crate::frame::{SkipReason, TunnelKinds};
use crate::segment::Nanos;

/// Number of frames without a segment, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkippedFrames {
    /// No IP.
    pub not_ip: u64,
    /// IP, but no TCP.
    pub not_tcp: u64,
    /// Later fragments of TCP packets.
    pub fragments: u64,
    /// Truncated before the end of the TCP header.
    pub cut: u64,
    /// Inconsistent headers.
    pub broken: u64,
    /// Unknown link types.
    pub unknown_link: u64,
    /// TCP segments repeated in the file, which contains a copy of itself.
    pub repeated: u64,
    /// TCP segments that were captured first on another interface.
    pub other_interface: u64,
}

impl SkippedFrames {
    /// All skipped frames.
    #[must_use]
    pub fn total(&self) -> u64 {
        let damaged = self.cut + self.broken;
        let copies = self.repeated + self.other_interface;
        self.not_ip + self.not_tcp + self.fragments + damaged + self.unknown_link + copies
    }

    pub(super) fn count_frame(&mut self, reason: SkipReason) {
        *match reason {
            SkipReason::NotIp => &mut self.not_ip,
            SkipReason::NotTcp => &mut self.not_tcp,
            SkipReason::Fragment => &mut self.fragments,
            SkipReason::Truncated => &mut self.cut,
            SkipReason::Broken => &mut self.broken,
            SkipReason::UnknownLink => &mut self.unknown_link,
        } += 1;
    }
}

/// Damage of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DamageKind {
    /// The file ends within its header or the header of a record or block.
    #[error("the file ends within a header")]
    HeaderCut,
    /// The file ends within a record or a block.
    #[error("the file ends within a record")]
    RecordCut,
    /// Reading failed: an input/output error or corrupt compressed data.
    #[error("reading failed: {0}")]
    Source(String),
    /// Unsupported version of the format.
    #[error("format version {0}.{1} is not supported")]
    Version(u16, u16),
    /// Record length larger than any frame.
    #[error("a record declares {0} bytes, more than any frame contains")]
    Length(u32),
    /// Invalid byte-order magic of a section.
    #[error("a section has no valid byte order: {0:#010x} instead of 0x1a2b3c4d")]
    ByteOrder(u32),
    /// Invalid block length.
    #[error("a block declares an invalid length of {0} bytes")]
    BlockLength(u32),
    /// Leading and trailing length of a block differ.
    #[error("a block declares {0} bytes at its start, but {1} bytes at its end")]
    Trailer(u32, u32),
    /// Block too short for its fields.
    #[error("a block of type {0} is too short for its fields")]
    BlockShort(u32),
    /// Option longer than its block.
    #[error("an option extends beyond its block")]
    Option,
    /// Unsupported timestamp resolution.
    #[error("the timestamp resolution {0:#04x} is not supported")]
    Resolution(u8),
    /// Frame of an interface that the file does not describe.
    #[error("a frame refers to interface {0}, which the file does not describe")]
    Interface(u32),
    /// Too many interfaces.
    #[error("the file describes more than {0} interfaces")]
    Interfaces(usize),
}

/// Damage and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("after frame {frame}, at byte {at}: {kind}")]
pub struct Damage {
    /// Offset of the damaged record in the uncompressed data.
    pub at: u64,
    /// Number of frames before the damage.
    pub frame: u64,
    /// Kind of damage.
    pub kind: DamageKind,
}

/// Maximum number of damaged places that are listed; the others are counted.
const MAX_DAMAGE: usize = 16;

/// Summary of the frames read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadSummary {
    /// Number of frames; each is a segment or skipped.
    pub frames: u64,
    /// TCP segments.
    pub segments: u64,
    /// Frames without a segment.
    pub skipped: SkippedFrames,
    /// True if the number of the interface is known for some frames.
    pub(super) has_interfaces: bool,
    /// Numbers of the interfaces whose segments were skipped as copies.
    pub other_interfaces: String,
    /// Segments that are the first fragment of a packet; the payload of the other fragments is not
    /// counted.
    pub first_fragments: u64,
    /// Segments with truncated or malformed options.
    pub cut_options: u64,
    /// Segments found inside tunnels.
    pub tunnelled: u64,
    /// Kinds of tunnels found.
    pub tunnels: TunnelKinds,
    /// First unknown link type.
    pub unknown_link: Option<u32>,
    /// Number of frames with an earlier timestamp than the previous frame.
    pub backwards: u64,
    /// Largest backward step of the timestamps, ns.
    pub longest_back: Nanos,
    /// Frames without timestamp (simple packet blocks), which get the timestamp of the previous
    /// frame.
    pub untimed: u64,
    /// Frames with a timestamp beyond the supported range, which get the latest possible time.
    pub too_late: u64,
    /// Frames with a recorded length below their actual length.
    pub wrong_lengths: u64,
    /// Frames dropped during the capture, if recorded.
    pub dropped: u64,
    /// First damaged places of the file.
    pub damage: Vec<Damage>,
    /// Number of damaged places that `damage` does not list.
    pub more_damage: u64,
}

impl ReadSummary {
    /// Whether the file is damaged, so that results are incomplete.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        !self.damage.is_empty()
    }

    /// Returns warnings about the capture, one per line.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.damage.iter().map(ToString::to_string).collect();
        let mut warn = |count: u64, text: &str| {
            if count > 0 {
                lines.push(count_with_noun(count, text));
            }
        };
        warn(self.more_damage, "further errors in the file");
        warn(self.dropped, "frames dropped during the capture");
        warn(self.skipped.broken, "frames skipped: inconsistent headers");
        warn(self.skipped.cut, "frames skipped: truncated before the end of the TCP header");
        warn(self.skipped.fragments, "fragments skipped: only the first has a TCP header");
        warn(
            self.skipped.repeated,
            "segments repeated in the same order, because the file contains a part of itself twice; \
             each is counted once",
        );
        let interfaces = &self.other_interfaces;
        warn(
            self.skipped.other_interface,
            &format!("segments skipped: copies on another interface ({interfaces})"),
        );
        warn(
            self.tunnelled,
            &format!(
                "segments inside tunnels ({}); tcpcast used the inner addresses",
                self.tunnels
            ),
        );
        warn(
            self.cut_options,
            "segments with truncated or malformed options: SACK blocks may be missing; capture at least \
             128 bytes per packet (tcpdump -s 128)",
        );
        warn(
            self.wrong_lengths,
            "frames with a recorded length below the IP length; tcpcast used the IP length",
        );
        warn(
            self.too_late,
            "frames with a timestamp after the year 2262; tcpcast used that year instead. The clock or the \
             timestamp resolution of the capture's interface is wrong",
        );
        warn(self.untimed, "frames without a timestamp; tcpcast used the previous timestamp");
        if self.backwards > 0 {
            let max_ms = self.longest_back as f64 / 1e6;
            let times = count_with_noun(self.backwards, "times");
            lines.push(format!("timestamps step back {times}, by up to {max_ms} ms"));
        }
        if let Some(kind) = self.unknown_link {
            let count = self.skipped.unknown_link;
            let frames = count_with_noun(count, "frames");
            lines.push(format!("{frames} skipped: unknown link type, for example {kind}"));
        }
        if self.segments == 0 {
            let frames = count_with_noun(self.frames, "frames");
            lines.push(format!("no TCP segment in {frames}"));
        }
        lines
    }

    pub(super) fn add_step_back(&mut self, by: Nanos) {
        self.backwards += 1;
        self.longest_back = self.longest_back.max(by);
    }

    pub(super) fn add_damage(&mut self, at: u64, kind: DamageKind) {
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(Damage { at, frame: self.frames, kind });
        } else {
            self.more_damage += 1;
        }
    }
}

/// Formats a count and `text`, whose first word is a plural noun; for a count of 1, the noun loses
/// its "s".
fn count_with_noun(count: u64, text: &str) -> String {
    let (first, rest) = text.split_at(text.find(' ').unwrap_or(text.len()));
    let first = if count == 1 { first.trim_end_matches('s') } else { first };
    format!("{count} {first}{rest}")
}

#[cfg(test)]
mod tests {
    use super::count_with_noun;

    #[test]
    fn counted_uses_singular_for_one() {
        assert_eq!(count_with_noun(1, "frames skipped: why"), "1 frame skipped: why");
        assert_eq!(count_with_noun(2, "frames left out: why"), "2 frames left out: why");
        assert_eq!(count_with_noun(1, "times"), "1 time");
    }
}
