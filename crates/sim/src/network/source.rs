//! One source with all that is its own: both TCP endpoints, its links, its random streams.

use super::access::Line;
use crate::clock::{NEVER, Nanos};
use crate::packet::{Label, Packet};
use crate::probe::SourceRecord;
use crate::random::{Named, Purpose, Stream};
use crate::tcp::{ReceivingEnd, SendingEnd};

/// A source and its receiver.
///
/// They stand together because one event concerns one source: its receiver, its sender, its links.
/// Where sources are many each event waits for memory, so what is seldom asked for stands in front,
/// and what every packet needs together behind it, in as few cache lines as can be.
#[repr(C, align(64))]
pub(crate) struct Source<S: SendingEnd> {
    pub off_times: Stream,
    pub sizes: Stream,
    /// When the agenda looks at the receiver's timer, at the latest.
    pub ack_timer: Nanos,
    pub record: SourceRecord,
    /// When the agenda looks at the sender's timer, at the latest.
    pub timer: Nanos,
    pub egress_free: Nanos,
    /// When a host that is late handles the last packet that it got.
    pub handled_at: Nanos,
    pub egress_waiting: Line,
    pub ingress_waiting: Line,
    pub ingress_free: Nanos,
    /// When the receiver's last answer has reached the return bottleneck.
    pub return_free: Nanos,
    /// When the last acknowledgement has reached the sender.
    pub ack_free: Nanos,
    /// The current connection or, in an OFF time, the next; packets of an earlier one are ignored.
    pub connection: u32,
    /// The connection whose first packet has reached the bottleneck.
    pub announced: u32,
    /// The connection that the receiver is in.
    pub received: u32,
    pub size: u32,
    pub sender: S,
    pub receiver: S::Receiver,
}

impl<S: SendingEnd> Source<S> {
    pub(crate) fn new(record: SourceRecord, seed: u64, replication: u32, index: u32) -> Self {
        let stream = |purpose| Stream::named(seed, replication, index, purpose);
        Self {
            record,
            connection: 1,
            announced: 0,
            received: 0,
            size: 0,
            ingress_free: 0,
            egress_free: 0,
            handled_at: 0,
            return_free: 0,
            ack_free: 0,
            ingress_waiting: Line::default(),
            egress_waiting: Line::default(),
            sender: S::of_source(seed, replication, index),
            timer: NEVER,
            receiver: S::Receiver::default(),
            ack_timer: NEVER,
            off_times: stream(Purpose::OffTime),
            sizes: stream(Purpose::Size),
        }
    }
}

impl<S: SendingEnd> Source<S> {
    /// A word of each of its cache lines that a packet needs that the link takes or drops.
    #[inline(always)]
    pub(crate) fn fetch_links(&self) -> u64 {
        self.timer ^ self.ack_free
    }

    /// A word of each of its cache lines that a packet needs.
    #[inline(always)]
    pub(crate) fn fetch(&self) -> u64 {
        self.fetch_links() ^ self.sender.prefetch() ^ self.receiver.prefetch()
    }

    /// What is found by what [`Source::fetch`] has fetched.
    #[inline(always)]
    pub(crate) fn fetch_more(&self) -> u64 {
        self.sender.prefetch_second() ^ self.receiver.prefetch_second()
    }

    /// What is found by that.
    #[inline(always)]
    pub(crate) fn fetch_last(&self) -> u64 {
        self.sender.prefetch_third() ^ self.receiver.prefetch_third()
    }

    /// A packet of its connection; `index` is its own.
    #[inline(always)]
    pub(crate) fn any_packet(&self, index: u32) -> Packet {
        Packet::new(index, self.connection, 0, Label::default())
    }

    /// A data packet of it was lost; those of a connection that is over do not matter any more, nor
    /// does one without data.
    #[inline(always)]
    pub(crate) fn lose(&mut self, packet: &Packet) {
        let counts = packet.connection() == self.connection && packet.number() != 0;
        self.record.losses += u32::from(counts);
        if S::POLLS {
            self.sender.drop_header(packet.label());
        }
    }
}
