//! From a stream of bytes to TCP segments.

mod buffer;
mod bytes;
mod clock;
mod interfaces;
mod pcap;
mod pcapng;
mod repetition;
mod source;
mod summary;
mod zstandard;

pub use source::Stopped;
pub use summary::{Damage, DamageKind, Skip, Skipped, Summary};

use crate::frame::{self, Link, Tunnels};
use crate::segment::{Nanos, Segment};
use buffer::Buffer;
use interfaces::Interfaces;
use pcap::Pcap;
use pcapng::Pcapng;
use repetition::{LONG_STEP, Repeats};
use source::Source;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A frame in the buffer, still to be skipped.
struct Frame {
    time: Nanos,
    link: Link,
    /// Number of its interface, if the file has several.
    interface: Option<u32>,
    /// Bytes it had on the wire, as the capture says.
    original: u32,
    /// Bytes of it that the capture has, as it says itself.
    kept: u32,
    /// Where its bytes begin and end in what is held.
    from: usize,
    to: usize,
    /// Bytes of the complete record.
    length: u64,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
    /// It is over, or what follows cannot be understood.
    Ended,
}

/// Why a stream cannot be read as a capture at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The stream cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// There is nothing.
    #[error("the file is empty")]
    Empty,
    /// It is something else.
    #[error("not a capture in pcap or pcapng format, but {0}")]
    Unrecognised(&'static str),
}

/// Reads the TCP segments of a capture, one after the other, in a fixed amount of memory.
///
/// The formats are pcap and pcapng, as they are or compressed by gzip or zstd; what a stream
/// holds is told from its first bytes. Damage ends the reading, or is noted where more can be
/// read; what came before it counts, and [`Reader::summary`] says what was wrong.
pub struct Reader<R: Read> {
    buffer: Buffer<Source<R>>,
    format: Format,
    last: Nanos,
    /// A long step back in time of which the next segment will say what it is.
    back: Option<Nanos>,
    repeats: Repeats,
    interfaces: Interfaces,
    /// The interface of the last frame, if its header or its block has it.
    interface: Option<u32>,
    segment: Segment,
    summary: Summary,
}

impl Reader<File> {
    /// Opens a file.
    ///
    /// # Errors
    /// Those of [`Reader::new`], and what opening a file returns.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::new(File::open(path)?)
    }
}

impl<R: Read> Reader<R> {
    /// Reads from any stream: a file, standard input, bytes in memory. It is read in large
    /// blocks and needs no buffer of its own.
    ///
    /// # Errors
    /// The stream cannot be read, or is no capture.
    pub fn new(stream: R) -> Result<Self, ReadError> {
        let mut buffer = Buffer::new(Source::new(stream)?);
        let complete = buffer.ensure(4);
        let Some(&magic) = buffer.view().first_chunk::<4>().filter(|_| complete) else {
            return Err(match buffer.take_error() {
                Some(error) => error.into(),
                None if buffer.view().is_empty() => ReadError::Empty,
                None => ReadError::Unrecognised("a few bytes"),
            });
        };
        let mut summary = Summary::default();
        let format = if u32::from_be_bytes(magic) == pcapng::SECTION {
            Ok(Format::Pcapng(Pcapng::new()))
        } else if let Some(kind) = Pcap::recognise(magic) {
            Pcap::open(kind, &mut buffer, &mut summary).map(Format::Pcap)
        } else {
            return Err(ReadError::Unrecognised(describe_magic(magic)));
        };
        let segment = frame::BLANK;
        let mut reader = Self {
            buffer,
            format: Format::Ended,
            last: 0,
            back: None,
            repeats: Repeats::default(),
            interfaces: Interfaces::default(),
            interface: None,
            segment,
            summary,
        };
        match format {
            Ok(format) => reader.format = format,
            Err(damage) => reader.stop(damage),
        }
        Ok(reader)
    }

    /// The next segment; `None` at the end of what can be read.
    #[inline]
    pub fn next_segment(&mut self) -> Option<&Segment> {
        while let Some(frame) = self.next_frame() {
            self.summary.frames += 1;
            self.check_time(frame.time);
            let result = self.dissect(&frame);
            if !self.buffer.skip(frame.length) {
                self.stop(DamageKind::RecordCut);
            }
            match result {
                Ok(()) if self.repeats.is_copy(&self.segment, self.back.is_some()) => {
                    self.back = None;
                    self.summary.skipped.repeated += 1;
                }
                Ok(()) if self.summary.has_interfaces && self.is_interface_copy() => {}
                Ok(()) => {
                    self.confirm_step_back();
                    self.summary.segments += 1;
                    return Some(&self.segment);
                }
                Err(reason) => self.skip(reason, frame.link),
            }
        }
        None
    }

    /// Shows every segment to `visit`, and tells what was read.
    pub fn for_each(mut self, mut visit: impl FnMut(&Segment)) -> Summary {
        while let Some(segment) = self.next_segment() {
            visit(segment);
        }
        self.summary
    }

    /// What was read so far.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    #[inline(always)]
    fn next_frame(&mut self) -> Option<Frame> {
        let next = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.buffer),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.buffer, &mut self.summary),
            Format::Ended => return None,
        };
        match next {
            Ok(Some(frame)) => Some(frame),
            Ok(None) => {
                self.finish();
                None
            }
            Err(damage) => {
                self.stop(damage);
                None
            }
        }
    }

    #[inline(always)]
    fn dissect(&mut self, frame: &Frame) -> Result<(), Skip> {
        let bytes = &self.buffer.view()[frame.from..frame.to];
        if self.summary.has_interfaces {
            self.interface = frame.link.interface(bytes).or(frame.interface);
        }
        let segment = &mut self.segment;
        let result = frame::dissect(frame.link, bytes, frame.original, segment);
        segment.frame = self.summary.frames;
        segment.time = frame.time;
        let (needed, tunnels) = *result.as_ref().unwrap_or(&(0, Tunnels::default()));
        if frame.original < frame.kept.max(needed) {
            self.summary.wrong_lengths += 1;
        }
        if result.is_ok() && !self.repeats.is_skipping() {
            self.summary.first_fragments += u64::from(segment.fragment);
            self.summary.cut_options += u64::from(segment.options.cut);
            if !tunnels.is_empty() {
                self.summary.tunnelled += 1;
                self.summary.tunnels.join(tunnels);
            }
        }
        result.map(|_| ())
    }

    /// The last segment is a copy on another interface than its direction's.
    #[cold]
    fn is_interface_copy(&mut self) -> bool {
        let Some(interface) = self.interface else { return false };
        let copy = self.interfaces.is_copy(&self.segment, interface);
        if copy {
            self.summary.skipped.other_interface += 1;
            let left_out = self.interfaces.left_out();
            if self.summary.other_interfaces.len() != left_out.len() {
                self.summary.other_interfaces = left_out.to_owned();
            }
        }
        copy
    }

    #[inline(always)]
    fn check_time(&mut self, time: Nanos) {
        if time < self.last {
            self.on_step_back(self.last - time);
        }
        self.last = time;
    }

    #[cold]
    fn on_step_back(&mut self, by: Nanos) {
        if by < LONG_STEP && !self.repeats.is_skipping() {
            self.summary.note_back(by);
        } else if !self.repeats.is_skipping() {
            self.confirm_step_back();
            self.back = Some(by);
        }
    }

    /// The last long step back led to no copy.
    #[inline(always)]
    fn confirm_step_back(&mut self) {
        if let Some(by) = self.back.take() {
            self.summary.note_back(by);
        }
    }

    #[cold]
    fn skip(&mut self, reason: Skip, link: Link) {
        self.summary.skipped.count(reason);
        if let (Link::Unknown(kind), None) = (link, self.summary.unknown_link) {
            self.summary.unknown_link = Some(kind);
        }
    }

    /// The stream is over, or its source has failed just between two records.
    #[cold]
    fn finish(&mut self) {
        self.confirm_step_back();
        self.format = Format::Ended;
        if let Some(error) = self.buffer.take_error().filter(|error| !source::is_stopped(error)) {
            self.summary.note(self.buffer.mark(), DamageKind::Source(error.to_string()));
        }
    }

    /// Nothing more can be understood. What is cut is cut by the source's failure, if it failed.
    #[cold]
    fn stop(&mut self, damage: DamageKind) {
        self.confirm_step_back();
        self.format = Format::Ended;
        let error = match damage {
            DamageKind::HeaderCut | DamageKind::RecordCut => self.buffer.take_error(),
            _ => None,
        };
        if error.as_ref().is_some_and(source::is_stopped) {
            return;
        }
        let damage = error.map_or(damage, |error| DamageKind::Source(error.to_string()));
        self.summary.note(self.buffer.mark(), damage);
    }
}

/// What a file that is no capture of ours begins like.
fn describe_magic(magic: [u8; 4]) -> &'static str {
    match &magic {
        b"snoo" => "snoop's; editcap converts it",
        b"btsn" => "a Bluetooth capture",
        [b'B', b'Z', b'h', _] => "compressed by bzip2",
        [0xfd, b'7', b'z', b'X'] => "compressed by xz",
        [0x04, 0x22, 0x4d, 0x18] => "compressed by lz4",
        [b'P', b'K', 3, 4] => "a zip archive",
        _ if magic.iter().all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) => {
            "text; tcpdump writes captures with -w"
        }
        _ => "something else",
    }
}
