//! What was read, what was left out, and what was wrong with the file.

use crate::frame::Tunnels;
use crate::segment::Nanos;

/// Why a frame gave no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// It carries no IP.
    NotIp,
    /// It carries IP, but no TCP.
    NotTcp,
    /// It is a later fragment of a TCP packet, without TCP header.
    Fragment,
    /// The capture kept too little of it: the fixed TCP header must be there.
    Cut,
    /// Its headers contradict each other.
    Broken,
    /// The type of its link is not known.
    UnknownLink,
}

/// How many frames gave no segment, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// No IP.
    pub not_ip: u64,
    /// IP, but no TCP.
    pub not_tcp: u64,
    /// Later fragments of TCP packets.
    pub fragments: u64,
    /// Too little kept for a TCP header.
    pub cut: u64,
    /// Headers that contradict each other.
    pub broken: u64,
    /// Link types that are not known.
    pub unknown_link: u64,
    /// TCP segments that the file has twice, frame after frame: joined to itself.
    pub repeated: u64,
    /// TCP segments that another interface captured first.
    pub other_interface: u64,
}

impl Skipped {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        let damaged = self.cut + self.broken;
        let copies = self.repeated + self.other_interface;
        self.not_ip + self.not_tcp + self.fragments + damaged + self.unknown_link + copies
    }

    pub(super) fn count(&mut self, reason: Skip) {
        *match reason {
            Skip::NotIp => &mut self.not_ip,
            Skip::NotTcp => &mut self.not_tcp,
            Skip::Fragment => &mut self.fragments,
            Skip::Cut => &mut self.cut,
            Skip::Broken => &mut self.broken,
            Skip::UnknownLink => &mut self.unknown_link,
        } += 1;
    }
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DamageKind {
    /// The end came within the header of the file, of a record or of a block.
    #[error("the file ends within a header")]
    HeaderCut,
    /// The end came within a record or a block.
    #[error("the file ends within a record")]
    RecordCut,
    /// The source failed: the device, or what compressed data say.
    #[error("reading failed: {0}")]
    Source(String),
    /// A version of the format that is not known.
    #[error("version {0}.{1} of the format is not known")]
    Version(u16, u16),
    /// A record that claims more bytes than any frame has.
    #[error("a record claims {0} bytes")]
    Length(u32),
    /// The byte-order magic of a section is none.
    #[error("a section has no byte order: {0:#010x} in place of 0x1a2b3c4d")]
    ByteOrder(u32),
    /// A block whose length cannot be.
    #[error("a block claims a length of {0} bytes")]
    BlockLength(u32),
    /// A block that does not end with its length.
    #[error("a block of {0} bytes ends by saying {1}")]
    Trailer(u32, u32),
    /// A block too short for what it should hold.
    #[error("a block of type {0} is shorter than what it should hold")]
    BlockShort(u32),
    /// Options that run out of their block.
    #[error("an option runs out of its block")]
    Option,
    /// A resolution of time stamps that cannot be.
    #[error("time stamps of resolution {0:#04x} cannot be read")]
    Resolution(u8),
    /// A frame of an interface that was not described.
    #[error("a frame of interface {0}, which is not described")]
    Interface(u32),
    /// More interfaces than any capture has.
    #[error("more than {0} interfaces")]
    Interfaces(usize),
}

/// A kind, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("after frame {frame}, at byte {at}: {kind}")]
pub struct Damage {
    /// Byte at which the record with the kind begins, of the data without compression.
    pub at: u64,
    /// Frames before it.
    pub frame: u64,
    /// What is wrong.
    pub kind: DamageKind,
}

/// Faults that are kept word for word; the others are counted.
const MAX_DAMAGE: usize = 16;

/// What a reader has seen so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Frames in the capture; each is a segment or is skipped.
    pub frames: u64,
    /// TCP segments.
    pub segments: u64,
    /// Frames that gave no segment.
    pub skipped: Skipped,
    /// Headers of some frames have the number of their interface.
    pub(super) has_interfaces: bool,
    /// Numbers of the interfaces whose segments were left out as copies.
    pub other_interfaces: String,
    /// Segments that are the first fragment of a packet; the rest of their payload is not counted.
    pub first_fragments: u64,
    /// Segments whose options are cut by the capture, or malformed.
    pub cut_options: u64,
    /// Segments that were found within tunnels, and of which kinds these were.
    pub tunnelled: u64,
    /// Which kinds of tunnel.
    pub tunnels: Tunnels,
    /// The first link type met that is not known.
    pub unknown_link: Option<u32>,
    /// Frames stamped earlier than the one before.
    pub backwards: u64,
    /// The longest step back.
    pub longest_back: Nanos,
    /// Frames without time stamp (simple packet blocks); they take that of the frame before.
    pub untimed: u64,
    /// Frames stamped later than the latest time that can be held, which they take.
    pub too_late: u64,
    /// Frames whose length on the wire is given as less than what is in them.
    pub wrong_lengths: u64,
    /// Frames that the capture lost, where it says so.
    pub dropped: u64,
    /// The first faults of the file.
    pub damage: Vec<Damage>,
    /// Faults beyond those in `damage`.
    pub more_damage: u64,
}

impl Summary {
    /// Whether something is wrong with the file, so that results from it are partial.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        !self.damage.is_empty()
    }

    /// What to know before trusting results from this capture, a line each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.damage.iter().map(ToString::to_string).collect();
        let mut warn = |count: u64, what: &str| {
            if count > 0 {
                lines.push(counted(count, what));
            }
        };
        warn(self.more_damage, "further faults in the file");
        warn(self.dropped, "frames lost by the capture itself");
        warn(self.skipped.broken, "frames left out: their headers contradict each other");
        warn(self.skipped.cut, "frames left out: too little of them was kept");
        warn(self.skipped.fragments, "fragments left out: only the first has a TCP header");
        warn(
            self.skipped.repeated,
            "segments that the file has twice, one after the other as before: it was joined to a copy of \
             itself; counted once",
        );
        let interfaces = &self.other_interfaces;
        warn(
            self.skipped.other_interface,
            &format!("segments left out: forwarded to another interface ({interfaces}), read once"),
        );
        warn(
            self.tunnelled,
            &format!("segments read inside tunnels ({}): addresses are those inside", self.tunnels),
        );
        warn(
            self.cut_options,
            "segments with options cut or malformed: SACK and more may be missing; capture 128 bytes of each \
             (tcpdump -s 128)",
        );
        warn(self.wrong_lengths, "frames longer than the capture says: the IP length was taken");
        warn(
            self.too_late,
            "frames stamped after the year 2262: that year was taken; the clock or the resolution of the \
             capture's interface is wrong",
        );
        warn(self.untimed, "frames without time stamp: that of the frame before was taken");
        if self.backwards > 0 {
            let max_ms = self.longest_back as f64 / 1e6;
            let times = counted(self.backwards, "times");
            lines.push(format!("time goes back {times}, by up to {max_ms} ms"));
        }
        if let Some(kind) = self.unknown_link {
            let count = self.skipped.unknown_link;
            let frames = counted(count, "frames");
            lines.push(format!("{frames} left out: link type {kind} or other is not known"));
        }
        if self.segments == 0 {
            lines.push(format!("no TCP segment among {} frames", self.frames));
        }
        lines
    }

    /// Time has stepped back.
    pub(super) fn note_back(&mut self, by: Nanos) {
        self.backwards += 1;
        self.longest_back = self.longest_back.max(by);
    }

    pub(super) fn note(&mut self, at: u64, kind: DamageKind) {
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(Damage { at, frame: self.frames, kind });
        } else {
            self.more_damage += 1;
        }
    }
}

/// Return a count and what is counted, whose first word is in the plural: without its s for one.
fn counted(count: u64, what: &str) -> String {
    let (first, rest) = what.split_at(what.find(' ').unwrap_or(what.len()));
    let first = if count == 1 { first.trim_end_matches('s') } else { first };
    format!("{count} {first}{rest}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(counted(1, "frames left out: why"), "1 frame left out: why");
        assert_eq!(counted(2, "frames left out: why"), "2 frames left out: why");
        assert_eq!(counted(1, "times"), "1 time");
    }
}
