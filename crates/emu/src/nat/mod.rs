//! NAT at the far end of a link: the near end reaches the host's network through the far end.
//!
//! ```text
//! near 10.0.0.1 ==> link ==> far 10.128.0.1 -- nat0 198.18.n.2 == 198.18.n.1 tcpcastn -- host
//!                            masquerades                          masquerades
//! ```
//!
//! The host gets a forwarding device and an nftables table. The kernel removes both when the
//! process that owns them ends, even if that process is killed. No setting of the host changes.
//! Replies may arrive on interfaces on which forwarding is disabled; the table forwards such
//! replies.

mod firewall;

use crate::command::NEAR_ADDRESS;
use crate::namespace::NetworkNamespace;
use crate::network::{EmulatedHost, RoutingSocket};
use firewall::NftablesTable;
use nix::unistd::geteuid;
use std::fs;
use std::io;
use std::net::Ipv4Addr;

/// Device at the far end.
const NAT_DEVICE: &str = "nat0";
/// Maximum number of links with NAT at the same time.
const MAX_LINKS: u8 = 200;
/// Prefix length of the network of each link, within the benchmark addresses (RFC 2544, appendix
/// C).
const PREFIX_LENGTH: u8 = 30;

/// The host's network namespace, opened before the process of the link enters its own namespaces.
#[derive(Debug)]
pub struct Nat {
    host: NetworkNamespace,
}

/// Owner of the NAT rules, which are removed when this is dropped or its process ends.
#[derive(Debug)]
pub struct NatGuard {
    _inside: NftablesTable,
    _outside: NftablesTable,
}

fn nat_address(network: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, network, host)
}

impl Nat {
    /// Opens the network namespace of the calling process.
    ///
    /// # Errors
    /// Fails if the caller is not root, or without `/proc`.
    pub fn open_host_namespace() -> io::Result<Self> {
        if !geteuid().is_root() {
            return Err(io::Error::other(
                "--nat creates a device and firewall rules on this machine and requires root; omit it, \
                 or run as root",
            ));
        }
        Ok(Self { host: NetworkNamespace::of_calling_thread()? })
    }

    /// Connects the far end to the host.
    ///
    /// # Errors
    /// Fails if the kernel lacks veth devices or nftables.
    pub(crate) fn connect_far_end_to_host(self, far: &EmulatedHost) -> io::Result<NatGuard> {
        let number = self.host.run_in_namespace(|| {
            let number = create_device(far)?;
            let name = device_name(number);
            let routing = RoutingSocket::new()?;
            routing.bring_up_interface(&name, Vec::new(), None)?;
            routing.add_address(&name, nat_address(number, 1).into(), PREFIX_LENGTH)?;
            fs::write(format!("/proc/sys/net/ipv4/conf/{name}/forwarding"), "1")?;
            Ok(number)
        })?;
        let inside = far.namespace.run_in_namespace(|| {
            let routing = RoutingSocket::new()?;
            routing.bring_up_interface(NAT_DEVICE, Vec::new(), None)?;
            routing.add_address(NAT_DEVICE, nat_address(number, 2).into(), PREFIX_LENGTH)?;
            routing.add_host_route(crate::network::INTERFACE, NEAR_ADDRESS)?;
            routing.replace_default_route(NAT_DEVICE, nat_address(number, 1))?;
            fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
            NftablesTable::new(NAT_DEVICE)?.add_masquerade_rule(NEAR_ADDRESS).commit_table()
        })?;
        let end = nat_address(number, 2);
        let outside = self.host.run_in_namespace(|| {
            NftablesTable::new(&device_name(number))?
                .add_masquerade_rule(end)
                .add_reply_forwarding_rule(end)
                .commit_table()
        })?;
        Ok(NatGuard { _inside: inside, _outside: outside })
    }
}

fn device_name(number: u8) -> String {
    format!("tcpcast{number}")
}

/// Creates the device between the host, in the calling thread's namespace, and the far end. Returns
/// its number.
fn create_device(far: &EmulatedHost) -> io::Result<u8> {
    let routes = fs::read_to_string("/proc/net/route")?;
    // The file contains little-endian addresses, so the last two bytes come first.
    let taken = |number: u8| routes.contains(&format!("\t00{number:02X}12C6\t"));
    for number in (0..MAX_LINKS).filter(|number| !taken(*number)) {
        match RoutingSocket::new()?.create_veth(
            &device_name(number),
            NAT_DEVICE,
            far.namespace.descriptor(),
        ) {
            Ok(()) => return Ok(number),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("every network of 198.18.0.0/16 is in use on this machine"))
}
