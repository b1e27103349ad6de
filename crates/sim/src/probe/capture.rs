//! Packet captures at selected places of the path.

use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::packet::{HEADER_BYTES, Packet, PacketKind, TIMESTAMP_BYTES};
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;
use std::io::{self, Write};
use tcpcast_tcp::modern::{SackBlocks, Segment};
use tcpcast_wire::{
    ACK, CWR, CaptureWriter, ECE, FIN, PSH, SYN, SynOptions, TcpOptions, ZeroPayloadSegment,
};

/// Place of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TapPlace {
    /// At the senders: data when TCP sends it, acknowledgements when TCP receives them.
    Sender,
    /// Before the bottleneck's queue.
    BottleneckIn,
    /// After the bottleneck.
    BottleneckOut,
    /// At the receivers.
    Receiver,
}

/// Destination of a capture.
pub trait CaptureSink: Write + Send + Sync + Debug {}

impl<W: Write + Send + Sync + Debug> CaptureSink for W {}

/// A capture that is written during the run.
///
/// Packets are not reported in the order of their times, so packets wait until no earlier packet
/// can be reported. At most the packets of one or two round trips wait, independent of
/// the length of the capture.
#[derive(Debug)]
pub struct SimulatedCapture {
    tap: TapPlace,
    limit: u64,
    /// Packets to write, the earliest on top.
    waiting: BinaryHeap<Reverse<PacketToWrite>>,
    reported: u64,
    written: u64,
    writer: Option<SegmentWriter>,
    error: Option<io::Error>,
}

#[derive(Debug)]
struct SegmentWriter {
    file: CaptureWriter<Box<dyn CaptureSink>>,
    classes: Vec<ConnectionProperties>,
    /// Maximum time from the first packet of an added handshake to the first data packet.
    lead: Nanos,
    /// Offset that is added to all times, because times in a capture must not be negative.
    offset: Nanos,
    /// Number of the newest connection per source; 0 before the first connection.
    newest: Vec<u32>,
}

/// Properties of the connections of a class that their handshake shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionProperties {
    /// Bytes of a full data packet, headers included.
    pub packet_bytes: u32,
    /// Receiver window in packets.
    pub packets: u32,
    /// True if both ends permit SACK.
    pub sack: bool,
    /// True if the connections offer ECN, and accurate ECN.
    pub ecn: bool,
    /// See `ecn`.
    pub accurate_ecn: bool,
    /// Handshake that the capture adds to each connection; `None` if the run simulates handshakes.
    pub added: Option<UnloadedHandshakeTimes>,
}

/// Times of a handshake over the unloaded path, which ends when the sender sends its first data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnloadedHandshakeTimes {
    /// Round-trip time of the path.
    pub rtt: Nanos,
    /// Time from the sender to the tap.
    pub forward: Nanos,
    /// Time from the tap to the sender.
    pub back: Nanos,
}

/// Header fields of a packet that a capture shows in addition to its number and kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapturedHeader {
    /// TCP options.
    pub options: TcpOptions,
    /// Sequence number and bytes of data.
    pub data: Option<(u32, u32)>,
    /// Acknowledgement number.
    pub ack: Option<u32>,
    /// Receive window in bytes, if it may differ from the largest one of the connection.
    pub window: Option<u32>,
    /// Flags other than ACK.
    pub flags: u8,
    /// The flag AE of accurate ECN.
    pub ae: bool,
    /// ECN codepoint of the IP header (RFC 3168, section 5).
    pub codepoint: u8,
    /// IP identification.
    pub serial: u16,
}

impl CapturedHeader {
    /// Header of a packet that has a serial number only.
    pub(crate) fn of_serial(serial: u16) -> Self {
        Self { serial, ..Self::default() }
    }

    /// Header of a segment, with the ECN codepoint at the point of capture.
    pub(crate) fn new(segment: &Segment, codepoint: u8, serial: u16) -> Self {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let Segment { flags, options, .. } = segment;
        let mut sacks = [(0, 0); SackBlocks::MAX_BLOCKS];
        for (slot, block) in sacks.iter_mut().zip(options.sacks.as_slice()) {
            *slot = (block.start as u32, block.end as u32);
        }
        let options = TcpOptions {
            timestamps: options.timestamps.map(|stamps| (stamps.value, stamps.echo)),
            sacks,
            blocks: options.sacks.as_slice().len() as u8,
            accurate_ecn: options.accurate_ecn.map(|option| (option.fields, option.bytes)),
            ..TcpOptions::default()
        };
        Self {
            options,
            data: Some((segment.seq as u32, segment.len)),
            ack: Some(segment.ack as u32),
            window: u32::try_from(segment.window).ok(),
            flags: flag(flags.fin, FIN)
                | flag(flags.ece, ECE)
                | flag(flags.cwr, CWR)
                | flag(flags.psh, PSH),
            ae: flags.ae,
            codepoint,
            serial,
        }
    }
}

/// A packet at the tap: time, packet, header.
type PacketAtTap = (Nanos, Packet, CapturedHeader);

/// A packet to write. Packets are ordered by time, then by the order of the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PacketToWrite {
    at: Nanos,
    sequence: u64,
    class: usize,
    packet: Packet,
    shown: CapturedHeader,
}

impl SimulatedCapture {
    /// Creates a capture of the first `limit` packets; nothing is recorded before
    /// [`SimulatedCapture::start_writing_to`].
    #[must_use]
    pub fn new(tap: TapPlace, limit: u64) -> Self {
        Self {
            tap,
            limit,
            waiting: BinaryHeap::new(),
            reported: 0,
            written: 0,
            writer: None,
            error: None,
        }
    }

    /// Writes the capture to `sink` from now on; `classes` has one row per class.
    ///
    /// # Errors
    /// Errors of the sink.
    pub fn start_writing_to(
        &mut self,
        sink: Box<dyn CaptureSink>,
        classes: Vec<ConnectionProperties>,
    ) -> io::Result<()> {
        let file = CaptureWriter::new(sink)?;
        let added = || classes.iter().filter_map(|class| class.added);
        let lead = added().map(|added| added.rtt + added.back).max().unwrap_or(0);
        // Equal for all taps and a multiple of a second, for easy comparison with times of the run.
        let max = added().map(|added| 2 * added.rtt).max().unwrap_or(0);
        let offset = max.next_multiple_of(SECOND);
        self.writer = Some(SegmentWriter { file, classes, lead, offset, newest: Vec::new() });
        Ok(())
    }

    /// Tap of the capture.
    #[must_use]
    pub fn tap(&self) -> TapPlace {
        self.tap
    }

    /// Reports a packet of a class that passes a tap at time `at`. All packets that pass a tap
    /// before `reported_until` have been reported.
    pub fn report_packet(
        &mut self,
        tap: TapPlace,
        class: usize,
        at: Nanos,
        packet: &Packet,
        shown: CapturedHeader,
        reported_until: Nanos,
    ) {
        let Some(writer) = &mut self.writer else { return };
        let handshake = (tap == TapPlace::Sender)
            .then(|| writer.handshake_segments(class, at, packet, shown))
            .flatten();
        let reported_until = reported_until.saturating_add(writer.offset - writer.lead);
        let passes = (tap == self.tap).then_some((at + writer.offset, *packet, shown));
        for (at, packet, shown) in handshake.into_iter().flatten().chain(passes) {
            self.reported += 1;
            if self.written < self.limit {
                let sequence = self.reported;
                self.waiting.push(Reverse(PacketToWrite { at, sequence, class, packet, shown }));
            }
        }
        self.write_packets_before(reported_until);
    }

    fn write_packets_before(&mut self, reported_until: Nanos) {
        while self.waiting.peek().is_some_and(|Reverse(first)| first.at < reported_until) {
            let Some(Reverse(pending)) = self.waiting.pop() else { return };
            let Some(writer) = &mut self.writer else { return };
            if let Err(error) = writer.write_packet(&pending) {
                self.error = Some(error);
                self.writer = None;
                self.waiting = BinaryHeap::new();
                return;
            }
            self.written += 1;
            if self.written == self.limit {
                self.waiting = BinaryHeap::new();
            }
        }
    }

    /// Writes the waiting packets. Returns true if there were more packets than the limit.
    ///
    /// # Errors
    /// Errors of the sink, now or earlier.
    pub fn finish_writing(&mut self) -> io::Result<bool> {
        self.write_packets_before(Nanos::MAX);
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if let Some(writer) = self.writer.take() {
            writer.file.into_inner().flush()?;
        }
        Ok(self.reported > self.limit)
    }
}

impl SegmentWriter {
    /// SYN, SYN-ACK and ACK with their times at the tap, if `packet` is the first packet of a
    /// connection whose handshake is not simulated. The receiver opens the connection, as in
    /// simulated handshakes.
    fn handshake_segments(
        &mut self,
        class: usize,
        at: Nanos,
        packet: &Packet,
        shown: CapturedHeader,
    ) -> Option<[PacketAtTap; 3]> {
        let ConnectionProperties { added, ecn, accurate_ecn, .. } = self.classes[class];
        let UnloadedHandshakeTimes { rtt, forward, back } = added?;
        let source = packet.source as usize;
        if self.newest.len() <= source {
            self.newest.resize(source + 1, 0);
        }
        if self.newest[source] >= packet.connection {
            return None;
        }
        self.newest[source] = packet.connection;
        let at = at + self.offset;
        let of = |kind, number, timestamps| {
            let packet = Packet { number, kind, ..*packet };
            let options = TcpOptions { timestamps, ..TcpOptions::default() };
            // RFC 3168, section 6.1.1; RFC 9768, section 3.1.1.
            let (flags, ae) = match (kind, number) {
                _ if !ecn => (0, false),
                (PacketKind::Ack, 0) => (ECE | CWR, accurate_ecn),
                _ if accurate_ecn => (CWR, false),
                (_, 0) => (ECE, false),
                _ => (0, false),
            };
            (packet, CapturedHeader { options, flags, ae, ..CapturedHeader::default() })
        };
        // Timestamps count milliseconds.
        let before = |value: u32, time| value.wrapping_sub((time / MILLISECOND) as u32);
        let sent = shown.options.timestamps.map(|(value, _)| (before(value, rtt), value));
        let syn = of(PacketKind::Ack, 0, sent.map(|(value, _)| (value, 0)));
        let syn_ack = of(PacketKind::Data, 0, sent.map(|(value, _)| (value, value)));
        let ack = of(PacketKind::Ack, 1, sent.map(|(value, now)| (now, value)));
        let times = [at - rtt - back, at - rtt + forward, at - back];
        let all = [syn, syn_ack, ack];
        Some(std::array::from_fn(|n| (times[n], all[n].0, all[n].1)))
    }

    fn write_packet(&mut self, pending: &PacketToWrite) -> io::Result<()> {
        let PacketToWrite { at, packet, shown, .. } = pending;
        let class = self.classes[pending.class];
        let mss = class.packet_bytes - HEADER_BYTES;
        // The timestamp option reduces the payload.
        let stamped = shown.options.timestamps.is_some();
        let payload = mss - if stamped { TIMESTAMP_BYTES } else { 0 };
        let window = class.packets.saturating_mul(payload);
        let window_scale = min_window_scale(window);
        let mut segment = build_segment(packet, shown, payload);
        if packet.number == 0 && shown.flags & FIN == 0 {
            turn_into_syn(&mut segment, packet.kind);
            segment.window = window.min(65_535) as u16;
            let options = SynOptions { mss: mss as u16, window_scale, sack_permitted: class.sack };
            segment.options.syn = Some(options);
        } else {
            let window = shown.window.map_or(window, |shown| shown.min(window));
            segment.window = window.div_ceil(1 << window_scale).min(65_535) as u16;
        }
        let headers = segment.encode_headers();
        self.file.write_packet(*at, headers.len() as u32 + u32::from(segment.payload), &headers)
    }
}

/// Builds the segment of a packet. Senders have addresses in 10.0.0.0/9 and receivers in
/// 10.128.0.0/9; each connection has a separate port.
fn build_segment(packet: &Packet, shown: &CapturedHeader, payload: u32) -> ZeroPayloadSegment {
    let [_, b, c, d] = (packet.source + 1).to_be_bytes();
    let (sender, receiver) = ([10, b & 0x7f, c, d], [10, b | 0x80, c, d]);
    let port = 1024 + (packet.connection % 60_000) as u16;
    let offset = packet.number.wrapping_sub(1).wrapping_mul(payload).wrapping_add(1);
    let common = ZeroPayloadSegment {
        identification: shown.serial,
        flags: ACK | shown.flags,
        ae: shown.ae,
        codepoint: shown.codepoint,
        options: shown.options,
        ..ZeroPayloadSegment::default()
    };
    match packet.kind {
        // Loss feedback never passes a tap.
        PacketKind::Ack | PacketKind::Loss => ZeroPayloadSegment {
            source: receiver,
            destination: sender,
            source_port: 80,
            destination_port: port,
            sequence: shown.data.map_or(1, |(sequence, _)| sequence),
            acknowledgement: shown.ack.unwrap_or(offset),
            payload: shown.data.map_or(0, |(_, bytes)| bytes as u16),
            ..common
        },
        PacketKind::Data | PacketKind::Retransmission => ZeroPayloadSegment {
            source: sender,
            destination: receiver,
            source_port: port,
            destination_port: 80,
            sequence: shown.data.map_or(offset, |(sequence, _)| sequence),
            acknowledgement: shown.ack.unwrap_or(1),
            payload: shown.data.map_or(payload, |(_, bytes)| bytes) as u16,
            ..common
        },
    }
}

/// Minimum window scale with which `window` fits into its field, at most 14 (RFC 7323).
fn min_window_scale(window: u32) -> u8 {
    (0..14).find(|shift| window.div_ceil(1 << shift) <= 65_535).unwrap_or(14)
}

/// Turns the segment of packet 0 into a SYN or SYN-ACK without data.
fn turn_into_syn(segment: &mut ZeroPayloadSegment, kind: PacketKind) {
    let is_syn_ack = kind != PacketKind::Ack;
    segment.sequence = 0;
    segment.acknowledgement = u32::from(is_syn_ack);
    let kind = if is_syn_ack { SYN | ACK } else { SYN };
    segment.flags = kind | segment.flags & (ECE | CWR);
    segment.payload = 0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Debug, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A disk with space for the given number of bytes.
    #[derive(Debug)]
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A class with a window of 10 packets and one with a window of 2 shorter packets; both
    /// simulate handshakes.
    fn classes() -> Vec<ConnectionProperties> {
        let of = |packet_bytes, packets| ConnectionProperties {
            packet_bytes,
            packets,
            sack: false,
            ecn: false,
            accurate_ecn: false,
            added: None,
        };
        vec![of(1500, 10), of(540, 2)]
    }

    fn packet(number: u32) -> Packet {
        Packet { source: 0, connection: 1, number, kind: PacketKind::Data }
    }

    /// Times of the packets of a capture file; each record has 16 + 40 bytes.
    fn times(file: &Shared) -> Vec<u32> {
        let bytes = file.0.lock().unwrap();
        let time = |record: &[u8]| u32::from_le_bytes(record[4..8].try_into().unwrap());
        bytes[24..].chunks(56).map(time).collect()
    }

    #[test]
    fn settled_packets_are_written_in_order_of_time() {
        let (mut capture, file) = (SimulatedCapture::new(TapPlace::Sender, 4), Shared::default());
        capture.report_packet(TapPlace::Sender, 0, 1, &packet(1), CapturedHeader::default(), 0);
        capture.start_writing_to(Box::new(file.clone()), classes()).unwrap();
        for (at, settled) in [(20, 10), (12, 11), (15, 12), (30, 16)] {
            capture.report_packet(
                TapPlace::Sender,
                0,
                at,
                &packet(1),
                CapturedHeader::default(),
                settled,
            );
            capture.report_packet(
                TapPlace::Receiver,
                0,
                at,
                &packet(1),
                CapturedHeader::default(),
                settled,
            );
        }
        assert_eq!(times(&file), [12, 15]);
        capture.report_packet(TapPlace::Sender, 0, 25, &packet(1), CapturedHeader::default(), 17);
        assert!(capture.finish_writing().unwrap(), "five packets passed, the limit is four");
        assert_eq!(times(&file), [12, 15, 20, 25]);
    }

    #[test]
    fn windows_and_lengths_are_those_of_the_class() {
        let (mut capture, file) = (SimulatedCapture::new(TapPlace::Sender, 10), Shared::default());
        capture.start_writing_to(Box::new(file.clone()), classes()).unwrap();
        // Sources of arriving transfers are created on demand, in any order of classes.
        for (source, class) in [(0, 0), (1, 1), (2, 0)] {
            let packet = Packet { source, ..packet(1) };
            capture.report_packet(
                TapPlace::Sender,
                class,
                source.into(),
                &packet,
                CapturedHeader::default(),
                0,
            );
        }
        capture.finish_writing().unwrap();
        let bytes = file.0.lock().unwrap();
        // The window is at offset 14 of the TCP header, after 16 bytes of the record and 20 of
        // IPv4.
        let window = |record: &[u8]| u16::from_be_bytes([record[50], record[51]]);
        let windows: Vec<u16> = bytes[24..].chunks(56).map(window).collect();
        assert_eq!(windows, [14_600, 1000, 14_600]);
        let length = |record: &[u8]| u32::from_le_bytes(record[12..16].try_into().unwrap());
        let lengths: Vec<u32> = bytes[24..].chunks(56).map(length).collect();
        assert_eq!(lengths, [1500, 540, 1500]);
    }

    #[test]
    fn handshake_shows_the_window_scale() {
        let (mut capture, file) = (SimulatedCapture::new(TapPlace::Sender, 10), Shared::default());
        let class = ConnectionProperties {
            packet_bytes: 1500,
            packets: 200,
            sack: true,
            ecn: false,
            accurate_ecn: false,
            added: None,
        };
        capture.start_writing_to(Box::new(file.clone()), vec![class]).unwrap();
        for number in 0..2 {
            let at = Nanos::from(number);
            capture.report_packet(
                TapPlace::Sender,
                0,
                at,
                &packet(number),
                CapturedHeader::default(),
                0,
            );
        }
        capture.finish_writing().unwrap();
        let bytes = file.0.lock().unwrap();
        let (syn_ack, data) = bytes[24 + 16..].split_at(40 + 12);
        assert_eq!(syn_ack[34..36], [255, 255]);
        assert_eq!(syn_ack[40..], [2, 4, 5, 180, 1, 3, 3, 3, 1, 1, 4, 2]);
        let window = u16::from_be_bytes([data[16 + 34], data[16 + 35]]);
        assert_eq!(u32::from(window) << 3, 200 * 1460);
    }

    /// Tap in the middle of a path of 80 ms: 12 ms from the sender, 18 ms back to it.
    #[test]
    fn added_handshake_precedes_the_first_packet() {
        let (mut capture, file) =
            (SimulatedCapture::new(TapPlace::BottleneckIn, 10), Shared::default());
        let ms = |time: Nanos| time * MILLISECOND;
        let added = Some(UnloadedHandshakeTimes { rtt: ms(80), forward: ms(12), back: ms(18) });
        let class = ConnectionProperties {
            packet_bytes: 1500,
            packets: 100,
            sack: false,
            ecn: true,
            accurate_ecn: false,
            added,
        };
        capture.start_writing_to(Box::new(file.clone()), vec![class]).unwrap();
        for (at, number) in [(0, 1), (5, 2)] {
            let settled = at + 1;
            capture.report_packet(
                TapPlace::Sender,
                0,
                at,
                &packet(number),
                CapturedHeader::default(),
                settled,
            );
            let later = at + 13 * MILLISECOND;
            capture.report_packet(
                TapPlace::BottleneckIn,
                0,
                later,
                &packet(number),
                CapturedHeader::default(),
                settled,
            );
        }
        assert!(!capture.finish_writing().unwrap());
        let bytes = file.0.lock().unwrap();
        let mut rest = &bytes[24..];
        let mut packets = Vec::new();
        while let [a, b, c, d, e, f, g, h, kept, ..] = *rest {
            let (seconds, nanos) = (u32::from_le_bytes([a, b, c, d]), [e, f, g, h]);
            let time = Nanos::from(seconds) * SECOND + Nanos::from(u32::from_le_bytes(nanos));
            let (header, behind) = rest[16..].split_at(usize::from(kept));
            packets.push((time, header[33]));
            rest = behind;
        }
        let times: Vec<Nanos> = packets.iter().map(|packet| packet.0).collect();
        assert_eq!(times, [ms(902), ms(932), ms(982), ms(1013), ms(1013) + 5]);
        let flags: Vec<u8> = packets.iter().map(|packet| packet.1).collect();
        assert_eq!(flags, [SYN | ECE | CWR, SYN | ACK | ECE, ACK, ACK, ACK]);
    }

    #[test]
    fn written_packets_are_not_kept_in_memory() {
        let mut capture = SimulatedCapture::new(TapPlace::Sender, 10);
        capture.start_writing_to(Box::new(Shared::default()), classes()).unwrap();
        for at in 0..10_000 {
            capture.report_packet(
                TapPlace::Sender,
                0,
                at,
                &packet(1),
                CapturedHeader::default(),
                at.saturating_sub(5),
            );
            assert!(capture.waiting.len() <= 6);
        }
        assert!(capture.finish_writing().unwrap());
    }

    #[test]
    fn end_returns_the_error_of_a_full_disk() {
        let mut capture = SimulatedCapture::new(TapPlace::Sender, 100);
        capture.start_writing_to(Box::new(Full(100)), classes()).unwrap();
        (0..50).for_each(|at| {
            capture.report_packet(
                TapPlace::Sender,
                0,
                at,
                &packet(1),
                CapturedHeader::default(),
                at,
            )
        });
        assert_eq!(capture.finish_writing().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
