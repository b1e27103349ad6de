//! The link itself: both directions, ports at both sides, and the packets in a slab.
//!
//! Everything takes `now`, the link's time, and nothing here does I/O. A caller reads packets into
//! cells of the slab, lets them [`Path::enter`], and hands over what [`Path::leave`] yields.

mod counters;
mod direction;
pub mod header;
mod histogram;
mod slab;

pub use counters::{Cause, Counters, Traffic};
pub use direction::{DirectionConfig, InTransit, Jitter};
pub use histogram::Histogram;
pub use slab::{HEADROOM, MOST_BYTES, Slab};

use direction::{Direction, Leaving};
use header::{Header, mark};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcpcast_link::time::Nanos;

/// An end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Where data come from in a scenario: its senders.
    Near,
    /// Where they go.
    Far,
}

/// A place where packets come and go: one namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// On which side.
    pub side: Side,
    /// What packets to it carry as their destination; of IPv6, [`ipv6`] of it.
    pub address: Ipv4Addr,
    /// Propagation from it to the far side; of a far port nothing.
    pub forward: Nanos,
    /// Propagation from the far side to it; of a far port nothing.
    pub back: Nanos,
}

/// The IPv6 address of a port: its other one behind a prefix for private use (RFC 4193).
#[must_use]
pub fn ipv6(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from(0xfd00 << 112 | u128::from(u32::from(address)))
}

/// Listens to packets at both sides.
///
/// `leaves` may tell of packets in another order than that of time where packets of both directions
/// leave.
pub trait Observer {
    /// A packet came in by a port at `now`.
    fn enters(&mut self, _now: Nanos, _port: u16, _packet: &[u8]) {}
    /// A packet that came in by a port was dropped.
    fn drops(&mut self, _now: Nanos, _port: u16, _packet: &[u8], _cause: Cause) {}
    /// A packet that came in by a port has got through, and waited so long for its transmission.
    fn passed(&mut self, _from: u16, _packet: &[u8], _waited: Nanos, _marked: bool) {}
    /// A packet is handed to a port at `now`; it was due at `due`.
    fn leaves(&mut self, _now: Nanos, _due: Nanos, _port: u16, _packet: &[u8]) {}
    /// The link's clock stood still again: for `away` in total.
    fn stood_still(&mut self, _away: Nanos) {}
}

impl Observer for () {}

/// What was true at one moment, to be told of at another.
#[derive(Clone, Debug)]
pub struct Report {
    /// Near to far.
    pub forward: Counters,
    /// Far to near.
    pub back: Counters,
    /// Packets of either that are neither delivered nor dropped.
    pub in_transit: [u64; 2],
}

/// A link with its ports.
#[derive(Debug)]
pub struct Path {
    /// The packets.
    pub slab: Slab,
    ports: Vec<Port>,
    by_address: HashMap<IpAddr, u16>,
    /// Where packets of the near side go whose destination no port has.
    way_out: Option<u16>,
    /// From near to far, and back.
    directions: [Direction; 2],
    next_direction: usize,
}

impl Path {
    /// An empty link between ports, those of the near side first; packets take at most so many bytes
    /// of memory.
    #[must_use]
    pub fn new(
        forward: DirectionConfig,
        back: DirectionConfig,
        ports: Vec<Port>,
        most_bytes: usize,
    ) -> Self {
        let near = || ports.iter().filter(|port| port.side == Side::Near);
        let (there, home) = (near().map(|port| port.forward), near().map(|port| port.back));
        let directions =
            [Direction::new(forward, there.collect()), Direction::new(back, home.collect())];
        let addresses = |port: &Port| [IpAddr::from(port.address), ipv6(port.address).into()];
        let named = (0..).zip(&ports).flat_map(|(at, port)| addresses(port).map(|a| (a, at)));
        let (by_address, way_out) = (named.collect(), None);
        let slab = Slab::new(most_bytes);
        Self { slab, ports, by_address, way_out, directions, next_direction: 0 }
    }

    /// The same with a way out at the far side: there go the near side's IPv4 packets that no port
    /// wants.
    #[must_use]
    pub fn with_way_out(mut self) -> Self {
        let far = self.ports.iter().position(|port| port.side == Side::Far);
        self.way_out = far.and_then(|far| u16::try_from(far).ok());
        self
    }

    /// The port that a packet goes to from a side; `None` where nobody wants it.
    fn port_of(&self, from: Side, to: IpAddr) -> Option<u16> {
        let has = self.by_address.get(&to).copied();
        let out = self.way_out.filter(|_| has.is_none() && to.is_ipv4() && !to.is_multicast());
        has.or(out).filter(|port| self.ports[usize::from(*port)].side != from)
    }

    /// Its ports.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// The packet in a cell came in by a port at `now`, which never goes back.
    pub fn enter(&mut self, now: Nanos, port: u16, cell: u32, observer: &mut impl Observer) {
        let from = self.ports[usize::from(port)];
        let at = usize::from(from.side == Side::Far);
        let packet = self.slab.packet(cell);
        let bytes = packet.len() as u32;
        let header = Header::read(packet);
        let to = header.and_then(|header| self.port_of(from.side, header.destination));
        let (Some(header), Some(to)) = (header, to) else {
            // What IPv6 says to all neighbours of an interface is for no link.
            if !header.is_some_and(|header| header.destination.is_multicast()) {
                self.directions[at].counters.drop(Cause::Misaddressed);
            }
            return self.slab.give(cell);
        };
        observer.enters(now, port, packet);
        let in_transit = InTransit { cell, from: port, to };
        self.directions[at].enter(now, in_transit, (header.flow, bytes, header.ecn));
        self.clear(at, now, observer);
    }

    /// A port's packet was lost because there was no cell that it fits into.
    pub fn overrun(&mut self, port: u16) {
        let at = usize::from(self.ports[usize::from(port)].side == Side::Far);
        self.directions[at].counters.entered.packets += 1;
        self.directions[at].counters.drop(Cause::Machinery);
    }

    fn clear(&mut self, at: usize, now: Nanos, observer: &mut impl Observer) {
        while let Some((packet, cause)) = self.directions[at].take_dropped() {
            self.directions[at].counters.drop(cause);
            observer.drops(now, packet.from, self.slab.packet(packet.cell), cause);
            self.slab.give(packet.cell);
        }
    }

    /// Takes the next packet that has left the link by `now`: its cell and its port. Whoever takes
    /// it hands it over and calls [`Path::delivered`].
    pub fn leave(&mut self, now: Nanos, observer: &mut impl Observer) -> Option<InTransit> {
        loop {
            let at = self.next_direction;
            if let Some((due, leaving)) = self.directions[at].leave(now) {
                let Leaving { packet, waited, marked, lost } = leaving;
                if marked {
                    mark(self.slab.packet_mut(packet.cell));
                }
                self.directions[at].counters.lateness.add(now - due);
                let bytes = self.slab.packet(packet.cell);
                observer.passed(packet.from, bytes, waited, marked);
                if lost {
                    self.directions[at].counters.drop(Cause::Random);
                    observer.drops(now, packet.from, bytes, Cause::Random);
                    self.slab.give(packet.cell);
                    continue;
                }
                observer.leaves(now, due, packet.to, bytes);
                return Some(packet);
            }
            self.next_direction = 1 - at;
            if at == 1 {
                return None;
            }
        }
    }

    /// Does what was due by `now`, before [`Path::leave`] is asked.
    pub fn catch_up(&mut self, now: Nanos, observer: &mut impl Observer) {
        self.next_direction = 0;
        for at in 0..2 {
            self.directions[at].catch_up(now);
            self.clear(at, now, observer);
        }
    }

    /// A packet that left was taken by its device, or lost there.
    pub fn delivered(&mut self, packet: InTransit, taken: bool) {
        let at = usize::from(self.ports[usize::from(packet.from)].side == Side::Far);
        let counters = &mut self.directions[at].counters;
        if taken {
            counters.delivered.add(self.slab.packet(packet.cell).len() as u32);
        } else {
            counters.drop(Cause::Machinery);
        }
        self.slab.give(packet.cell);
    }

    /// A time before which no packet leaves; [`tcpcast_link::NEVER`] if there is none.
    #[must_use]
    pub fn next(&self) -> Nanos {
        self.directions[0].next().min(self.directions[1].next())
    }

    /// Counters as of now.
    #[must_use]
    pub fn report(&self) -> Report {
        let [forward, back] = &self.directions;
        Report {
            forward: forward.counters.clone(),
            back: back.counters.clone(),
            in_transit: [forward.in_transit(), back.in_transit()],
        }
    }

    /// Bytes that the forward direction could have sent by then, where its rate varies.
    #[must_use]
    pub fn capacity(&self, until: Nanos) -> Option<u64> {
        self.directions[0].capacity(until)
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
