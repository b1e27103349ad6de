//! The namespaces at a link: one host each, and the devices that connect them to the link.

mod netlink;

use crate::device::{
    Device, HOST_MAC, LINK_MAC, PacketSocket, ReceiveFilter, TapDevice, VethDevice,
    disable_offloads,
};
use crate::namespace::NetworkNamespace;
use crate::path::{LinkPort, ipv6_address_of_port};
pub(crate) use netlink::RoutingSocket;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::link::LinkAttribute;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Name of the interface in every host.
pub(crate) const INTERFACE: &str = "link0";
/// Length of the interface's transmit queue, packets.
const TX_QUEUE_LENGTH: u32 = 10_000;

/// Ring frames of 2 KiB for packets that wait for the links: total of the hosts of a side, and
/// minimum per host.
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
pub struct EmulatedHost {
    /// Network namespace of this host.
    pub namespace: NetworkNamespace,
    /// IPv4 address of this host.
    pub address: Ipv4Addr,
    /// True if the host also has an IPv6 address.
    pub has_ipv6: bool,
}

/// Hosts, in the order of a path's ports.
#[derive(Debug)]
pub struct EmulatedNetwork {
    /// Kind of device between hosts and link.
    pub device: DeviceKind,
    /// Hosts.
    pub hosts: Vec<EmulatedHost>,
}

impl EmulatedNetwork {
    /// Creates a host for each port, and the devices that connect the hosts to the link. If one end
    /// must be in the calling thread's network namespace, that host is created there. `mtus`:
    /// maximum packet size of each host, including the IP header. `device`: kind of device; `None`
    /// selects TAP if its file can be opened, otherwise veth.
    ///
    /// # Errors
    /// Fails without privileges in the namespaces, or if the kernel does not support the devices.
    pub fn new(
        ports: &[LinkPort],
        mtus: &[u32],
        device: Option<DeviceKind>,
    ) -> io::Result<(Self, Vec<Box<dyn Device>>)> {
        let device = device.unwrap_or_else(DeviceKind::best_available);
        let (mut hosts, mut devices) = (Vec::new(), Vec::new());
        let hosts_of = |side| ports.iter().filter(|port| port.side == side).count();
        for (number, (port, mtu)) in ports.iter().zip(mtus).enumerate() {
            let namespace = NetworkNamespace::new()?;
            let share = hosts_of(port.side);
            let end = NewHostSettings { namespace: &namespace, address: port.address, mtu: *mtu };
            devices.push(device.create_device_to_host(
                &end,
                number,
                (RING_FRAMES.0 / share).max(RING_FRAMES.1),
            )?);
            hosts.push(EmulatedHost { namespace, address: port.address, has_ipv6: false });
        }
        Ok((Self { device, hosts }, devices))
    }

    /// Adds an IPv6 address to all hosts, if the kernel supports IPv6.
    pub fn add_ipv6(&mut self) {
        for host in &mut self.hosts {
            let address = ipv6_address_of_port(host.address);
            host.has_ipv6 = host.namespace.run_in_namespace(|| enable_host_ipv6(address)).is_ok();
        }
    }

    /// Number of packets that the interfaces of the hosts dropped before the packets reached the
    /// link.
    #[must_use]
    pub fn interface_drops(&self) -> u64 {
        let of = |host: &EmulatedHost| {
            let (received, sent) = host
                .namespace
                .run_in_namespace(|| RoutingSocket::new()?.interface_drops(INTERFACE))?;
            // A TAP device rejects all sent packets after the link has received them.
            let lost = if self.device == DeviceKind::Tap { 0 } else { sent };
            Ok::<_, io::Error>(received + lost)
        };
        self.hosts.iter().map(|host| of(host).unwrap_or(0)).sum()
    }
}

impl EmulatedHost {
    /// Configures TCP in the host: sysctls of `net.ipv4`, and for outgoing connections the initial
    /// window in packets and the minimum RTO in milliseconds.
    ///
    /// # Errors
    /// Fails if the kernel lacks a sysctl or rejects a value; the message contains its name.
    pub fn set_tcp_parameters(
        &self,
        sysctls: &[(String, String)],
        route: Option<(u32, u32)>,
    ) -> io::Result<()> {
        self.namespace.run_in_namespace(|| {
            for (name, value) in sysctls {
                fs::write(format!("/proc/sys/net/ipv4/{name}"), value).map_err(|error| {
                    io::Error::other(format!("cannot set net.ipv4.{name} to {value}: {error}"))
                })?;
            }
            let Some((window, min_rto_ms)) = route else { return Ok(()) };
            RoutingSocket::new()?.set_route_tcp_parameters(INTERFACE, window, min_rto_ms)
        })
    }
}

impl DeviceKind {
    /// Returns TAP if its file can be opened, otherwise veth.
    #[must_use]
    pub fn best_available() -> Self {
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

    fn create_device_to_host(
        self,
        end: &NewHostSettings<'_>,
        number: usize,
        frames: usize,
    ) -> io::Result<Box<dyn Device>> {
        match self {
            Self::Tap => end.namespace.run_in_namespace(|| {
                let device = TapDevice::new(INTERFACE, || {
                    end.configure_host()?;
                    PacketSocket::new(
                        RoutingSocket::new()?.interface_index(INTERFACE)?,
                        ReceiveFilter::Outgoing,
                        frames,
                    )
                })?;
                Ok(Box::new(device) as Box<dyn Device>)
            }),
            Self::Veth => {
                let (routing, name) = (RoutingSocket::new()?, format!("link{number}"));
                routing.create_veth(&name, INTERFACE, end.namespace.descriptor())?;
                disable_offloads(&name)?;
                // Otherwise the interface would look for IPv6 neighbours and routers over the link.
                let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
                let mtu = vec![LinkAttribute::Mtu(end.mtu)];
                routing.bring_up_interface(&name, mtu, Some(LINK_MAC))?;
                let packets = PacketSocket::new(
                    routing.interface_index(&name)?,
                    ReceiveFilter::Incoming,
                    frames,
                )?;
                end.namespace.run_in_namespace(|| {
                    disable_offloads(INTERFACE)?;
                    end.configure_host()
                })?;
                Ok(Box::new(VethDevice::new(packets)))
            }
        }
    }
}

/// Settings of a new host.
struct NewHostSettings<'a> {
    namespace: &'a NetworkNamespace,
    address: Ipv4Addr,
    mtu: u32,
}

impl NewHostSettings<'_> {
    /// Configures the host in the calling thread's network namespace.
    fn configure_host(&self) -> io::Result<()> {
        // Set before the interface is up, because an interface with IPv6 sends router solicitations
        // over the link. Fails on kernels without IPv6; the setting is not needed there.
        let _ = fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
        let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        // Allows ping without privileges, if the group is mapped in this namespace.
        let group = nix::unistd::getegid();
        let _ = fs::write("/proc/sys/net/ipv4/ping_group_range", format!("{group} {group}"));
        let routing = RoutingSocket::new()?;
        let attributes =
            vec![LinkAttribute::Mtu(self.mtu), LinkAttribute::TxQueueLen(TX_QUEUE_LENGTH)];
        routing.bring_up_interface("lo", Vec::new(), None)?;
        routing.bring_up_interface(INTERFACE, attributes, Some(HOST_MAC))?;
        routing.add_address(INTERFACE, self.address.into(), 32)?;
        routing.add_default_route(INTERFACE, AddressFamily::Inet)
    }
}

/// Enables IPv6 with one address and one route in the calling thread's network namespace, without
/// router discovery or generated addresses.
fn enable_host_ipv6(address: Ipv6Addr) -> io::Result<()> {
    let path = |key: &str| format!("/proc/sys/net/ipv6/conf/{INTERFACE}/{key}");
    for (key, value) in [("accept_ra", "0"), ("autoconf", "0"), ("addr_gen_mode", "1")] {
        fs::write(path(key), value)?;
    }
    fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0")?;
    let routing = RoutingSocket::new()?;
    routing.add_address(INTERFACE, address.into(), 128)?;
    routing.add_default_route(INTERFACE, AddressFamily::Inet6)
}
