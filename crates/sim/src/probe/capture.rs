//! Captures of chosen links, as a network engineer would take them.

use crate::clock::{Nanos, SECOND};
use crate::packet::{Kind, Label, Packet};
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;
use std::io::{self, Write};
use tcpcast_wire::{ACK, CWR, CaptureWriter, ECE, FIN, Options, SYN, Segment, SynOptions};

/// Where a capture is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tap {
    /// At the senders: data as TCP hands it over, acknowledgements as it gets them.
    Sender,
    /// Before the bottleneck's queue.
    BottleneckIn,
    /// After the bottleneck.
    BottleneckOut,
    /// At the receivers.
    Receiver,
}

/// What a capture is written to.
pub trait Sink: Write + Send + Sync + Debug {}

impl<W: Write + Send + Sync + Debug> Sink for W {}

/// A capture, written as the run goes on.
///
/// Some packets are told of later than others that pass after them, so packets wait here until
/// nothing earlier can come: as many as pass in a round trip or two, however long the capture is.
#[derive(Debug)]
pub struct Capture {
    tap: Tap,
    most: u64,
    /// The earliest on top.
    waiting: BinaryHeap<Reverse<Passed>>,
    told: u64,
    written: u64,
    writing: Option<Writing>,
    fault: Option<io::Error>,
}

#[derive(Debug)]
struct Writing {
    file: CaptureWriter<Box<dyn Sink>>,
    classes: Vec<ConnectionProperties>,
    /// Longest time from the first packet of an added handshake to the first data packet.
    lead: Nanos,
    /// Added to the time of each packet, because no time of a capture is negative.
    offset: Nanos,
    /// Number of the newest connection per source, 0 before the first one.
    newest: Vec<u32>,
}

/// Properties that the connections of a class announce when they open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionProperties {
    /// Bytes of a full data packet, headers included.
    pub packet_bytes: u32,
    /// Receiver window in packets.
    pub packets: u32,
    /// True if both ends permit SACK.
    pub sack: bool,
    /// True if the connections offer ECN.
    pub ecn: bool,
    /// Handshake that the capture adds to each connection, `None` if the run simulates one.
    pub added: Option<AddedHandshake>,
}

/// Times of a handshake over the unloaded path: it ends when the sender sends its first data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedHandshake {
    /// Round-trip time of the path.
    pub rtt: Nanos,
    /// Time from the sender to the tap.
    pub forward: Nanos,
    /// Time from the tap to the sender.
    pub back: Nanos,
}

/// What a packet shows beside its number and kind, where it carries more than these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapturedHeader {
    /// Its options.
    pub options: Options,
    /// Of a data packet, its sequence number and its bytes.
    pub data: Option<(u32, u32)>,
    /// Of an acknowledgement, its number.
    pub ack: Option<u32>,
    /// Flags beside ACK.
    pub flags: u8,
    /// The codepoint of its IP header: RFC 3168, section 5.
    pub codepoint: u8,
}

/// A packet that passes the tap, before it has its place in the order.
type Passing = (Nanos, Packet, CapturedHeader);

/// A packet that passed; the order is that of time, then of telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Passed {
    at: Nanos,
    told: u64,
    class: usize,
    packet: Packet,
    shown: CapturedHeader,
}

/// IPv4 and TCP headers without options.
const HEADERS: u32 = 40;
/// Unit of the timestamp option's values.
const MILLISECOND: Nanos = 1_000_000;
/// The timestamp option, and what fills its words.
const TIMESTAMP_BYTES: u32 = 12;

impl Capture {
    /// A capture of at most `most` packets, the first; nothing is kept before it is written to
    /// something.
    #[must_use]
    pub fn new(tap: Tap, most: u64) -> Self {
        Self {
            tap,
            most,
            waiting: BinaryHeap::new(),
            told: 0,
            written: 0,
            writing: None,
            fault: None,
        }
    }

    /// Writes the capture to `sink` from now on; `classes` has one row per class.
    ///
    /// # Errors
    /// What the sink returns.
    pub fn write_to(
        &mut self,
        sink: Box<dyn Sink>,
        classes: Vec<ConnectionProperties>,
    ) -> io::Result<()> {
        let file = CaptureWriter::new(sink)?;
        let added = || classes.iter().filter_map(|class| class.added);
        let lead = added().map(|added| added.rtt + added.back).max().unwrap_or(0);
        // Equal at each tap, and whole seconds, so that times remain easy to compare with the run's.
        let longest = added().map(|added| 2 * added.rtt).max().unwrap_or(0);
        let offset = longest.next_multiple_of(SECOND);
        self.writing = Some(Writing { file, classes, lead, offset, newest: Vec::new() });
        Ok(())
    }

    /// The tap of the capture.
    #[must_use]
    pub fn tap(&self) -> Tap {
        self.tap
    }

    /// A packet of a class passes a tap at time `at`; none that passes before `settled` is still to
    /// come.
    pub fn pass(
        &mut self,
        tap: Tap,
        class: usize,
        at: Nanos,
        packet: &Packet,
        shown: CapturedHeader,
        settled: Nanos,
    ) {
        let Some(writing) = &mut self.writing else { return };
        let handshake =
            (tap == Tap::Sender).then(|| writing.opening(class, at, packet, shown)).flatten();
        let settled = settled.saturating_add(writing.offset - writing.lead);
        let passes = (tap == self.tap).then_some((at + writing.offset, *packet, shown));
        for (at, packet, shown) in handshake.into_iter().flatten().chain(passes) {
            self.told += 1;
            if self.written < self.most {
                self.waiting.push(Reverse(Passed { at, told: self.told, class, packet, shown }));
            }
        }
        self.write_before(settled);
    }

    fn write_before(&mut self, settled: Nanos) {
        while self.waiting.peek().is_some_and(|Reverse(first)| first.at < settled) {
            let Some(Reverse(passed)) = self.waiting.pop() else { return };
            let Some(writing) = &mut self.writing else { return };
            if let Err(error) = writing.packet(&passed) {
                self.fault = Some(error);
                self.writing = None;
                self.waiting = BinaryHeap::new();
                return;
            }
            self.written += 1;
            if self.written == self.most {
                self.waiting = BinaryHeap::new();
            }
        }
    }

    /// Writes what is left, and says whether there were more packets than were to be kept.
    ///
    /// # Errors
    /// What the sink returned, now or before.
    pub fn end(&mut self) -> io::Result<bool> {
        self.write_before(Nanos::MAX);
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        if let Some(writing) = self.writing.take() {
            writing.file.into_inner().flush()?;
        }
        Ok(self.told > self.most)
    }
}

impl Writing {
    /// SYN, SYN-ACK and ACK, with their times at the tap, if the sender sends `packet` as the first
    /// of a connection whose handshake is not simulated. The receiver opens the connection, as in
    /// simulated handshakes.
    fn opening(
        &mut self,
        class: usize,
        at: Nanos,
        packet: &Packet,
        shown: CapturedHeader,
    ) -> Option<[Passing; 3]> {
        let AddedHandshake { rtt, forward, back } = self.classes[class].added?;
        let source = packet.source() as usize;
        if self.newest.len() <= source {
            self.newest.resize(source + 1, 0);
        }
        if self.newest[source] >= packet.connection() {
            return None;
        }
        self.newest[source] = packet.connection();
        let at = at + self.offset;
        let of = |kind, number, timestamps| {
            let label = Label::new(kind, 0);
            let packet = Packet::new(packet.source(), packet.connection(), number, label);
            let options = Options { timestamps, ..Options::default() };
            (packet, CapturedHeader { options, ..CapturedHeader::default() })
        };
        // Timestamps count milliseconds.
        let before = |value: u32, time| value.wrapping_sub((time / MILLISECOND) as u32);
        let sent = shown.options.timestamps.map(|(value, _)| (before(value, rtt), value));
        let syn = of(Kind::Ack, 0, sent.map(|(value, _)| (value, 0)));
        let syn_ack = of(Kind::Data, 0, sent.map(|(value, _)| (value, value)));
        let ack = of(Kind::Ack, 1, sent.map(|(value, now)| (now, value)));
        let times = [at - rtt - back, at - rtt + forward, at - back];
        let all = [syn, syn_ack, ack];
        Some(std::array::from_fn(|n| (times[n], all[n].0, all[n].1)))
    }

    fn packet(&mut self, passed: &Passed) -> io::Result<()> {
        let Passed { at, packet, shown, .. } = passed;
        let class = self.classes[passed.class];
        let mss = class.packet_bytes - HEADERS;
        // Timestamps take their bytes of each packet's payload.
        let stamped = shown.options.timestamps.is_some();
        let payload = mss - if stamped { TIMESTAMP_BYTES } else { 0 };
        let window = class.packets.saturating_mul(payload);
        let window_scale = scale(window);
        let mut segment = segment(packet, shown, payload);
        if packet.number() == 0 && shown.flags & FIN == 0 {
            open(&mut segment, packet.kind(), class.ecn);
            segment.window = window.min(65_535) as u16;
            let options = SynOptions { mss: mss as u16, window_scale, sack_permitted: class.sack };
            segment.options.syn = Some(options);
        } else {
            segment.window = window.div_ceil(1 << window_scale).min(65_535) as u16;
        }
        let headers = segment.headers();
        self.file.packet(*at, headers.len() as u32 + u32::from(segment.payload), &headers)
    }
}

/// Senders live in 10.0.0.0/9 and receivers in 10.128.0.0/9; each connection has its own port.
fn segment(packet: &Packet, shown: &CapturedHeader, payload: u32) -> Segment {
    let [_, b, c, d] = (packet.source() + 1).to_be_bytes();
    let (sender, receiver) = ([10, b & 0x7f, c, d], [10, b | 0x80, c, d]);
    let port = 1024 + (packet.connection() % 60_000) as u16;
    let offset = packet.number().wrapping_sub(1).wrapping_mul(payload).wrapping_add(1);
    let (sequence, payload) = shown.data.unwrap_or((offset, payload));
    let common = Segment {
        identification: packet.label().serial(),
        flags: ACK | shown.flags,
        codepoint: shown.codepoint,
        options: shown.options,
        ..Segment::default()
    };
    match packet.kind() {
        // Loss feedback passes no link.
        Kind::Ack | Kind::Loss => Segment {
            source: receiver,
            destination: sender,
            source_port: 80,
            destination_port: port,
            sequence: 1,
            acknowledgement: shown.ack.unwrap_or(offset),
            ..common
        },
        Kind::Data | Kind::Retransmission => Segment {
            source: sender,
            destination: receiver,
            source_port: port,
            destination_port: 80,
            sequence,
            acknowledgement: 1,
            payload: payload as u16,
            ..common
        },
    }
}

/// The least shift with which a window of so many bytes has room in its field, at most that of RFC
/// 7323.
fn scale(window: u32) -> u8 {
    (0..14).find(|shift| window.div_ceil(1 << shift) <= 65_535).unwrap_or(14)
}

/// Makes SYN or SYN-ACK of the segment of packet 0: neither has data. They offer ECN as RFC 3168,
/// section 6.1.1, has it; a SYN that is retransmitted offers it no more.
fn open(segment: &mut Segment, kind: Kind, ecn: bool) {
    let answers = kind != Kind::Ack;
    segment.sequence = 0;
    segment.acknowledgement = u32::from(answers);
    let offer = match (ecn, answers) {
        (false, _) => 0,
        (true, true) => ECE,
        (true, false) if segment.flags & ECE != 0 => ECE | CWR,
        (true, false) => 0,
    };
    segment.flags = SYN | if answers { ACK } else { 0 } | offer;
    segment.payload = 0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Label;
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

    /// A disk with room for so many bytes.
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

    /// A class with windows of 10 packets, and one with 2 shorter ones; their handshakes are simulated.
    fn classes() -> Vec<ConnectionProperties> {
        let of = |packet_bytes, packets| ConnectionProperties {
            packet_bytes,
            packets,
            sack: false,
            ecn: false,
            added: None,
        };
        vec![of(1500, 10), of(540, 2)]
    }

    fn packet(number: u32) -> Packet {
        Packet::new(0, 1, number, Label::new(Kind::Data, 0))
    }

    /// The times of a file's packets; each has 16 and 40 bytes.
    fn times(file: &Shared) -> Vec<u32> {
        let bytes = file.0.lock().unwrap();
        let time = |record: &[u8]| u32::from_le_bytes(record[4..8].try_into().unwrap());
        bytes[24..].chunks(56).map(time).collect()
    }

    #[test]
    fn packets_are_written_in_order_as_they_are_settled() {
        let (mut capture, file) = (Capture::new(Tap::Sender, 4), Shared::default());
        capture.pass(Tap::Sender, 0, 1, &packet(1), CapturedHeader::default(), 0);
        capture.write_to(Box::new(file.clone()), classes()).unwrap();
        for (at, settled) in [(20, 10), (12, 11), (15, 12), (30, 16)] {
            capture.pass(Tap::Sender, 0, at, &packet(1), CapturedHeader::default(), settled);
            capture.pass(Tap::Receiver, 0, at, &packet(1), CapturedHeader::default(), settled);
        }
        assert_eq!(times(&file), [12, 15]);
        capture.pass(Tap::Sender, 0, 25, &packet(1), CapturedHeader::default(), 17);
        assert!(capture.end().unwrap(), "five passed, four are wanted");
        assert_eq!(times(&file), [12, 15, 20, 25]);
    }

    #[test]
    fn each_class_has_its_own_receiver_window_and_length() {
        let (mut capture, file) = (Capture::new(Tap::Sender, 10), Shared::default());
        capture.write_to(Box::new(file.clone()), classes()).unwrap();
        // Sources of arriving transfers are made as they are needed, in any order of classes.
        for (source, class) in [(0, 0), (1, 1), (2, 0)] {
            let packet = packet(1).of_source(source);
            capture.pass(Tap::Sender, class, source.into(), &packet, CapturedHeader::default(), 0);
        }
        capture.end().unwrap();
        let bytes = file.0.lock().unwrap();
        // 16 bytes of the record and 20 of IPv4 before TCP, whose window is at 14.
        let window = |record: &[u8]| u16::from_be_bytes([record[50], record[51]]);
        let windows: Vec<u16> = bytes[24..].chunks(56).map(window).collect();
        assert_eq!(windows, [14_600, 1000, 14_600]);
        let length = |record: &[u8]| u32::from_le_bytes(record[12..16].try_into().unwrap());
        let lengths: Vec<u32> = bytes[24..].chunks(56).map(length).collect();
        assert_eq!(lengths, [1500, 540, 1500]);
    }

    #[test]
    fn a_handshake_says_how_windows_are_scaled() {
        let (mut capture, file) = (Capture::new(Tap::Sender, 10), Shared::default());
        let class = ConnectionProperties {
            packet_bytes: 1500,
            packets: 200,
            sack: true,
            ecn: false,
            added: None,
        };
        capture.write_to(Box::new(file.clone()), vec![class]).unwrap();
        for number in 0..2 {
            let at = Nanos::from(number);
            capture.pass(Tap::Sender, 0, at, &packet(number), CapturedHeader::default(), 0);
        }
        capture.end().unwrap();
        let bytes = file.0.lock().unwrap();
        let (syn_ack, data) = bytes[24 + 16..].split_at(40 + 12);
        assert_eq!(syn_ack[34..36], [255, 255]);
        assert_eq!(syn_ack[40..], [2, 4, 5, 180, 1, 3, 3, 3, 1, 1, 4, 2]);
        let window = u16::from_be_bytes([data[16 + 34], data[16 + 35]]);
        assert_eq!(u32::from(window) << 3, 200 * 1460);
    }

    /// In the middle of a path of 80 ms: 12 ms from the sender, 18 ms back.
    #[test]
    fn a_handshake_that_is_not_simulated_comes_before_the_first_packet() {
        let (mut capture, file) = (Capture::new(Tap::BottleneckIn, 10), Shared::default());
        let ms = |time: Nanos| time * MILLISECOND;
        let added = Some(AddedHandshake { rtt: ms(80), forward: ms(12), back: ms(18) });
        let class = ConnectionProperties {
            packet_bytes: 1500,
            packets: 100,
            sack: false,
            ecn: false,
            added,
        };
        capture.write_to(Box::new(file.clone()), vec![class]).unwrap();
        for (at, number) in [(0, 1), (5, 2)] {
            let settled = at + 1;
            capture.pass(Tap::Sender, 0, at, &packet(number), CapturedHeader::default(), settled);
            let later = at + 13 * MILLISECOND;
            capture.pass(
                Tap::BottleneckIn,
                0,
                later,
                &packet(number),
                CapturedHeader::default(),
                settled,
            );
        }
        assert!(!capture.end().unwrap());
        let bytes = file.0.lock().unwrap();
        let mut rest = &bytes[24..];
        let mut found = Vec::new();
        while let [a, b, c, d, e, f, g, h, kept, ..] = *rest {
            let (seconds, nanos) = (u32::from_le_bytes([a, b, c, d]), [e, f, g, h]);
            let time = Nanos::from(seconds) * SECOND + Nanos::from(u32::from_le_bytes(nanos));
            let (header, behind) = rest[16..].split_at(usize::from(kept));
            found.push((time, header[33]));
            rest = behind;
        }
        let times: Vec<Nanos> = found.iter().map(|each| each.0).collect();
        assert_eq!(times, [ms(902), ms(932), ms(982), ms(1013), ms(1013) + 5]);
        let flags: Vec<u8> = found.iter().map(|each| each.1).collect();
        assert_eq!(flags, [SYN, SYN | ACK, ACK, ACK, ACK]);
    }

    #[test]
    fn nothing_is_kept_beyond_what_is_written() {
        let mut capture = Capture::new(Tap::Sender, 10);
        capture.write_to(Box::new(Shared::default()), classes()).unwrap();
        for at in 0..10_000 {
            capture.pass(
                Tap::Sender,
                0,
                at,
                &packet(1),
                CapturedHeader::default(),
                at.saturating_sub(5),
            );
            assert!(capture.waiting.len() <= 6);
        }
        assert!(capture.end().unwrap());
    }

    #[test]
    fn a_full_disk_is_told_at_the_end() {
        let mut capture = Capture::new(Tap::Sender, 100);
        capture.write_to(Box::new(Full(100)), classes()).unwrap();
        (0..50).for_each(|at| {
            capture.pass(Tap::Sender, 0, at, &packet(1), CapturedHeader::default(), at)
        });
        assert_eq!(capture.end().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
