//! Packets in the network: segments of connections, messages and pings.
//!
//! The network carries only the index of a parcel. The code that delivers or drops a packet removes
//! its parcel.

use crate::clock::Nanos;
use crate::probe::ClassAndSizeInterval;
use tcpcast_link::Ecn;
use tcpcast_tcp::modern::Segment;
use tcpcast_tcp::quic::Datagram;

/// End of a flow: index of the server in pairs.
pub(crate) const SERVER: usize = 0;
/// Index of the client in pairs.
pub(crate) const CLIENT: usize = 1;

/// Number of received bytes for which no application waits.
pub(crate) const NOT_WANTED: u64 = u64::MAX;

/// Content of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ParcelContent {
    /// A segment of a connection.
    #[default]
    Segment,
    /// A one-way message.
    Message,
    /// An echo request, or its echo.
    Ping,
    /// Cross traffic; the flow and number are those of the stream.
    Cross,
}

/// A packet in the network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parcel {
    /// The segment; for a message or ping, only its length is set.
    pub segment: Segment,
    /// Time at which a message, a ping, or a packet with instantaneous loss feedback was sent.
    pub sent_at: Nanos,
    pub flow: u32,
    /// Connection of the flow; segments of earlier connections are ignored.
    pub connection: u32,
    /// Number of the data packet, or of the first one of a burst, from 1; 0 without data.
    pub number: u32,
    /// Packets of the burst; 1 without segmentation offload.
    pub packets: u32,
    pub of: ClassAndSizeInterval,
    pub content: ParcelContent,
    /// IP identification, if the run writes captures.
    pub serial: u16,
    /// End to which the packet is sent.
    pub to: u8,
    /// Whether a packet of the end that sends data; acknowledgements do not count.
    pub is_data: bool,
    /// Whether the packet contains data of the application.
    pub counts: bool,
    /// Whether correlated loss loses the packet on the headline link.
    pub is_lost: bool,
    /// Whether the packet repeats one that is still in flight after a timeout of a sender with
    /// instantaneous loss feedback: it uses capacity, and both ends ignore it.
    pub is_copy: bool,
    /// Whether the host of the receiver delays the packet.
    pub is_delayed: bool,
    /// Next unused slot.
    pub next_unused: u32,
}

/// All packets in the network.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parcels {
    slots: Vec<Parcel>,
    /// First unused slot; the number of slots if there is none.
    unused: u32,
    /// Number of used slots.
    used: u64,
    /// Datagrams of QUIC by the index of their parcel.
    datagrams: Vec<Datagram>,
}

impl Parcels {
    /// Returns the index of a new parcel, and the parcel to be filled in: it contains an earlier one.
    #[inline(always)]
    pub fn add(&mut self) -> (u32, &mut Parcel) {
        let index = self.unused;
        if index as usize >= self.slots.len() {
            self.slots.push(Parcel { next_unused: index + 1, ..Parcel::default() });
        }
        let parcel = &mut self.slots[index as usize];
        self.unused = parcel.next_unused;
        self.used += 1;
        (index, parcel)
    }

    /// A parcel in the network.
    #[inline(always)]
    pub fn get(&self, index: u32) -> &Parcel {
        &self.slots[index as usize]
    }

    /// A parcel in the network, to change it.
    pub fn get_mut(&mut self, index: u32) -> &mut Parcel {
        &mut self.slots[index as usize]
    }

    /// Stores the datagram of a parcel.
    pub fn set_datagram(&mut self, index: u32, datagram: &Datagram) {
        let index = index as usize;
        if self.datagrams.len() <= index {
            self.datagrams.resize_with(self.slots.len(), Datagram::default);
        }
        self.datagrams[index].copy_from(datagram);
    }

    /// Removes a parcel that is delivered or dropped. It is valid until the next one is stored. The
    /// ECN codepoint is that of the packet when it left the network. Also returns the datagrams of all
    /// parcels that were ever of QUIC, by index.
    #[inline(always)]
    pub fn remove(&mut self, index: u32, ecn: Ecn) -> (&Parcel, &[Datagram]) {
        let parcel = &mut self.slots[index as usize];
        parcel.next_unused = std::mem::replace(&mut self.unused, index);
        self.used -= 1;
        parcel.segment.ecn = ecn;
        (parcel, &self.datagrams)
    }

    /// Number of packets in the network.
    pub fn len(&self) -> u64 {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_and_marks_reach_the_segment() {
        let mut parcels = Parcels::default();
        let store = |parcels: &mut Parcels, parcel: Parcel| {
            let (index, slot) = parcels.add();
            *slot = parcel;
            index
        };
        let indices = [1, 2].map(|flow| store(&mut parcels, Parcel { flow, ..Parcel::default() }));
        assert_eq!((parcels.get(indices[1]).flow, parcels.len()), (2, 2));
        let removed = *parcels.remove(indices[0], Ecn::Ce).0;
        assert_eq!((removed.flow, removed.segment.ecn), (1, Ecn::Ce));
        let again = store(&mut parcels, Parcel::default());
        assert_eq!((again, parcels.len(), parcels.slots.len()), (indices[0], 2, 2));
        assert_eq!(parcels.get(again).segment.ecn, Ecn::NotEct);
    }
}
