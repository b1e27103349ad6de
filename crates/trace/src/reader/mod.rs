//! Reads TCP segments from a stream.

mod byte_order;
mod decompression;
mod host_names;
mod interface_copies;
mod pcap;
mod pcapng;
mod repetition;
mod stream_buffer;
mod summary;
mod timestamp_clock;
mod zstandard;

pub use decompression::StopRequested;
pub use host_names::{HostNames, ServerName};
pub use summary::{Damage, DamageKind, ReadSummary, SkippedFrames};

use crate::frame::{self, LinkType, SkipReason, TunnelKinds};
use crate::segment::{Nanos, Segment};
use decompression::DecompressedSource;
use interface_copies::InterfaceCopies;
use pcap::PcapFormat;
use pcapng::PcapngFormat;
use repetition::{MIN_STEP_BACK, RepetitionDetector};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use stream_buffer::StreamBuffer;

/// A frame in the buffer, not yet skipped.
struct BufferedFrame {
    time: Nanos,
    link: LinkType,
    /// Number of its interface, if the file has several interfaces.
    interface: Option<u32>,
    /// Recorded length on the wire, bytes.
    original: u32,
    /// Recorded length in the capture, bytes.
    kept: u32,
    /// Range of the frame in the buffer's view.
    from: usize,
    to: usize,
    /// Length of the complete record, bytes.
    length: u64,
}

#[derive(Debug)]
enum CaptureFormat {
    Pcap(PcapFormat),
    Pcapng(PcapngFormat),
    /// The stream has ended, or cannot be parsed further.
    Ended,
}

/// Reason why a stream is not readable as a capture.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The stream cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The stream is empty.
    #[error("the file is empty")]
    Empty,
    /// The stream has another format.
    #[error("not a capture in pcap or pcapng format, but {0}")]
    Unrecognised(&'static str),
}

/// Reads the TCP segments of a capture in a fixed amount of memory.
///
/// Supports pcap and pcapng, optionally compressed by gzip or zstd; the format is detected by the
/// first bytes. Damage ends the reading; if reading can continue, the damage is only recorded.
/// Segments before the damage are valid; [`CaptureReader::summary`] describes the damage.
pub struct CaptureReader<R: Read> {
    buffer: StreamBuffer<DecompressedSource<R>>,
    format: CaptureFormat,
    last: Nanos,
    /// A long backward step of time; the next segment shows whether a repetition begins.
    back: Option<Nanos>,
    repeats: RepetitionDetector,
    interfaces: InterfaceCopies,
    /// Interface of the last frame, if recorded.
    interface: Option<u32>,
    segment: Segment,
    names: HostNames,
    summary: ReadSummary,
}

impl CaptureReader<File> {
    /// Opens a file.
    ///
    /// # Errors
    /// Returns the errors of [`CaptureReader::new`] and of opening a file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::new(File::open(path)?)
    }
}

impl<R: Read> CaptureReader<R> {
    /// Reads from a stream such as a file, standard input or memory. Reads in large blocks, so the
    /// stream needs no buffer.
    ///
    /// # Errors
    /// Fails if the stream cannot be read or is not a capture.
    pub fn new(stream: R) -> Result<Self, ReadError> {
        let mut buffer = StreamBuffer::new(DecompressedSource::new(stream)?);
        let complete = buffer.ensure_bytes(4);
        let Some(&magic) = buffer.held_bytes().first_chunk::<4>().filter(|_| complete) else {
            return Err(match buffer.take_error() {
                Some(error) => error.into(),
                None if buffer.held_bytes().is_empty() => ReadError::Empty,
                None => ReadError::Unrecognised("fewer than 4 bytes"),
            });
        };
        let mut summary = ReadSummary::default();
        let format = if u32::from_be_bytes(magic) == pcapng::SECTION_BLOCK {
            Ok(CaptureFormat::Pcapng(PcapngFormat::new()))
        } else if let Some(kind) = PcapFormat::detect(magic) {
            PcapFormat::read_file_header(kind, &mut buffer, &mut summary).map(CaptureFormat::Pcap)
        } else {
            return Err(ReadError::Unrecognised(describe_magic(magic)));
        };
        let segment = frame::EMPTY_SEGMENT;
        let mut reader = Self {
            buffer,
            format: CaptureFormat::Ended,
            last: 0,
            back: None,
            repeats: RepetitionDetector::default(),
            interfaces: InterfaceCopies::default(),
            interface: None,
            segment,
            names: HostNames::default(),
            summary,
        };
        match format {
            Ok(format) => reader.format = format,
            Err(damage) => reader.stop_at_damage(damage),
        }
        Ok(reader)
    }

    /// Returns the next segment; `None` at the end of the readable part.
    #[inline]
    pub fn next_segment(&mut self) -> Option<&Segment> {
        while let Some(frame) = self.next_frame() {
            self.summary.frames += 1;
            self.count_if_step_back(frame.time);
            let result = self.dissect_buffered_frame(&frame);
            if !self.buffer.skip_bytes(frame.length) {
                self.stop_at_damage(DamageKind::RecordCut);
            }
            match result {
                Ok(())
                    if self
                        .repeats
                        .add_and_check_repetition(&self.segment, self.back.is_some()) =>
                {
                    self.back = None;
                    self.summary.skipped.repeated += 1;
                }
                Ok(()) if self.summary.has_interfaces && self.count_if_interface_copy() => {}
                Ok(()) => {
                    self.count_pending_step_back();
                    self.summary.segments += 1;
                    return Some(&self.segment);
                }
                Err(reason) => self.count_skipped(reason, frame.link),
            }
        }
        None
    }

    /// Calls `visit` for each segment and returns the summary.
    pub fn for_each(mut self, mut visit: impl FnMut(&Segment)) -> ReadSummary {
        while let Some(segment) = self.next_segment() {
            visit(segment);
        }
        self.summary
    }

    /// Summary of the frames read so far.
    #[must_use]
    pub fn summary(&self) -> &ReadSummary {
        &self.summary
    }

    /// Names of servers found so far.
    #[must_use]
    pub fn names(&self) -> &HostNames {
        &self.names
    }

    #[inline(always)]
    fn next_frame(&mut self) -> Option<BufferedFrame> {
        let next = match &mut self.format {
            CaptureFormat::Pcap(pcap) => pcap.next_frame(&mut self.buffer),
            CaptureFormat::Pcapng(pcapng) => pcapng.next_frame(&mut self.buffer, &mut self.summary),
            CaptureFormat::Ended => return None,
        };
        match next {
            Ok(Some(frame)) => Some(frame),
            Ok(None) => {
                self.finish_reading();
                None
            }
            Err(damage) => {
                self.stop_at_damage(damage);
                None
            }
        }
    }

    #[inline(always)]
    fn dissect_buffered_frame(&mut self, frame: &BufferedFrame) -> Result<(), SkipReason> {
        let bytes = &self.buffer.held_bytes()[frame.from..frame.to];
        if self.summary.has_interfaces {
            self.interface = frame.link.interface_number(bytes).or(frame.interface);
        }
        let segment = &mut self.segment;
        let result = frame::dissect_frame(frame.link, bytes, frame.original, segment);
        segment.frame = self.summary.frames;
        segment.time = frame.time;
        let (needed, tunnels) = *result.as_ref().unwrap_or(&(0, TunnelKinds::default()));
        if frame.original < frame.kept.max(needed) {
            self.summary.wrong_lengths += 1;
        }
        if segment.payload > 0 && result.is_ok() {
            let payload = bytes.get(needed.saturating_sub(segment.payload) as usize..);
            if let Some(payload) = payload.filter(|bytes| {
                bytes.first().is_some_and(|first| HostNames::may_start_name(*first))
            }) {
                self.names.observe_payload(segment, payload);
            }
        } else if result == Err(SkipReason::NotTcp) {
            if let Some(datagram) = frame::udp_datagram(frame.link, bytes, frame.original) {
                self.names.observe_datagram(datagram);
            }
        }
        if result.is_ok() && !self.repeats.is_skipping() {
            self.summary.first_fragments += u64::from(segment.fragment);
            self.summary.cut_options += u64::from(segment.options.cut);
            if !tunnels.is_empty() {
                self.summary.tunnelled += 1;
                self.summary.tunnels.add_all(tunnels);
            }
        }
        result.map(|_| ())
    }

    /// Whether the last segment is a copy on another interface than the first of its direction.
    #[cold]
    fn count_if_interface_copy(&mut self) -> bool {
        let Some(interface) = self.interface else { return false };
        let copy = self.interfaces.observe_and_check_copy(&self.segment, interface);
        if copy {
            self.summary.skipped.other_interface += 1;
            let skipped = self.interfaces.skipped_list();
            if self.summary.other_interfaces.len() != skipped.len() {
                self.summary.other_interfaces = skipped.to_owned();
            }
        }
        copy
    }

    #[inline(always)]
    fn count_if_step_back(&mut self, time: Nanos) {
        if time < self.last {
            self.on_step_back(self.last - time);
        }
        self.last = time;
    }

    #[cold]
    fn on_step_back(&mut self, by: Nanos) {
        if by < MIN_STEP_BACK && !self.repeats.is_skipping() {
            self.summary.add_step_back(by);
        } else if !self.repeats.is_skipping() {
            self.count_pending_step_back();
            self.back = Some(by);
        }
    }

    /// Counts the last long backward step, because it did not start a repetition.
    #[inline(always)]
    fn count_pending_step_back(&mut self) {
        if let Some(by) = self.back.take() {
            self.summary.add_step_back(by);
        }
    }

    #[cold]
    fn count_skipped(&mut self, reason: SkipReason, link: LinkType) {
        self.summary.skipped.count_frame(reason);
        if let (LinkType::Unknown(kind), None) = (link, self.summary.unknown_link) {
            self.summary.unknown_link = Some(kind);
        }
    }

    /// Ends the reading at the end of the stream, or at an error between two records.
    #[cold]
    fn finish_reading(&mut self) {
        self.count_pending_step_back();
        self.format = CaptureFormat::Ended;
        if let Some(error) =
            self.buffer.take_error().filter(|error| !decompression::is_stop_request(error))
        {
            self.summary
                .add_damage(self.buffer.record_start(), DamageKind::Source(error.to_string()));
        }
    }

    /// Ends the reading because of damage. If the source failed, its error is reported instead of
    /// truncation.
    #[cold]
    fn stop_at_damage(&mut self, damage: DamageKind) {
        self.count_pending_step_back();
        self.format = CaptureFormat::Ended;
        let error = match damage {
            DamageKind::HeaderCut | DamageKind::RecordCut => self.buffer.take_error(),
            _ => None,
        };
        if error.as_ref().is_some_and(decompression::is_stop_request) {
            return;
        }
        let damage = error.map_or(damage, |error| DamageKind::Source(error.to_string()));
        self.summary.add_damage(self.buffer.record_start(), damage);
    }
}

/// Describes a file of another format by its first bytes.
fn describe_magic(magic: [u8; 4]) -> &'static str {
    match &magic {
        b"snoo" => "a snoop capture; convert it with editcap",
        b"btsn" => "a Bluetooth capture",
        [b'B', b'Z', b'h', _] => "compressed by bzip2; decompress the file first",
        [0xfd, b'7', b'z', b'X'] => "compressed by xz; decompress the file first",
        [0x04, 0x22, 0x4d, 0x18] => "compressed by lz4; decompress the file first",
        [b'P', b'K', 3, 4] => "a zip archive; extract the capture first",
        _ if magic.iter().all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) => {
            "a text file; use tcpdump -w for captures, and iperf3 -J or ss -tin for logs"
        }
        _ => "an unknown format",
    }
}
