//! Captures of chosen links, as a network engineer would take them.

use crate::clock::Nanos;
use crate::packet::{Kind, Packet};
use std::collections::BinaryHeap;
use std::io::{self, Write};
use tcpcast_wire::{ACK, CaptureWriter, Segment};

/// Where a capture is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A capture under way. Packets are kept and put in the order of time when it is written.
#[derive(Clone, Debug)]
pub struct Capture {
    tap: Tap,
    most: usize,
    /// The earliest packets, the latest of them on top: some are told of later than others.
    packets: BinaryHeap<Passed>,
    told: u64,
}

/// A packet that passed; the order is that of time, then of telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Passed {
    at: Nanos,
    told: u64,
    packet: Packet,
}

/// IPv4 and TCP headers without options.
const HEADERS: u32 = 40;

impl Capture {
    /// A capture of at most `most` packets.
    #[must_use]
    pub fn new(tap: Tap, most: usize) -> Self {
        Self { tap, most, packets: BinaryHeap::new(), told: 0 }
    }

    /// A packet passes a tap at time `at`.
    pub fn pass(&mut self, tap: Tap, at: Nanos, packet: &Packet) {
        if tap != self.tap {
            return;
        }
        self.told += 1;
        self.packets.push(Passed { at, told: self.told, packet: *packet });
        if self.packets.len() > self.most {
            self.packets.pop();
        }
    }

    /// Whether there were more packets than were kept.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.told > self.most as u64
    }

    /// Writes the capture; `packet_bytes` is the length of a data packet with its headers.
    ///
    /// # Errors
    /// What the sink returns.
    pub fn write<W: Write>(&self, packet_bytes: u32, window: u32, sink: W) -> io::Result<W> {
        let packets = self.packets.clone().into_sorted_vec();
        let payload = packet_bytes - HEADERS;
        let mut writer = CaptureWriter::new(sink)?;
        for Passed { at, packet, .. } in &packets {
            let segment = segment(packet, payload, window);
            let length = HEADERS + u32::from(segment.payload);
            writer.packet(*at, length, &segment.headers())?;
        }
        Ok(writer.into_inner())
    }
}

/// Senders live in 10.0.0.0/9 and receivers in 10.128.0.0/9; each connection has its own port.
fn segment(packet: &Packet, payload: u32, window: u32) -> Segment {
    let [_, b, c, d] = (packet.source + 1).to_be_bytes();
    let (sender, receiver) = ([10, b & 0x7f, c, d], [10, b | 0x80, c, d]);
    let port = 1024 + (packet.connection % 60_000) as u16;
    let offset = (packet.number - 1).wrapping_mul(payload).wrapping_add(1);
    let common = Segment {
        identification: packet.label.serial(),
        flags: ACK,
        window: window.saturating_mul(payload).min(65_535) as u16,
        ..Segment::default()
    };
    match packet.kind() {
        // The news of a loss passes no link.
        Kind::Ack | Kind::Loss => Segment {
            source: receiver,
            destination: sender,
            source_port: 80,
            destination_port: port,
            sequence: 1,
            acknowledgement: offset,
            ..common
        },
        Kind::Data | Kind::Retransmission => Segment {
            source: sender,
            destination: receiver,
            source_port: port,
            destination_port: 80,
            sequence: offset,
            acknowledgement: 1,
            payload: payload as u16,
            ..common
        },
    }
}
