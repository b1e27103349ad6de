//! Captures of chosen links, as a network engineer would take them.

use crate::clock::Nanos;
use crate::packet::{Kind, Packet};
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
    payload: u32,
    windows: Vec<ClassWindow>,
}

/// The window that the receivers of a class's sources advertise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassWindow {
    /// The source after the last one of the class.
    pub end: u32,
    /// The receiver window in packets.
    pub packets: u32,
    /// Its connections open with a handshake.
    pub handshake: bool,
    /// And use SACK.
    pub sack: bool,
    /// And offer ECN.
    pub ecn: bool,
}

/// What a packet shows beside its number and kind, where it carries more than these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shown {
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

/// A packet that passed; the order is that of time, then of telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Passed {
    at: Nanos,
    told: u64,
    packet: Packet,
    shown: Shown,
}

/// IPv4 and TCP headers without options.
const HEADERS: u32 = 40;
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

    /// Writes the capture to `sink` from now on; `packet_bytes` is the length of a data packet with
    /// its headers, `windows` the receivers', a row a class in the order of the sources.
    ///
    /// # Errors
    /// What the sink returns.
    pub fn write_to(
        &mut self,
        sink: Box<dyn Sink>,
        packet_bytes: u32,
        windows: Vec<ClassWindow>,
    ) -> io::Result<()> {
        let file = CaptureWriter::new(sink)?;
        self.writing = Some(Writing { file, payload: packet_bytes - HEADERS, windows });
        Ok(())
    }

    /// A packet passes a tap at time `at`; none will be told of that passes before `settled`.
    pub fn pass(&mut self, tap: Tap, at: Nanos, packet: &Packet, shown: Shown, settled: Nanos) {
        if tap != self.tap || self.writing.is_none() {
            return;
        }
        self.told += 1;
        if self.written < self.most {
            let passed = Passed { at, told: self.told, packet: *packet, shown };
            self.waiting.push(Reverse(passed));
            self.write_before(settled);
        }
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
    fn packet(&mut self, passed: &Passed) -> io::Result<()> {
        let Passed { at, packet, shown, .. } = passed;
        let class = self.windows.partition_point(|class| class.end <= packet.source());
        // Timestamps take their bytes of each packet's payload.
        let stamped = shown.options.timestamps.is_some();
        let payload = self.payload - if stamped { TIMESTAMP_BYTES } else { 0 };
        // Sources of transfers are made as they are needed, behind all others.
        let class = self.windows.get(class).or(self.windows.last());
        let window = class.map_or(u32::MAX, |class| class.packets).saturating_mul(payload);
        let opening = class.filter(|class| class.handshake);
        let window_scale = opening.map_or(0, |_| scale(window));
        let mut segment = segment(packet, shown, payload);
        if packet.number() == 0 && shown.flags & FIN == 0 {
            let ecn = class.is_some_and(|class| class.ecn);
            open(&mut segment, packet.kind(), ecn);
            segment.window = window.min(65_535) as u16;
            segment.options.syn = opening.map(|class| SynOptions {
                mss: self.payload as u16,
                window_scale,
                sack_permitted: class.sack,
            });
        } else {
            segment.window = window.div_ceil(1 << window_scale).min(65_535) as u16;
        }
        let headers = segment.headers();
        self.file.packet(*at, headers.len() as u32 + u32::from(segment.payload), &headers)
    }
}

/// Senders live in 10.0.0.0/9 and receivers in 10.128.0.0/9; each connection has its own port.
fn segment(packet: &Packet, shown: &Shown, payload: u32) -> Segment {
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

    /// Two sources of a class with 10 packets, and one of a class with 2.
    fn windows() -> Vec<ClassWindow> {
        let of =
            |end, packets| ClassWindow { end, packets, handshake: false, sack: false, ecn: false };
        vec![of(2, 10), of(3, 2)]
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
        capture.pass(Tap::Sender, 1, &packet(1), Shown::default(), 0);
        capture.write_to(Box::new(file.clone()), 1500, windows()).unwrap();
        for (at, settled) in [(20, 10), (12, 11), (15, 12), (30, 16)] {
            capture.pass(Tap::Sender, at, &packet(1), Shown::default(), settled);
            capture.pass(Tap::Receiver, at, &packet(1), Shown::default(), settled);
        }
        assert_eq!(times(&file), [12, 15]);
        capture.pass(Tap::Sender, 25, &packet(1), Shown::default(), 17);
        assert!(capture.end().unwrap(), "five passed, four are wanted");
        assert_eq!(times(&file), [12, 15, 20, 25]);
    }

    #[test]
    fn each_class_has_its_own_receiver_window() {
        let (mut capture, file) = (Capture::new(Tap::Sender, 10), Shared::default());
        capture.write_to(Box::new(file.clone()), 1500, windows()).unwrap();
        for source in 0..3 {
            let at = Nanos::from(source);
            let packet = packet(1).of_source(source);
            capture.pass(Tap::Sender, at, &packet, Shown::default(), 0);
        }
        capture.end().unwrap();
        let bytes = file.0.lock().unwrap();
        // 16 bytes of the record and 20 of IPv4 before TCP, whose window is at 14.
        let window = |record: &[u8]| u16::from_be_bytes([record[50], record[51]]);
        let windows: Vec<u16> = bytes[24..].chunks(56).map(window).collect();
        assert_eq!(windows, [14_600, 14_600, 2_920]);
    }

    #[test]
    fn a_handshake_says_how_windows_are_scaled() {
        let (mut capture, file) = (Capture::new(Tap::Sender, 10), Shared::default());
        let class = ClassWindow { end: 1, packets: 200, handshake: true, sack: true, ecn: false };
        capture.write_to(Box::new(file.clone()), 1500, vec![class]).unwrap();
        for number in 0..2 {
            let at = Nanos::from(number);
            capture.pass(Tap::Sender, at, &packet(number), Shown::default(), 0);
        }
        capture.end().unwrap();
        let bytes = file.0.lock().unwrap();
        let (syn_ack, data) = bytes[24 + 16..].split_at(40 + 12);
        assert_eq!(syn_ack[34..36], [255, 255]);
        assert_eq!(syn_ack[40..], [2, 4, 5, 180, 1, 3, 3, 3, 1, 1, 4, 2]);
        let window = u16::from_be_bytes([data[16 + 34], data[16 + 35]]);
        assert_eq!(u32::from(window) << 3, 200 * 1460);
    }

    #[test]
    fn nothing_is_kept_beyond_what_is_written() {
        let mut capture = Capture::new(Tap::Sender, 10);
        capture.write_to(Box::new(Shared::default()), 1500, windows()).unwrap();
        for at in 0..10_000 {
            capture.pass(Tap::Sender, at, &packet(1), Shown::default(), at.saturating_sub(5));
            assert!(capture.waiting.len() <= 6);
        }
        assert!(capture.end().unwrap());
    }

    #[test]
    fn a_full_disk_is_told_at_the_end() {
        let mut capture = Capture::new(Tap::Sender, 100);
        capture.write_to(Box::new(Full(100)), 1500, windows()).unwrap();
        (0..50).for_each(|at| capture.pass(Tap::Sender, at, &packet(1), Shown::default(), at));
        assert_eq!(capture.end().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
