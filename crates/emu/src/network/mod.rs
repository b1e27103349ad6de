//! The namespaces at a link: a host in each, and the devices that join them to it.

mod netlink;

use crate::device::{Device, HOST_MAC, PacketDirection, LINK_MAC, PacketSocket, Tap, Veth, without_offloads};
use crate::namespace::Namespace;
use crate::path::{Port, Side, ipv6};
pub(crate) use netlink::Netlink;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::link::LinkAttribute;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The interface of every host.
pub(crate) const INTERFACE: &str = "link0";
/// Packets that wait in an interface for the link to read them.
const QUEUE_LENGTH: u32 = 10_000;

/// Packets that wait for the link behind it, in 2 KiB of memory each: those of the far host, and of
/// all near ones together, of which each has that many at least.
const RING_FRAMES: (usize, usize) = (8192, 512);

/// How packets get from a namespace to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A TAP device.
    Tap,
    /// A veth pair, with a packet socket at the link's end.
    Veth,
}

/// A namespace with an address.
#[derive(Debug)]
pub struct Host {
    /// It.
    pub namespace: Namespace,
    /// Its address.
    pub address: Ipv4Addr,
    /// Whether it has that of IPv6, too.
    pub has_ipv6: bool,
}

/// Hosts, in the order of a path's ports.
#[derive(Debug)]
pub struct Network {
    /// How they are joined to the link.
    pub device: DeviceKind,
    /// They.
    pub hosts: Vec<Host>,
}

impl Network {
    /// Makes a host for each port, and the devices between them and the link, in the calling
    /// thread's network namespace where that has to have one end of them. `mtus` has the longest
    /// packet of each host, with its IP header. Where `device` is not given, TAP if its file can be
    /// opened, else veth.
    ///
    /// # Errors
    /// The caller lacks a privilege in its namespaces, or the kernel a kind of device.
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
            let end = HostSetup { namespace: &namespace, address: port.address, mtu: *mtu };
            devices.push(device.join(&end, number, (RING_FRAMES.0 / share).max(RING_FRAMES.1))?);
            hosts.push(Host { namespace, address: port.address, has_ipv6: false });
        }
        Ok((Self { device, hosts }, devices))
    }

    /// Gives all hosts an address of IPv6; where the kernel has none, they go without.
    pub fn add_ipv6(&mut self) {
        for host in &mut self.hosts {
            let address = ipv6(host.address);
            host.has_ipv6 = host.namespace.within(|| enable_ipv6(address)).is_ok();
        }
    }

    /// Packets that the hosts' interfaces dropped: they got to no link.
    #[must_use]
    pub fn drops(&self) -> u64 {
        let of = |host: &Host| {
            let (received, sent) = host.namespace.within(|| Netlink::new()?.drops(INTERFACE))?;
            // A TAP device refuses all that is sent, when the link has had it.
            Ok::<_, io::Error>(if self.device == DeviceKind::Tap { received } else { received + sent })
        };
        self.hosts.iter().map(|host| of(host).unwrap_or(0)).sum()
    }
}

impl Host {
    /// Sets what TCP in it does: sysctls of `net.ipv4`, and for connections from here the initial
    /// window in packets and the least retransmission timeout in milliseconds.
    ///
    /// # Errors
    /// The kernel lacks a sysctl, or takes no such value; the message has its name.
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
    /// TAP if its file can be opened, else veth.
    #[must_use]
    pub fn available() -> Self {
        let opened = fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
        if opened.is_ok() { Self::Tap } else { Self::Veth }
    }

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tap => "TAP",
            Self::Veth => "veth",
        }
    }

    fn join(self, end: &HostSetup<'_>, number: usize, frames: usize) -> io::Result<Box<dyn Device>> {
        match self {
            Self::Tap => end.namespace.within(|| {
                let device = Tap::new(INTERFACE, || {
                    end.set_up()?;
                    PacketSocket::new(Netlink::new()?.index(INTERFACE)?, PacketDirection::Outgoing, frames)
                })?;
                Ok(Box::new(device) as Box<dyn Device>)
            }),
            Self::Veth => {
                let (routing, name) = (Netlink::new()?, format!("link{number}"));
                routing.create_veth(&name, INTERFACE, end.namespace.file())?;
                without_offloads(&name)?;
                // It would look for neighbours and routers over the link.
                let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
                let mtu = vec![LinkAttribute::Mtu(end.mtu)];
                routing.bring_up(&name, mtu, Some(LINK_MAC))?;
                let packets = PacketSocket::new(routing.index(&name)?, PacketDirection::Incoming, frames)?;
                end.namespace.within(|| {
                    without_offloads(INTERFACE)?;
                    end.set_up()
                })?;
                Ok(Box::new(Veth::new(packets)))
            }
        }
    }
}

/// A host that is to be.
struct HostSetup<'a> {
    namespace: &'a Namespace,
    address: Ipv4Addr,
    mtu: u32,
}

impl HostSetup<'_> {
    /// Sets it up, in the calling thread's network namespace.
    fn set_up(&self) -> io::Result<()> {
        // Before the interface is up, or it would look for IPv6 routers over the link. Where there is
        // no IPv6, there is nothing to switch off.
        let _ = fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
        let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        // So that ping needs no privilege; where the group has no name here, it does.
        let group = nix::unistd::getegid();
        let _ = fs::write("/proc/sys/net/ipv4/ping_group_range", format!("{group} {group}"));
        let routing = Netlink::new()?;
        let attributes = vec![LinkAttribute::Mtu(self.mtu), LinkAttribute::TxQueueLen(QUEUE_LENGTH)];
        routing.bring_up("lo", Vec::new(), None)?;
        routing.bring_up(INTERFACE, attributes, Some(HOST_MAC))?;
        routing.add_address(INTERFACE, self.address.into(), 32)?;
        routing.route_all(INTERFACE, AddressFamily::Inet)
    }
}

/// IPv6 with one address and one route, in the calling thread's network namespace: no routers are
/// looked for, and no addresses made up.
fn enable_ipv6(address: Ipv6Addr) -> io::Result<()> {
    let own = |key: &str| format!("/proc/sys/net/ipv6/conf/{INTERFACE}/{key}");
    for (key, value) in [("accept_ra", "0"), ("autoconf", "0"), ("addr_gen_mode", "1")] {
        fs::write(own(key), value)?;
    }
    fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0")?;
    let routing = Netlink::new()?;
    routing.add_address(INTERFACE, address.into(), 128)?;
    routing.route_all(INTERFACE, AddressFamily::Inet6)
}
