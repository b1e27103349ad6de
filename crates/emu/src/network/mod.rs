//! The namespaces at a link: one host each, and the devices that connect them to the link.

mod netlink;

use crate::device::{
    Device, Filter, HOST_MAC, LINK_MAC, PacketSocket, Tap, Veth, without_offloads,
};
use crate::namespace::Namespace;
use crate::path::{Port, Side, ipv6};
pub(crate) use netlink::Netlink;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::link::LinkAttribute;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Name of the interface in every host.
pub(crate) const INTERFACE: &str = "link0";
/// Length of the interface's transmit queue, packets.
const TX_QUEUE: u32 = 10_000;

/// Ring frames of 2 KiB for packets that wait for the link: total of the far host or of all near
/// hosts, and minimum per host.
const RING_FRAMES: (usize, usize) = (8192, 512);

/// Kind of device between a namespace and the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A TAP device.
    Tap,
    /// A veth pair, with a packet socket at the link's end.
    Veth,
}

/// A namespace with its addresses.
#[derive(Debug)]
pub struct Host {
    /// Network namespace of this host.
    pub namespace: Namespace,
    /// IPv4 address of this host.
    pub address: Ipv4Addr,
    /// True if the host also has an IPv6 address.
    pub has_ipv6: bool,
}

/// Hosts, in the order of a path's ports.
#[derive(Debug)]
pub struct Network {
    /// Kind of device between hosts and link.
    pub device: DeviceKind,
    /// Hosts.
    pub hosts: Vec<Host>,
}

impl Network {
    /// Creates a host for each port, and the devices that connect them to the link, in the calling
    /// thread's network namespace if that must contain one end. `mtus`: maximum packet size of each
    /// host, including the IP header. `device`: kind of device; `None` selects TAP if its file can
    /// be opened, otherwise veth.
    ///
    /// # Errors
    /// Fails without privileges in the namespaces, or if the kernel does not support the devices.
    pub fn new(
        ports: &[Port],
        mtus: &[u32],
        device: Option<DeviceKind>,
    ) -> io::Result<(Self, Vec<Box<dyn Device>>)> {
        let device = device.unwrap_or_else(DeviceKind::available);
        let (mut hosts, mut devices) = (Vec::new(), Vec::new());
        let near = ports.iter().filter(|port| port.side == Side::Near).count().max(1);
        for (number, (port, mtu)) in ports.iter().zip(mtus).enumerate() {
            let namespace = Namespace::new()?;
            let share = if port.side == Side::Near { near } else { 1 };
            let end = NewHost { namespace: &namespace, address: port.address, mtu: *mtu };
            devices.push(device.join(&end, number, (RING_FRAMES.0 / share).max(RING_FRAMES.1))?);
            hosts.push(Host { namespace, address: port.address, has_ipv6: false });
        }
        Ok((Self { device, hosts }, devices))
    }

    /// Adds an IPv6 address to all hosts, if the kernel supports IPv6.
    pub fn add_ipv6(&mut self) {
        for host in &mut self.hosts {
            let address = ipv6(host.address);
            host.has_ipv6 = host.namespace.within(|| enable_ipv6(address)).is_ok();
        }
    }

    /// Number of packets dropped by the interfaces of the hosts before they reached a link.
    #[must_use]
    pub fn drops(&self) -> u64 {
        let of = |host: &Host| {
            let (received, sent) = host.namespace.within(|| Netlink::new()?.drops(INTERFACE))?;
            // A TAP device rejects all sent packets after the link has received them.
            let lost = if self.device == DeviceKind::Tap { 0 } else { sent };
            Ok::<_, io::Error>(received + lost)
        };
        self.hosts.iter().map(|host| of(host).unwrap_or(0)).sum()
    }
}

impl Host {
    /// Configures TCP in the host: sysctls of `net.ipv4`, and for outgoing connections the initial
    /// window in packets and the minimum RTO in milliseconds.
    ///
    /// # Errors
    /// Fails if the kernel lacks a sysctl or rejects a value; the message contains its name.
    pub fn tune(&self, sysctls: &[(String, String)], route: Option<(u32, u32)>) -> io::Result<()> {
        self.namespace.within(|| {
            for (name, value) in sysctls {
                fs::write(format!("/proc/sys/net/ipv4/{name}"), value).map_err(|error| {
                    io::Error::other(format!("net.ipv4.{name} cannot be {value}: {error}"))
                })?;
            }
            let Some((window, min_rto_ms)) = route else { return Ok(()) };
            Netlink::new()?.tune_route(INTERFACE, window, min_rto_ms)
        })
    }
}

impl DeviceKind {
    /// Returns TAP if its file can be opened, otherwise veth.
    #[must_use]
    pub fn available() -> Self {
        let opened = fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
        if opened.is_ok() { Self::Tap } else { Self::Veth }
    }

    /// Name of the kind of device.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tap => "TAP",
            Self::Veth => "veth",
        }
    }

    fn join(self, end: &NewHost<'_>, number: usize, frames: usize) -> io::Result<Box<dyn Device>> {
        match self {
            Self::Tap => end.namespace.within(|| {
                let device = Tap::new(INTERFACE, || {
                    end.set_up()?;
                    PacketSocket::new(Netlink::new()?.index(INTERFACE)?, Filter::Outgoing, frames)
                })?;
                Ok(Box::new(device) as Box<dyn Device>)
            }),
            Self::Veth => {
                let (routing, name) = (Netlink::new()?, format!("link{number}"));
                routing.create_veth(&name, INTERFACE, end.namespace.file())?;
                without_offloads(&name)?;
                // Otherwise the interface would look for IPv6 neighbours and routers over the link.
                let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
                let mtu = vec![LinkAttribute::Mtu(end.mtu)];
                routing.bring_up(&name, mtu, Some(LINK_MAC))?;
                let packets = PacketSocket::new(routing.index(&name)?, Filter::Incoming, frames)?;
                end.namespace.within(|| {
                    without_offloads(INTERFACE)?;
                    end.set_up()
                })?;
                Ok(Box::new(Veth::new(packets)))
            }
        }
    }
}

/// Settings of a new host.
struct NewHost<'a> {
    namespace: &'a Namespace,
    address: Ipv4Addr,
    mtu: u32,
}

impl NewHost<'_> {
    /// Configures the host in the calling thread's network namespace.
    fn set_up(&self) -> io::Result<()> {
        // Set before the interface is up, because it would look for IPv6 routers over the link.
        // Fails without IPv6, where it is not needed.
        let _ = fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
        let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        // Allows ping without privileges, if the group is mapped in this namespace.
        let group = nix::unistd::getegid();
        let _ = fs::write("/proc/sys/net/ipv4/ping_group_range", format!("{group} {group}"));
        let routing = Netlink::new()?;
        let attributes = vec![LinkAttribute::Mtu(self.mtu), LinkAttribute::TxQueueLen(TX_QUEUE)];
        routing.bring_up("lo", Vec::new(), None)?;
        routing.bring_up(INTERFACE, attributes, Some(HOST_MAC))?;
        routing.add_address(INTERFACE, self.address.into(), 32)?;
        routing.route_all(INTERFACE, AddressFamily::Inet)
    }
}

/// Enables IPv6 with one address and one route in the calling thread's network namespace, without
/// router discovery or generated addresses.
fn enable_ipv6(address: Ipv6Addr) -> io::Result<()> {
    let path = |key: &str| format!("/proc/sys/net/ipv6/conf/{INTERFACE}/{key}");
    for (key, value) in [("accept_ra", "0"), ("autoconf", "0"), ("addr_gen_mode", "1")] {
        fs::write(path(key), value)?;
    }
    fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0")?;
    let routing = Netlink::new()?;
    routing.add_address(INTERFACE, address.into(), 128)?;
    routing.route_all(INTERFACE, AddressFamily::Inet6)
}
