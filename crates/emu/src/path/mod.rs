//! The link: both directions, the ports on both sides, and the packets in a slab.
//!
//! All functions take the link's time `now`, and none does I/O. The caller reads packets into the
//! slab's cells, passes them to [`Path::enter`], and delivers the packets that [`Path::leave`]
//! returns.

mod counters;
mod direction;
pub mod header;
mod histogram;
mod slab;

pub use counters::{Cause, Counters, Traffic};
pub use direction::{DirectionConfig, InTransit, Jitter};
pub use histogram::Histogram;
pub use slab::{HEADROOM, MAX_BYTES, Slab};

use direction::{Direction, Leaving};
use header::{Header, mark};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcpcast_link::time::Nanos;

/// Side of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Side of a scenario's senders.
    Near,
    /// Side of a scenario's receivers.
    Far,
}

/// A namespace attached to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Side of the link.
    pub side: Side,
    /// Destination address of its packets; for IPv6, [`ipv6`] of this address.
    pub address: Ipv4Addr,
    /// Propagation delay to the far side; 0 for a far port.
    pub forward: Nanos,
    /// Propagation delay from the far side; 0 for a far port.
    pub back: Nanos,
}

/// Returns the IPv6 address of a port: its IPv4 address after a private prefix (RFC 4193).
#[must_use]
pub fn ipv6(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from(0xfd00 << 112 | u128::from(u32::from(address)))
}

/// Receives notifications of packets on both sides.
///
/// Calls of `leaves` are not ordered in time if packets of both directions leave.
pub trait Observer {
    /// A packet entered through a port at `now`.
    fn enters(&mut self, _now: Nanos, _port: u16, _packet: &[u8]) {}
    /// A packet that entered through a port was dropped.
    fn drops(&mut self, _now: Nanos, _port: u16, _packet: &[u8], _cause: Cause) {}
    /// A packet that entered through a port was transmitted after queueing for `waited`.
    fn passed(&mut self, _from: u16, _packet: &[u8], _waited: Nanos, _marked: bool) {}
    /// A packet is delivered to a port at `now`; it was due at `due`.
    fn leaves(&mut self, _now: Nanos, _due: Nanos, _port: u16, _packet: &[u8]) {}
    /// The link's clock was paused; `paused` is the total pause.
    fn on_pause(&mut self, _away: Nanos) {}
}

impl Observer for () {}

/// A snapshot of the counters.
#[derive(Clone, Debug)]
pub struct Report {
    /// Near to far.
    pub forward: Counters,
    /// Far to near.
    pub back: Counters,
    /// Packets of each direction that are neither delivered nor dropped.
    pub in_transit: [u64; 2],
}

/// A link with its ports.
#[derive(Debug)]
pub struct Path {
    /// Memory for packets.
    pub slab: Slab,
    ports: Vec<Port>,
    by_address: HashMap<IpAddr, u16>,
    /// Port for packets of the near side whose destination no port has.
    default_port: Option<u16>,
    /// Near to far, and back.
    directions: [Direction; 2],
    next_direction: usize,
}

impl Path {
    /// Creates an idle link between ports, near ports first. `max_bytes`: maximum memory for
    /// packets.
    #[must_use]
    pub fn new(
        forward: DirectionConfig,
        back: DirectionConfig,
        ports: Vec<Port>,
        max_bytes: usize,
    ) -> Self {
        let near = || ports.iter().filter(|port| port.side == Side::Near);
        let (forward_delays, back_delays) =
            (near().map(|port| port.forward), near().map(|port| port.back));
        let directions = [
            Direction::new(forward, forward_delays.collect()),
            Direction::new(back, back_delays.collect()),
        ];
        let addresses = |port: &Port| [IpAddr::from(port.address), ipv6(port.address).into()];
        let named = (0..).zip(&ports).flat_map(|(index, port)| addresses(port).map(|a| (a, index)));
        let (by_address, default_port) = (named.collect(), None);
        let slab = Slab::new(max_bytes);
        Self { slab, ports, by_address, default_port, directions, next_direction: 0 }
    }

    /// Sends IPv4 packets of the near side to the far port if no port has their destination.
    #[must_use]
    pub fn with_default_port(mut self) -> Self {
        let far = self.ports.iter().position(|port| port.side == Side::Far);
        self.default_port = far.and_then(|far| u16::try_from(far).ok());
        self
    }

    /// Returns the destination port of a packet from a side; `None` if there is none.
    fn port_of(&self, from: Side, to: IpAddr) -> Option<u16> {
        let has = self.by_address.get(&to).copied();
        let out = self.default_port.filter(|_| has.is_none() && to.is_ipv4() && !to.is_multicast());
        has.or(out).filter(|port| self.ports[usize::from(*port)].side != from)
    }

    /// Ports of the link.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Processes the packet in a cell, which entered through a port at `now`. Times must not
    /// decrease.
    pub fn enter(&mut self, now: Nanos, port: u16, cell: u32, observer: &mut impl Observer) {
        let from = self.ports[usize::from(port)];
        let direction = usize::from(from.side == Side::Far);
        let packet = self.slab.packet(cell);
        let bytes = packet.len() as u32;
        let header = Header::read(packet);
        let to = header.and_then(|header| self.port_of(from.side, header.destination));
        let (Some(header), Some(to)) = (header, to) else {
            // IPv6 multicast to all neighbours of an interface is not sent over a link.
            if !header.is_some_and(|header| header.destination.is_multicast()) {
                self.directions[direction].counters.drop(Cause::Misaddressed);
            }
            return self.slab.give(cell);
        };
        observer.enters(now, port, packet);
        let in_transit = InTransit { cell, from: port, to };
        self.directions[direction].enter(now, in_transit, (header.flow, bytes, header.ecn));
        self.process_drops(direction, now, observer);
    }

    /// Counts a packet of a port that was lost because no cell was available or large enough.
    pub fn overrun(&mut self, port: u16) {
        let direction = usize::from(self.ports[usize::from(port)].side == Side::Far);
        self.directions[direction].counters.entered.packets += 1;
        self.directions[direction].counters.drop(Cause::Host);
    }

    fn process_drops(&mut self, direction: usize, now: Nanos, observer: &mut impl Observer) {
        while let Some((packet, cause)) = self.directions[direction].take_dropped() {
            self.directions[direction].counters.drop(cause);
            observer.drops(now, packet.from, self.slab.packet(packet.cell), cause);
            self.slab.give(packet.cell);
        }
    }

    /// Returns the next packet that left the link by `now`. The caller must deliver it and call
    /// [`Path::delivered`].
    pub fn leave(&mut self, now: Nanos, observer: &mut impl Observer) -> Option<InTransit> {
        loop {
            let direction = self.next_direction;
            if let Some((due, leaving)) = self.directions[direction].leave(now) {
                let Leaving { packet, waited, marked, lost } = leaving;
                if marked {
                    mark(self.slab.packet_mut(packet.cell));
                }
                self.directions[direction].counters.lateness.add(now - due);
                let bytes = self.slab.packet(packet.cell);
                observer.passed(packet.from, bytes, waited, marked);
                if lost {
                    self.directions[direction].counters.drop(Cause::Random);
                    observer.drops(now, packet.from, bytes, Cause::Random);
                    self.slab.give(packet.cell);
                    continue;
                }
                observer.leaves(now, due, packet.to, bytes);
                return Some(packet);
            }
            self.next_direction = 1 - direction;
            if direction == 1 {
                return None;
            }
        }
    }

    /// Processes all events up to `now`; called before [`Path::leave`].
    pub fn advance_to(&mut self, now: Nanos, observer: &mut impl Observer) {
        self.next_direction = 0;
        for direction in 0..2 {
            self.directions[direction].advance_to(now);
            self.process_drops(direction, now, observer);
        }
    }

    /// Called after a device has accepted (`taken`) or rejected a packet.
    pub fn delivered(&mut self, packet: InTransit, taken: bool) {
        let direction = usize::from(self.ports[usize::from(packet.from)].side == Side::Far);
        let counters = &mut self.directions[direction].counters;
        if taken {
            counters.delivered.add(self.slab.packet(packet.cell).len() as u32);
        } else {
            counters.drop(Cause::Host);
        }
        self.slab.give(packet.cell);
    }

    /// Lower bound of the next departure; [`tcpcast_link::NEVER`] if there is none.
    #[must_use]
    pub fn next(&self) -> Nanos {
        self.directions[0].next().min(self.directions[1].next())
    }

    /// Returns the current counters.
    #[must_use]
    pub fn report(&self) -> Report {
        let [forward, back] = &self.directions;
        Report {
            forward: forward.counters.clone(),
            back: back.counters.clone(),
            in_transit: [forward.in_transit(), back.in_transit()],
        }
    }

    /// Bytes that the forward direction could have sent by then, if its rate varies.
    #[must_use]
    pub fn capacity(&self, until: Nanos) -> Option<u64> {
        self.directions[0].capacity(until)
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
