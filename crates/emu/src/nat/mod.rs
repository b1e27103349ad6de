//! The way out of a link: what the host reaches is reached from the near end, behind the far one.
//!
//! ```text
//! near 10.0.0.1 ==> link ==> far 10.128.0.1 -- nat0 198.18.n.2 == 198.18.n.1 tcpcastn -- host
//!                            masquerades                          masquerades
//! ```
//!
//! The host gets a device that forwards, and a table of nftables. Both go with the process that holds
//! them, however it ends. No setting of the host changes: answers come by interfaces that forward
//! nothing, perhaps, so the table hands them on.

mod firewall;

use crate::command::NEAR;
use crate::namespace::Namespace;
use crate::network::{Host, Netlink};
use firewall::Firewall;
use nix::unistd::geteuid;
use std::fs;
use std::io;
use std::net::Ipv4Addr;

/// The device at the far end.
const DEVICE: &str = "nat0";
/// Links that lead out at the same time.
const MAX_LINKS: u8 = 200;
/// Of addresses for benchmarks (RFC 2544, appendix C), a network for each link.
const PREFIX: u8 = 30;

/// The host, before the link's process leaves it.
#[derive(Debug)]
pub struct Nat {
    host: Namespace,
}

/// What holds the way open; it is shut when this is dropped, or its process ends.
#[derive(Debug)]
pub struct NatGuard {
    _inside: Firewall,
    _outside: Firewall,
}

fn address(number: u8, end: u8) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, number, end)
}

impl Nat {
    /// That of the calling process.
    ///
    /// # Errors
    /// The caller is not root; there is no `/proc`.
    pub fn here() -> io::Result<Self> {
        if !geteuid().is_root() {
            return Err(io::Error::other(
                "--nat makes a device and rules on this machine, which needs root; leave it out, or \
                 run as root",
            ));
        }
        Ok(Self { host: Namespace::current()? })
    }

    /// Opens the way from a far end.
    ///
    /// # Errors
    /// The kernel has no veth devices or no nftables.
    pub(crate) fn join(self, far: &Host) -> io::Result<NatGuard> {
        let number = self.host.within(|| {
            let number = create_device(far)?;
            let name = device(number);
            let routing = Netlink::new()?;
            routing.bring_up(&name, Vec::new(), None)?;
            routing.add_address(&name, address(number, 1).into(), PREFIX)?;
            fs::write(format!("/proc/sys/net/ipv4/conf/{name}/forwarding"), "1")?;
            Ok(number)
        })?;
        let inside = far.namespace.within(|| {
            let routing = Netlink::new()?;
            routing.bring_up(DEVICE, Vec::new(), None)?;
            routing.add_address(DEVICE, address(number, 2).into(), PREFIX)?;
            routing.route_one(crate::network::INTERFACE, NEAR)?;
            routing.replace_default(DEVICE, address(number, 1))?;
            fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
            Firewall::new(DEVICE)?.masquerade(NEAR).commit()
        })?;
        let end = address(number, 2);
        let outside = self.host.within(|| {
            Firewall::new(&device(number))?.masquerade(end).forward_replies(end).commit()
        })?;
        Ok(NatGuard { _inside: inside, _outside: outside })
    }
}

fn device(number: u8) -> String {
    format!("tcpcast{number}")
}

/// Makes the device between the host, in the calling thread's namespace, and a far end; its number.
fn create_device(far: &Host) -> io::Result<u8> {
    let routes = fs::read_to_string("/proc/net/route")?;
    // Routes are little-endian there: the last two bytes come first.
    let taken = |number: u8| routes.contains(&format!("\t00{number:02X}12C6\t"));
    for number in (0..MAX_LINKS).filter(|number| !taken(*number)) {
        match Netlink::new()?.create_veth(&device(number), DEVICE, far.namespace.file()) {
            Ok(()) => return Ok(number),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("every network of 198.18.0.0/16 is in use on this machine"))
}
