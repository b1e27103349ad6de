//! The link: both directions, the ports on both sides, and the packets in a slab.
//!
//! All functions take the link's time `now`, and none does I/O. The caller reads packets into the
//! slab's cells, passes them to [`EmulatedLink::enter_packet`], and delivers the packets that
//! [`EmulatedLink::take_departed_packet`] returns.

mod counters;
mod direction;
pub mod header;
mod packet_slab;

pub use counters::{DirectionCounters, DropCause, PacketAndByteCount};
pub use direction::{DirectionConfig, PacketInTransit, RandomDelay};
pub use packet_slab::{HEADROOM, MAX_BYTES, PacketSlab};
pub use tcpcast_net::TimeHistogram;

use direction::{LinkDirection, PacketInPropagation};
use header::{IpHeader, mark_congestion_experienced};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcpcast_link::time::Nanos;

/// Side of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkSide {
    /// Side of a scenario's senders.
    Near,
    /// Side of a scenario's receivers.
    Far,
}

/// A namespace attached to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPort {
    /// Side of the link.
    pub side: LinkSide,
    /// Destination address of its packets; for IPv6, [`ipv6_address_of_port`] of this address.
    pub address: Ipv4Addr,
    /// Propagation delay to the far side; 0 for a far port.
    pub forward: Nanos,
    /// Propagation delay from the far side; 0 for a far port.
    pub back: Nanos,
}

/// Returns the IPv6 address of a port: its IPv4 address after a private prefix (RFC 4193).
#[must_use]
pub fn ipv6_address_of_port(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from(0xfd00 << 112 | u128::from(u32::from(address)))
}

/// Receives notifications of packets on both sides.
///
/// Calls of `leaves` are not ordered in time if packets of both directions leave.
pub trait PacketObserver {
    /// A packet entered through a port at `now`.
    fn on_enter(&mut self, _now: Nanos, _port: u16, _packet: &[u8]) {}
    /// A packet that entered through a port was dropped.
    fn on_drop(&mut self, _now: Nanos, _port: u16, _packet: &[u8], _cause: DropCause) {}
    /// A packet that entered through a port was transmitted after queueing for `waited`.
    fn on_transmitted(&mut self, _from: u16, _packet: &[u8], _waited: Nanos, _marked: bool) {}
    /// A packet is delivered to a port at `now`; its due time was `due`.
    fn on_deliver(&mut self, _now: Nanos, _due: Nanos, _port: u16, _packet: &[u8]) {}
    /// The link's clock was paused; `paused` is the total pause.
    fn on_clock_pause(&mut self, _total_pause: Nanos) {}
}

impl PacketObserver for () {}

/// A snapshot of the counters.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// Near to far.
    pub forward: DirectionCounters,
    /// Far to near.
    pub back: DirectionCounters,
    /// Packets of each direction that are neither delivered nor dropped.
    pub in_transit: [u64; 2],
}

/// A link with its ports.
#[derive(Debug)]
pub struct EmulatedLink {
    /// Memory for packets.
    pub slab: PacketSlab,
    ports: Vec<LinkPort>,
    by_address: HashMap<IpAddr, u16>,
    /// Port for packets of the near side whose destination no port has.
    default_port: Option<u16>,
    /// Near to far, and back.
    directions: [LinkDirection; 2],
    next_direction: usize,
}

impl EmulatedLink {
    /// Creates an idle link between ports, near ports first. `max_bytes`: maximum memory for
    /// packets.
    #[must_use]
    pub fn new(
        forward: DirectionConfig,
        back: DirectionConfig,
        ports: Vec<LinkPort>,
        max_bytes: usize,
    ) -> Self {
        let near = || ports.iter().filter(|port| port.side == LinkSide::Near);
        let (forward_delays, back_delays) =
            (near().map(|port| port.forward), near().map(|port| port.back));
        let directions = [
            LinkDirection::new(forward, forward_delays.collect()),
            LinkDirection::new(back, back_delays.collect()),
        ];
        let addresses = |port: &LinkPort| {
            [IpAddr::from(port.address), ipv6_address_of_port(port.address).into()]
        };
        let named = (0..).zip(&ports).flat_map(|(index, port)| addresses(port).map(|a| (a, index)));
        let (by_address, default_port) = (named.collect(), None);
        let slab = PacketSlab::new(max_bytes);
        Self { slab, ports, by_address, default_port, directions, next_direction: 0 }
    }

    /// Sends IPv4 packets of the near side to the far port if no port has their destination.
    #[must_use]
    pub fn with_far_default_route(mut self) -> Self {
        let far = self.ports.iter().position(|port| port.side == LinkSide::Far);
        self.default_port = far.and_then(|far| u16::try_from(far).ok());
        self
    }

    /// Returns the destination port of a packet from a side; `None` if there is none.
    fn destination_port(&self, from: LinkSide, to: IpAddr) -> Option<u16> {
        let has = self.by_address.get(&to).copied();
        let out = self.default_port.filter(|_| has.is_none() && to.is_ipv4() && !to.is_multicast());
        has.or(out).filter(|port| self.ports[usize::from(*port)].side != from)
    }

    /// Ports of the link.
    #[must_use]
    pub fn ports(&self) -> &[LinkPort] {
        &self.ports
    }

    /// Processes the packet in a cell, which entered through a port at `now`. Times must not
    /// decrease.
    pub fn enter_packet(
        &mut self,
        now: Nanos,
        port: u16,
        cell: u32,
        observer: &mut impl PacketObserver,
    ) {
        let from = self.ports[usize::from(port)];
        let direction = usize::from(from.side == LinkSide::Far);
        let packet = self.slab.packet(cell);
        let bytes = packet.len() as u32;
        let header = IpHeader::parse_ip(packet);
        let to = header.and_then(|header| self.destination_port(from.side, header.destination));
        let (Some(header), Some(to)) = (header, to) else {
            // IPv6 multicast to all neighbours of an interface is not sent over a link.
            if !header.is_some_and(|header| header.destination.is_multicast()) {
                self.directions[direction].counters.count_drop(DropCause::Misaddressed);
            }
            return self.slab.return_cell(cell);
        };
        observer.on_enter(now, port, packet);
        let in_transit = PacketInTransit { cell, from: port, to };
        self.directions[direction].enter_packet(now, in_transit, (header.flow, bytes, header.ecn));
        self.process_dropped_packets(direction, now, observer);
    }

    /// Counts a packet of a port that was lost because no cell was available or large enough.
    pub fn count_packet_without_cell(&mut self, port: u16) {
        let direction = usize::from(self.ports[usize::from(port)].side == LinkSide::Far);
        self.directions[direction].counters.entered.packets += 1;
        self.directions[direction].counters.count_drop(DropCause::Host);
    }

    fn process_dropped_packets(
        &mut self,
        direction: usize,
        now: Nanos,
        observer: &mut impl PacketObserver,
    ) {
        while let Some((packet, cause)) = self.directions[direction].take_dropped_packet() {
            self.directions[direction].counters.count_drop(cause);
            observer.on_drop(now, packet.from, self.slab.packet(packet.cell), cause);
            self.slab.return_cell(packet.cell);
        }
    }

    /// Returns the next packet that left the link by `now`. The caller must deliver it and call
    /// [`EmulatedLink::count_and_release_packet`].
    pub fn take_departed_packet(
        &mut self,
        now: Nanos,
        observer: &mut impl PacketObserver,
    ) -> Option<PacketInTransit> {
        loop {
            let direction = self.next_direction;
            if let Some((due, leaving)) = self.directions[direction].take_departed_packet(now) {
                let PacketInPropagation { packet, waited, marked, lost } = leaving;
                if marked {
                    mark_congestion_experienced(self.slab.packet_mut(packet.cell));
                }
                self.directions[direction].counters.lateness.add_time(now - due);
                let bytes = self.slab.packet(packet.cell);
                observer.on_transmitted(packet.from, bytes, waited, marked);
                if lost {
                    self.directions[direction].counters.count_drop(DropCause::Random);
                    observer.on_drop(now, packet.from, bytes, DropCause::Random);
                    self.slab.return_cell(packet.cell);
                    continue;
                }
                observer.on_deliver(now, due, packet.to, bytes);
                return Some(packet);
            }
            self.next_direction = 1 - direction;
            if direction == 1 {
                return None;
            }
        }
    }

    /// Processes all events up to `now`; called before [`EmulatedLink::take_departed_packet`].
    pub fn advance_to(&mut self, now: Nanos, observer: &mut impl PacketObserver) {
        self.next_direction = 0;
        for direction in 0..2 {
            self.directions[direction].advance_to(now);
            self.process_dropped_packets(direction, now, observer);
        }
    }

    /// Called after a device has accepted (`accepted`) or rejected a packet.
    pub fn count_and_release_packet(&mut self, packet: PacketInTransit, accepted: bool) {
        let direction = usize::from(self.ports[usize::from(packet.from)].side == LinkSide::Far);
        let counters = &mut self.directions[direction].counters;
        if accepted {
            counters.delivered.count_packet(self.slab.packet(packet.cell).len() as u32);
        } else {
            counters.count_drop(DropCause::Host);
        }
        self.slab.return_cell(packet.cell);
    }

    /// Lower bound of the next departure; [`tcpcast_link::NEVER`] if there is none.
    #[must_use]
    pub fn next_departure_bound(&self) -> Nanos {
        self.directions[0].next_departure_bound().min(self.directions[1].next_departure_bound())
    }

    /// Returns the current counters.
    #[must_use]
    pub fn current_report(&self) -> LinkReport {
        let [forward, back] = &self.directions;
        LinkReport {
            forward: forward.counters.clone(),
            back: back.counters.clone(),
            in_transit: [forward.packets_in_transit(), back.packets_in_transit()],
        }
    }

    /// Bytes that the forward direction could have sent by then, if its rate varies.
    #[must_use]
    pub fn capacity_bytes_until(&self, until: Nanos) -> Option<u64> {
        self.directions[0].capacity_bytes_until(until)
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
