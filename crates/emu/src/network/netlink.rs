//! Requests to the kernel's routing socket in the calling thread's network namespace.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, Stats64,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;

/// A routing socket.
pub(crate) struct RoutingSocket {
    socket: Socket,
}

fn unexpected_answer_error() -> io::Error {
    io::Error::other("the kernel's answer to a routing request cannot be parsed")
}

impl RoutingSocket {
    /// Opens a socket in the calling thread's network namespace.
    pub(crate) fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// Sends a request. Returns the kernel's first answer, if it is not an acknowledgement.
    fn send_request(
        &self,
        request: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Option<RouteNetlinkMessage>> {
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | flags;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer);
        match answer.map_err(|_| unexpected_answer_error())?.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            NetlinkPayload::InnerMessage(inner) => Ok(Some(inner)),
            _ => Ok(None),
        }
    }

    fn send_create_request(&self, request: RouteNetlinkMessage) -> io::Result<()> {
        self.send_request(request, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    /// Creates a veth pair: `name` in this namespace, `peer` in the namespace `there`.
    pub(crate) fn create_veth(&self, name: &str, peer: &str, there: &File) -> io::Result<()> {
        let mut end = LinkMessage::default();
        end.attributes.push(LinkAttribute::IfName(peer.to_owned()));
        end.attributes.push(LinkAttribute::NetNsFd(there.as_raw_fd()));
        let mut pair = LinkMessage::default();
        pair.attributes.push(LinkAttribute::IfName(name.to_owned()));
        pair.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(end))),
        ]));
        self.send_create_request(RouteNetlinkMessage::NewLink(pair))
    }

    fn get_interface(&self, name: &str) -> io::Result<LinkMessage> {
        let mut request = LinkMessage::default();
        request.attributes.push(LinkAttribute::IfName(name.to_owned()));
        match self.send_request(RouteNetlinkMessage::GetLink(request), 0)? {
            Some(RouteNetlinkMessage::NewLink(link)) => Ok(link),
            _ => Err(unexpected_answer_error()),
        }
    }

    /// Index of an interface.
    pub(super) fn interface_index(&self, name: &str) -> io::Result<u32> {
        Ok(self.get_interface(name)?.header.index)
    }

    /// Number of packets that an interface dropped (RX and TX drops).
    pub(super) fn interface_drops(&self, name: &str) -> io::Result<(u64, u64)> {
        let of = |stats: &Stats64| (stats.rx_dropped, stats.tx_dropped);
        let link = self.get_interface(name)?;
        let drops = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(of(stats)),
            _ => None,
        });
        Ok(drops.unwrap_or_default())
    }

    /// Sets attributes of an interface and brings it up. If `hardware` is given, it becomes the
    /// MAC address, and neighbour resolution (ARP, NDP) is disabled.
    pub(crate) fn bring_up_interface(
        &self,
        name: &str,
        mut attributes: Vec<LinkAttribute>,
        hardware: Option<[u8; 6]>,
    ) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = self.interface_index(name)?;
        link.header.flags = LinkFlags::Up;
        if let Some(address) = hardware {
            link.header.flags |= LinkFlags::Noarp;
            attributes.push(LinkAttribute::Address(address.to_vec()));
        }
        link.header.change_mask = link.header.flags;
        link.attributes = attributes;
        self.send_request(RouteNetlinkMessage::SetLink(link), NLM_F_ACK).map(drop)
    }

    /// Adds an address with a prefix length to an interface. IPv6 addresses are used without
    /// duplicate detection.
    pub(crate) fn add_address(&self, name: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = address_family(address);
        message.header.prefix_len = prefix;
        message.header.index = self.interface_index(name)?;
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        message.attributes.push(AddressAttribute::Local(address));
        message.attributes.push(AddressAttribute::Address(address));
        self.send_create_request(RouteNetlinkMessage::NewAddress(message))
    }

    /// Adds a default route of an address family through an interface.
    pub(super) fn add_default_route(&self, name: &str, family: AddressFamily) -> io::Result<()> {
        let route = default_route_message(self.interface_index(name)?, family);
        self.send_create_request(RouteNetlinkMessage::NewRoute(route))
    }

    /// Adds a route to one address through an interface.
    pub(crate) fn add_host_route(&self, name: &str, to: Ipv4Addr) -> io::Result<()> {
        let mut route = default_route_message(self.interface_index(name)?, AddressFamily::Inet);
        route.header.destination_prefix_length = 32;
        route.attributes.push(RouteAttribute::Destination(RouteAddress::Inet(to)));
        self.send_create_request(RouteNetlinkMessage::NewRoute(route))
    }

    /// Replaces the default route by a route through a gateway.
    pub(crate) fn replace_default_route(&self, name: &str, by: Ipv4Addr) -> io::Result<()> {
        let mut route = default_route_message(self.interface_index(name)?, AddressFamily::Inet);
        route.header.scope = RouteScope::Universe;
        route.attributes.push(RouteAttribute::Gateway(RouteAddress::Inet(by)));
        let request = RouteNetlinkMessage::NewRoute(route);
        self.send_request(request, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE).map(drop)
    }

    /// Sets TCP parameters of the route of [`Self::add_default_route`]: the initial window in
    /// packets, and the minimum RTO in milliseconds.
    pub(super) fn set_route_tcp_parameters(
        &self,
        name: &str,
        window: u32,
        min_rto_ms: u32,
    ) -> io::Result<()> {
        let mut route = default_route_message(self.interface_index(name)?, AddressFamily::Inet);
        let metrics = vec![RouteMetric::InitCwnd(window), RouteMetric::RtoMin(min_rto_ms)];
        route.attributes.push(RouteAttribute::Metrics(metrics));
        let request = RouteNetlinkMessage::NewRoute(route);
        self.send_request(request, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE).map(drop)
    }
}

fn address_family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

/// Returns a default route of an address family through an interface.
fn default_route_message(index: u32, family: AddressFamily) -> RouteMessage {
    let mut route = RouteMessage::default();
    route.header.address_family = family;
    route.header.table = RouteHeader::RT_TABLE_MAIN;
    route.header.protocol = RouteProtocol::Boot;
    route.header.scope = RouteScope::Link;
    route.header.kind = RouteType::Unicast;
    route.attributes.push(RouteAttribute::Oif(index));
    route
}
