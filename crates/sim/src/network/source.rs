//! State of one source: both TCP endpoints, access links, random streams.

use super::access_links::WaitingPacketList;
use crate::clock::{NEVER, Nanos};
use crate::packet::{Packet, PacketLabel};
use crate::probe::SourceRecord;
use crate::random::{NamedStream, RandomStream, StreamPurpose};
use tcpcast_tcp::{ReceivingEnd, SendingEnd};

/// A source and its receiver.
///
/// One structure, because an event concerns the receiver, sender and links of one source. With many
/// sources each event causes cache misses. The fields that every packet uses therefore share as few
/// cache lines as possible, after the rarely used fields.
#[repr(C, align(64))]
pub(crate) struct SimulatedSource<S: SendingEnd> {
    pub off_times: RandomStream,
    pub sizes: RandomStream,
    /// Earliest scheduled check of the receiver's timer.
    pub ack_timer: Nanos,
    pub record: SourceRecord,
    /// Earliest scheduled check of the sender's timer.
    pub timer: Nanos,
    pub egress_free: Nanos,
    /// Time at which a host with processing delay processes the last packet.
    pub handled_at: Nanos,
    pub egress_waiting: WaitingPacketList,
    pub ingress_waiting: WaitingPacketList,
    pub ingress_free: Nanos,
    /// Time at which the last response of the receiver reaches the return bottleneck.
    pub return_free: Nanos,
    /// Time at which the last acknowledgement reaches the sender.
    pub ack_free: Nanos,
    /// Current connection or, in an OFF time, the next one; packets of earlier connections are
    /// ignored.
    pub connection: u32,
    /// Connection whose first packet has reached the bottleneck.
    pub seen_at_bottleneck: u32,
    /// Connection of the receiver.
    pub received: u32,
    pub size: u32,
    /// Packets sent by the sender and by the receiver, modulo 2^16.
    pub data_serial: u16,
    pub ack_serial: u16,
    pub sender: S,
    pub receiver: S::Receiver,
}

impl<S: SendingEnd> SimulatedSource<S> {
    pub(crate) fn new(record: SourceRecord, seed: u64, replication: u32, index: u32) -> Self {
        let stream = |purpose| RandomStream::for_entity(seed, replication, index, purpose);
        Self {
            record,
            connection: 1,
            seen_at_bottleneck: 0,
            received: 0,
            size: 0,
            data_serial: 0,
            ack_serial: 0,
            ingress_free: 0,
            egress_free: 0,
            handled_at: 0,
            return_free: 0,
            ack_free: 0,
            ingress_waiting: WaitingPacketList::default(),
            egress_waiting: WaitingPacketList::default(),
            sender: S::for_source(stream(StreamPurpose::Connection)),
            timer: NEVER,
            receiver: S::Receiver::default(),
            ack_timer: NEVER,
            off_times: stream(StreamPurpose::OffTime),
            sizes: stream(StreamPurpose::Size),
        }
    }
}

impl<S: SendingEnd> SimulatedSource<S> {
    /// Prefetches the cache lines that a packet uses when the link transmits or drops it. The
    /// result is a word of each line, which the caller must consume.
    #[inline(always)]
    pub(crate) fn prefetch_for_transmission_or_drop(&self) -> u64 {
        self.timer ^ self.ack_free
    }

    /// Prefetches the cache lines that a packet uses.
    #[inline(always)]
    pub(crate) fn prefetch(&self) -> u64 {
        self.prefetch_for_transmission_or_drop() ^ self.sender.prefetch() ^ self.receiver.prefetch()
    }

    /// Prefetches memory that is referenced by the lines of [`SimulatedSource::prefetch`].
    #[inline(always)]
    pub(crate) fn prefetch_second(&self) -> u64 {
        self.sender.prefetch_second() ^ self.receiver.prefetch_second()
    }

    /// Prefetches memory that is referenced by the lines of [`SimulatedSource::prefetch_second`].
    #[inline(always)]
    pub(crate) fn prefetch_third(&self) -> u64 {
        self.sender.prefetch_third() ^ self.receiver.prefetch_third()
    }

    /// A packet of the connection; `index` is the index of the source.
    #[inline(always)]
    pub(crate) fn template_packet(&self, index: u32) -> Packet {
        Packet::new(index, self.connection, 0, PacketLabel::default())
    }
}
