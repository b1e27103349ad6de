//! Counters of each link.

use tcpcast_link::Nanos;

/// The transmission of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Time at which the packet entered the queue.
    pub entered: Nanos,
    /// Queueing delay.
    pub waited: Nanos,
    /// Time at which the last bit leaves the transmitter.
    pub leaves: Nanos,
    /// Whether the queue marked the packet.
    pub marked: bool,
}

/// Reason for the loss of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// The buffer was full, or the policer had no tokens.
    Full,
    /// Dropped by the queue before it was full, to signal congestion.
    Early,
    /// Random loss.
    Random,
    /// An acknowledgement that a later one made needless.
    Superseded,
}

/// Number of packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketAndByteCount {
    /// Number of packets.
    pub packets: u64,
    /// Bytes on the link.
    pub bytes: u64,
}

impl PacketAndByteCount {
    /// Adds a packet.
    #[inline]
    pub fn count_packet(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// Counters of one class of packets on one link.
///
/// entered = left + dropped + on the link
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets that entered the link.
    pub entered: PacketAndByteCount,
    /// Packets that reached the next link of their route or, behind the last link, their host.
    pub left: PacketAndByteCount,
    /// Packets dropped because the buffer was full or the policer had no tokens.
    pub full_drops: u64,
    /// Packets dropped early by the queue.
    pub early_drops: u64,
    /// Packets lost at random.
    pub random_drops: u64,
    /// Acknowledgements dropped because a later one made them needless.
    pub superseded: u64,
    /// Packets whose transmission began, including those lost behind the transmitter.
    pub transmitted: PacketAndByteCount,
    /// Transmitted packets that the queue marked.
    pub marked: u64,
    /// Sum of the queueing delays of transmitted packets, ns.
    pub waited: Nanos,
    /// Sum of the times from arrival to departure on links without occupancy, ns: see
    /// [`Link::is_uncounted`](crate::Link::is_uncounted).
    pub held: Nanos,
}

impl LinkCounters {
    /// Counts a packet whose departure is known.
    #[inline(always)]
    pub(crate) fn count_service(&mut self, bytes: u32, service: &Service) {
        self.transmitted.count_packet(bytes);
        self.waited += service.waited;
        self.marked += u64::from(service.marked);
    }

    /// Adds a drop.
    #[inline]
    pub fn count_drop(&mut self, cause: DropCause) {
        match cause {
            DropCause::Full => self.full_drops += 1,
            DropCause::Early => self.early_drops += 1,
            DropCause::Random => self.random_drops += 1,
            DropCause::Superseded => self.superseded += 1,
        }
    }

    /// Number of dropped packets.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.full_drops + self.early_drops + self.random_drops + self.superseded
    }
}

/// Number of packets in the queue and in transmission, integrated over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueOccupancy {
    /// Integral, packets times ns, modulo 2^64. By Little's law, the sum of the times that packets
    /// have spent in the queue and in transmission.
    pub packet_nanos: u64,
    until: Nanos,
}

impl QueueOccupancy {
    /// Adds the interval from the end of the previous one to `until`, with `packets` packets.
    #[inline]
    pub(crate) fn add_interval(&mut self, packets: u64, until: Nanos) {
        let added = packets.wrapping_mul(until - self.until);
        self.packet_nanos = self.packet_nanos.wrapping_add(added);
        self.until = until;
    }

    /// End of the last interval.
    pub(crate) fn until(&self) -> Nanos {
        self.until
    }
}
