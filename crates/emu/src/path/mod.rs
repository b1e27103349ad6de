//! The link: both directions as a network of two links, the ports on both sides, and the packets in
//! a slab.
//!
//! All functions take the link's time `now`, and none does I/O. The caller reads packets into the
//! slab's cells, passes them to [`EmulatedLink::enter_packet`], and delivers the packets that
//! [`EmulatedLink::take_departed_packet`] returns. All events have exact link times, independent of
//! when the caller runs: overdue events are processed in order before new events.

pub mod header;
mod packet_slab;

pub use packet_slab::{HEADROOM, MAX_BYTES, PacketSlab};

use header::{IpHeader, mark_congestion_experienced};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcpcast_link::time::Nanos;
use tcpcast_link::{Ecn, Packet};
use tcpcast_net::{
    DropCause, LinkConfig, LinkCounters, LinkId, Network, NetworkObserver, PacketAndByteCount,
    RouteId, Service, TimeHistogram,
};

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

/// Counters of one direction.
///
/// entered = delivered + dropped + lost by the emulator + in transit
#[derive(Clone, Debug, Default)]
pub struct DirectionCounters {
    /// Counters of the link.
    pub link: LinkCounters,
    /// Queueing delay of transmitted packets.
    pub waits: TimeHistogram,
    /// Packets delivered to the other end.
    pub delivered: PacketAndByteCount,
    /// Packets lost by the emulator, for lack of memory or rejected by a device. They make the run
    /// invalid.
    pub host_drops: u64,
    /// Packets that are not IP or without a destination port, which did not enter.
    pub misaddressed: u64,
    /// Lateness of deliveries.
    pub lateness: TimeHistogram,
    /// Packets that are neither delivered nor dropped.
    pub in_transit: u64,
}

/// A snapshot of the counters.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// Near to far.
    pub forward: DirectionCounters,
    /// Far to near.
    pub back: DirectionCounters,
}

/// A packet on the link: its cell and its ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketInTransit {
    /// Cell of the packet.
    pub cell: u32,
    /// Port through which the packet entered.
    pub from: u16,
    /// Destination port.
    pub to: u16,
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
    network: Network<PacketInTransit>,
    /// Near to far, and back.
    links: [LinkId; 2],
    /// Routes of each near port in both directions.
    routes: Vec<[RouteId; 2]>,
    /// Counters of the emulator, in addition to those of the network.
    counters: [DirectionCounters; 2],
    /// Packets that have left the network, with their due time.
    delivered: VecDeque<(Nanos, PacketInTransit, Ecn)>,
}

/// Receives the packets that leave the network, and notifies an observer of dropped packets.
struct NetworkEnd<'a, O> {
    slab: &'a mut PacketSlab,
    delivered: &'a mut VecDeque<(Nanos, PacketInTransit, Ecn)>,
    /// Links and their counters.
    links: &'a [LinkId; 2],
    counters: &'a mut [DirectionCounters; 2],
    observer: &'a mut O,
}

impl<O: PacketObserver> NetworkObserver<PacketInTransit> for NetworkEnd<'_, O> {
    fn on_delivered(&mut self, now: Nanos, packet: PacketInTransit, ecn: Ecn) {
        self.delivered.push_back((now, packet, ecn));
    }

    fn on_dropped(&mut self, now: Nanos, _: LinkId, packet: PacketInTransit, cause: DropCause) {
        // A packet that was lost behind the transmitter has a service.
        report_transmission(self.slab, packet, self.observer);
        self.observer.on_drop(now, packet.from, self.slab.packet(packet.cell), cause);
        self.slab.return_cell(packet.cell);
    }

    fn hosts_of(&self, packet: &PacketInTransit) -> [u32; 2] {
        IpHeader::parse_ip(self.slab.packet(packet.cell)).map_or([0, 0], |header| header.hosts)
    }

    fn dscp_of(&self, packet: &PacketInTransit) -> u8 {
        IpHeader::parse_ip(self.slab.packet(packet.cell)).map_or(0, |header| header.dscp)
    }

    fn on_served(&mut self, link: LinkId, packet: &PacketInTransit, service: &Service) {
        self.counters[usize::from(link == self.links[1])].waits.add_time(service.waited);
        self.slab.set_service(packet.cell, *service);
    }
}

/// Notifies an observer of a packet that was transmitted.
fn report_transmission(
    slab: &mut PacketSlab,
    packet: PacketInTransit,
    observer: &mut impl PacketObserver,
) {
    if let Some(Service { waited, marked, .. }) = slab.take_service(packet.cell) {
        observer.on_transmitted(packet.from, slab.packet(packet.cell), waited, marked);
    }
}

impl EmulatedLink {
    /// Creates an idle link between ports, near ports first. `max_bytes`: maximum memory for
    /// packets.
    #[must_use]
    pub fn new(
        forward: LinkConfig,
        back: LinkConfig,
        ports: Vec<LinkPort>,
        max_bytes: usize,
    ) -> Self {
        let mut network = Network::default();
        let links = [forward, back].map(|link| network.add_link(link));
        let near = ports.iter().filter(|port| port.side == LinkSide::Near);
        let mut route = |link, delay| network.add_route(&[link], delay, 0, u32::MAX);
        let routes =
            near.map(|port| [route(links[0], port.forward), route(links[1], port.back)]).collect();
        let addresses = |port: &LinkPort| {
            [IpAddr::from(port.address), ipv6_address_of_port(port.address).into()]
        };
        let named = (0..).zip(&ports).flat_map(|(index, port)| addresses(port).map(|a| (a, index)));
        Self {
            slab: PacketSlab::new(max_bytes),
            by_address: named.collect(),
            ports,
            default_port: None,
            network,
            links,
            routes,
            counters: Default::default(),
            delivered: VecDeque::new(),
        }
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

    /// Direction of the packets from a port: 0 is forward.
    fn direction_from(&self, port: u16) -> usize {
        usize::from(self.ports[usize::from(port)].side == LinkSide::Far)
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
        let direction = self.direction_from(port);
        let packet = self.slab.packet(cell);
        let bytes = packet.len() as u32;
        let header = IpHeader::parse_ip(packet);
        let from = self.ports[usize::from(port)].side;
        let to = header.and_then(|header| self.destination_port(from, header.destination));
        let (Some(header), Some(to)) = (header, to) else {
            // IPv6 multicast to all neighbours of an interface is not sent over a link.
            if !header.is_some_and(|header| header.destination.is_multicast()) {
                self.counters[direction].misaddressed += 1;
            }
            return self.slab.return_cell(cell);
        };
        observer.on_enter(now, port, packet);
        self.advance_to(now, observer);
        let token = PacketInTransit { cell, from: port, to };
        let packet = Packet::new(token, header.flow, bytes).with_ecn(header.ecn);
        let route = self.routes[usize::from(port.min(to))][direction];
        let Self { network, slab, delivered, links, counters, .. } = self;
        let end = &mut NetworkEnd { slab, delivered, links, counters, observer };
        network.send(now, route, packet, end);
    }

    /// Counts a packet of a port that was lost because no cell was available or large enough.
    pub fn count_packet_without_cell(&mut self, port: u16) {
        let direction = self.direction_from(port);
        self.counters[direction].link.entered.packets += 1;
        self.counters[direction].host_drops += 1;
    }

    /// Returns the next packet that left the link. The caller must deliver it at `now` and call
    /// [`EmulatedLink::count_and_release_packet`].
    pub fn take_departed_packet(
        &mut self,
        now: Nanos,
        observer: &mut impl PacketObserver,
    ) -> Option<PacketInTransit> {
        let (due, packet, ecn) = self.delivered.pop_front()?;
        if ecn == Ecn::Ce {
            mark_congestion_experienced(self.slab.packet_mut(packet.cell));
        }
        let direction = self.direction_from(packet.from);
        self.counters[direction].lateness.add_time(now - due);
        report_transmission(&mut self.slab, packet, observer);
        observer.on_deliver(now, due, packet.to, self.slab.packet(packet.cell));
        Some(packet)
    }

    /// Processes all events up to `now`; called before [`EmulatedLink::take_departed_packet`].
    pub fn advance_to(&mut self, now: Nanos, observer: &mut impl PacketObserver) {
        let Self { network, slab, delivered, links, counters, .. } = self;
        network.advance_to(now, &mut NetworkEnd { slab, delivered, links, counters, observer });
    }

    /// Called after a device has accepted (`accepted`) or rejected a packet.
    pub fn count_and_release_packet(&mut self, packet: PacketInTransit, accepted: bool) {
        let direction = self.direction_from(packet.from);
        let counters = &mut self.counters[direction];
        if accepted {
            counters.delivered.count_packet(self.slab.packet(packet.cell).len() as u32);
        } else {
            counters.host_drops += 1;
        }
        self.slab.return_cell(packet.cell);
    }

    /// Lower bound of the next departure; [`tcpcast_link::NEVER`] if there is none.
    #[must_use]
    pub fn next_departure_bound(&self) -> Nanos {
        let due = self.delivered.front().map(|(due, ..)| *due);
        due.unwrap_or_else(|| self.network.next_delivery_bound())
    }

    /// Returns the current counters.
    #[must_use]
    pub fn current_report(&self) -> LinkReport {
        let on_links = self.network.packets_on_links();
        let [forward, back] = [0, 1].map(|direction| {
            let (id, counters) = (self.links[direction], &self.counters[direction]);
            let mut of_link = self.network.link(id).counters(0);
            of_link.entered.packets += counters.link.entered.packets;
            let is_here = |packet: &PacketInTransit| self.direction_from(packet.from) == direction;
            let left = self.delivered.iter().filter(|(_, packet, _)| is_here(packet)).count();
            DirectionCounters {
                link: of_link,
                in_transit: on_links[id.index()] + left as u64,
                ..counters.clone()
            }
        });
        LinkReport { forward, back }
    }

    /// Bytes that the forward direction could have sent by then, if its rate varies.
    #[must_use]
    pub fn capacity_bytes_until(&self, until: Nanos) -> Option<u64> {
        self.network.link(self.links[0]).varying_capacity_bytes_until(until)
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
