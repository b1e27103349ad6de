//! The links between hosts as a network, the ports of the hosts, and the packets in a slab.
//!
//! All functions take the time `now`, and none does I/O. The caller reads packets into the slab's
//! cells, passes them to [`EmulatedPaths::enter_packet`], and delivers the packets that
//! [`EmulatedPaths::take_departed_packet`] returns. All events have exact times, independent of
//! when the caller runs: overdue events are processed in order before new events.

pub mod header;
mod packet_slab;
mod tcp_header;

pub use packet_slab::{HEADROOM, MAX_BYTES, PacketSlab};

use header::{IpHeader, set_codepoint};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
pub(crate) use tcp_header::{TcpHeader, is_sequence_after};
use tcpcast_link::time::Nanos;
use tcpcast_link::{Ecn, Packet};
use tcpcast_net::{
    DropCause, LinkCounters, LinkId, Network, NetworkObserver, PacketAndByteCount, Passage,
    RouteId, Service, TimeHistogram,
};

/// Side of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkSide {
    /// Side of a scenario's servers.
    Near,
    /// Side of a scenario's clients.
    Far,
}

/// A namespace attached to the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPort {
    /// Side of the host.
    pub side: LinkSide,
    /// Destination address of its packets; for IPv6, [`ipv6_address_of_port`] of this address.
    pub address: Ipv4Addr,
}

/// Routes of the packets from one port to another; packets between other ports are not sent.
#[derive(Clone, Debug)]
pub struct PortPair {
    /// Port through which the packets enter.
    pub from: u16,
    /// Destination port.
    pub to: u16,
    /// Equal routes; the flow of a packet selects one.
    pub routes: Box<[RouteId]>,
    /// Source and destination host for disciplines that are fair among hosts; `None` to use the
    /// addresses of the packets.
    pub hosts: Option<[u32; 2]>,
}

/// Returns the IPv6 address of a port: its IPv4 address after a private prefix (RFC 4193).
#[must_use]
pub fn ipv6_address_of_port(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from(0xfd00 << 112 | u128::from(u32::from(address)))
}

/// Receives notifications of packets; `bytes` is the IP packet.
pub trait PacketObserver {
    /// A packet entered through a port at `now`.
    fn on_enter(&mut self, _now: Nanos, _packet: &PacketInTransit, _bytes: &[u8]) {}
    /// A packet entered a link.
    fn on_link_entered(&mut self, _link: LinkId, _packet: &PacketInTransit, _bytes: &[u8]) {}
    /// The departure of a packet from a link is known.
    fn on_served(&mut self, _: LinkId, _packet: &PacketInTransit, _bytes: &[u8], _: &Service) {}
    /// A link dropped a packet.
    fn on_drop(&mut self, _: LinkId, _packet: &PacketInTransit, _bytes: &[u8], _: DropCause) {}
    /// A packet is delivered at `now`; its due time was `due`.
    fn on_deliver(&mut self, _now: Nanos, _due: Nanos, _: &PacketInTransit, _bytes: &[u8]) {}
    /// The clock of the links was paused for `total_pause` in total.
    fn on_clock_pause(&mut self, _total_pause: Nanos) {}
}

impl PacketObserver for () {}

/// Counters of the packets from one side, over all links of their routes.
///
/// entered = delivered + dropped + lost by the emulator + in transit
#[derive(Clone, Debug, Default)]
pub struct DirectionCounters {
    /// Packets that entered, and their drops by cause; the other counters of links are 0.
    pub link: LinkCounters,
    /// Queueing delay of transmitted packets.
    pub waits: TimeHistogram,
    /// Packets delivered to the other end.
    pub delivered: PacketAndByteCount,
    /// Packets that the emulator lost, because memory was lacking or a device rejected them. They
    /// make the run invalid.
    pub host_drops: u64,
    /// Packets that are not IP or without a destination port, which did not enter.
    pub misaddressed: u64,
    /// Lateness of deliveries.
    pub lateness: TimeHistogram,
}

impl DirectionCounters {
    /// Packets that are neither delivered nor dropped.
    #[must_use]
    pub fn in_transit(&self) -> u64 {
        let left = self.delivered.packets + self.link.dropped_packets() + self.host_drops;
        self.link.entered.packets - left
    }
}

/// A snapshot of the counters.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// From near hosts.
    pub forward: DirectionCounters,
    /// From far hosts.
    pub back: DirectionCounters,
}

/// A packet in transit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketInTransit {
    /// Cell of the packet.
    pub cell: u32,
    /// Port through which the packet entered.
    pub from: u16,
    /// Destination port.
    pub to: u16,
    /// Number of the pair of both ports.
    pub pair: u32,
    /// Time at which the packet entered.
    pub entered: Nanos,
}

/// The links between ports.
#[derive(Debug)]
pub struct EmulatedPaths {
    /// Memory for packets.
    pub slab: PacketSlab,
    ports: Vec<LinkPort>,
    by_address: HashMap<IpAddr, u16>,
    pairs: Vec<PortPair>,
    by_ports: HashMap<(u16, u16), u32>,
    /// Port for IPv4 packets whose destination belongs to no port.
    default_port: Option<u16>,
    network: Network<PacketInTransit>,
    /// Counters by side of the sender: near, far.
    counters: [DirectionCounters; 2],
    /// Packets that have left the network, with their due time.
    delivered: VecDeque<(Nanos, PacketInTransit, Ecn)>,
}

/// Receives the packets that leave the network, and notifies an observer.
struct NetworkEnd<'a, O> {
    slab: &'a mut PacketSlab,
    delivered: &'a mut VecDeque<(Nanos, PacketInTransit, Ecn)>,
    ports: &'a [LinkPort],
    pairs: &'a [PortPair],
    counters: &'a mut [DirectionCounters; 2],
    observer: &'a mut O,
}

impl<O> NetworkEnd<'_, O> {
    fn counters_of(&mut self, packet: &PacketInTransit) -> &mut DirectionCounters {
        &mut self.counters[direction_from(self.ports, packet.from)]
    }

    fn header_of(&self, packet: &PacketInTransit) -> Option<IpHeader> {
        IpHeader::parse_ip(self.slab.packet(packet.cell))
    }

    fn ack_of(&self, packet: &PacketInTransit) -> Option<TcpHeader> {
        TcpHeader::parse_ip(self.slab.packet(packet.cell))
    }
}

impl<O: PacketObserver> NetworkObserver<PacketInTransit> for NetworkEnd<'_, O> {
    fn on_delivered(&mut self, now: Nanos, packet: PacketInTransit, ecn: Ecn) {
        self.delivered.push_back((now, packet, ecn));
    }

    fn on_entered(&mut self, _: Nanos, at: Passage, packet: &PacketInTransit) {
        self.observer.on_link_entered(at.link, packet, self.slab.packet(packet.cell));
    }

    fn on_dropped(&mut self, _: Nanos, link: LinkId, packet: PacketInTransit, cause: DropCause) {
        self.observer.on_drop(link, &packet, self.slab.packet(packet.cell), cause);
        let counters = self.counters_of(&packet);
        counters.link.count_drop(cause);
        self.slab.return_cell(packet.cell);
    }

    fn on_served(&mut self, at: Passage, packet: &PacketInTransit, service: &Service) {
        let counters = self.counters_of(packet);
        counters.waits.add_time(service.waited);
        counters.link.marked += u64::from(service.marked);
        self.observer.on_served(at.link, packet, self.slab.packet(packet.cell), service);
    }

    fn hosts_of(&self, packet: &PacketInTransit) -> [u32; 2] {
        let of_header = || self.header_of(packet).map_or([0, 0], |header| header.hosts);
        self.pairs[packet.pair as usize].hosts.unwrap_or_else(of_header)
    }

    fn dscp_of(&self, packet: &PacketInTransit) -> u8 {
        self.header_of(packet).map_or(0, |header| header.dscp)
    }

    fn ecn_echo_of(&self, packet: &PacketInTransit) -> u8 {
        self.ack_of(packet).map_or(0, |ack| ack.ecn_echo())
    }

    fn supersedes(&self, newer: &PacketInTransit, older: &PacketInTransit) -> bool {
        let both = self.ack_of(newer).zip(self.ack_of(older));
        newer.pair == older.pair && both.is_some_and(|(newer, older)| newer.supersedes(&older))
    }
}

/// Direction of the packets from a port: 0 from the near side.
fn direction_from(ports: &[LinkPort], port: u16) -> usize {
    usize::from(ports[usize::from(port)].side == LinkSide::Far)
}

impl EmulatedPaths {
    /// Creates idle paths over a network between pairs of ports. `max_bytes`: maximum memory for
    /// packets.
    #[must_use]
    pub fn new(
        network: Network<PacketInTransit>,
        ports: Vec<LinkPort>,
        pairs: Vec<PortPair>,
        max_bytes: usize,
    ) -> Self {
        let addresses = |port: &LinkPort| {
            [IpAddr::from(port.address), ipv6_address_of_port(port.address).into()]
        };
        let named = (0..).zip(&ports).flat_map(|(index, port)| addresses(port).map(|a| (a, index)));
        Self {
            slab: PacketSlab::new(max_bytes),
            by_address: named.collect(),
            by_ports: (0..)
                .zip(&pairs)
                .map(|(index, pair)| ((pair.from, pair.to), index))
                .collect(),
            ports,
            pairs,
            default_port: None,
            network,
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

    /// Destination port of a packet, and the number of the pair; `None` if there is none.
    fn find_pair(&self, from: u16, to: IpAddr) -> Option<(u16, u32)> {
        let has = self.by_address.get(&to).copied();
        let out = self.default_port.filter(|_| has.is_none() && to.is_ipv4() && !to.is_multicast());
        let to = has.or(out)?;
        Some((to, *self.by_ports.get(&(from, to))?))
    }

    /// Ports of the hosts.
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
        let direction = direction_from(&self.ports, port);
        let bytes = self.slab.packet(cell);
        let header = IpHeader::parse_ip(bytes);
        let pair = header.and_then(|header| self.find_pair(port, header.destination));
        let (Some(header), Some((to, pair))) = (header, pair) else {
            // IPv6 multicast to all neighbours of an interface is not sent over a link.
            if !header.is_some_and(|header| header.destination.is_multicast()) {
                self.counters[direction].misaddressed += 1;
            }
            return self.slab.return_cell(cell);
        };
        let token = PacketInTransit { cell, from: port, to, pair, entered: now };
        let length = bytes.len() as u32;
        observer.on_enter(now, &token, bytes);
        self.counters[direction].link.entered.count_packet(length);
        self.advance_to(now, observer);
        let packet = Packet::new(token, header.flow, length).with_ecn(header.ecn);
        let routes = &self.pairs[pair as usize].routes;
        let route = routes[header.flow as usize % routes.len()];
        let Self { network, slab, delivered, ports, pairs, counters, .. } = self;
        let end = &mut NetworkEnd { slab, delivered, ports, pairs, counters, observer };
        network.send(now, route, packet, end);
    }

    /// Counts a packet of a port that was lost because no cell was available or large enough.
    pub fn count_packet_without_cell(&mut self, port: u16) {
        let counters = &mut self.counters[direction_from(&self.ports, port)];
        counters.link.entered.packets += 1;
        counters.host_drops += 1;
    }

    /// Returns the next packet that left the links. The caller must deliver it at `now` and call
    /// [`EmulatedPaths::count_and_release_packet`].
    pub fn take_departed_packet(
        &mut self,
        now: Nanos,
        observer: &mut impl PacketObserver,
    ) -> Option<PacketInTransit> {
        let (due, packet, ecn) = self.delivered.pop_front()?;
        set_codepoint(self.slab.packet_mut(packet.cell), ecn);
        let direction = direction_from(&self.ports, packet.from);
        self.counters[direction].lateness.add_time(now - due);
        observer.on_deliver(now, due, &packet, self.slab.packet(packet.cell));
        Some(packet)
    }

    /// Processes all events up to `now`; called before [`EmulatedPaths::take_departed_packet`].
    pub fn advance_to(&mut self, now: Nanos, observer: &mut impl PacketObserver) {
        let Self { network, slab, delivered, ports, pairs, counters, .. } = self;
        let end = &mut NetworkEnd { slab, delivered, ports, pairs, counters, observer };
        network.advance_to(now, end);
    }

    /// Called after a device has accepted (`accepted`) or rejected a packet.
    pub fn count_and_release_packet(&mut self, packet: PacketInTransit, accepted: bool) {
        let counters = &mut self.counters[direction_from(&self.ports, packet.from)];
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
        let [forward, back] = self.counters.clone();
        LinkReport { forward, back }
    }

    /// Returns the network, with the occupancy of all queues up to `now` or, if it is earlier, the
    /// time of the next event. Also returns this time.
    pub fn network_at(
        &mut self,
        now: Nanos,
        observer: &mut impl PacketObserver,
    ) -> (&Network<PacketInTransit>, Nanos) {
        let Self { network, slab, delivered, ports, pairs, counters, .. } = self;
        let end = &mut NetworkEnd { slab, delivered, ports, pairs, counters, observer };
        let until = now.min(network.next_time());
        let links: Vec<LinkId> = network.links().map(|(link, _)| link).collect();
        for link in links {
            network.update_occupancy(link, until, end);
        }
        (network, until)
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
