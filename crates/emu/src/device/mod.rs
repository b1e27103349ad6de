//! Where packets come from and go to: one device for each namespace at the link.
//!
//! ```text
//! host -> its interface -> ring of a packet socket -> link -> TAP: io_uring, or write -> host
//!                                                             veth: sendmmsg
//! ```
//!
//! Both are Ethernet devices between two addresses that never meet others.

mod batch;
mod frame;
mod packet_socket;
mod ring;
mod tap;
mod veth;

pub(crate) use frame::{HOST_MAC, LINK_MAC};
pub use packet_socket::{PacketDirection, PacketSocket};
pub use tap::Tap;
pub use veth::Veth;
pub(crate) use veth::without_offloads;

use crate::path::Slab;
use nix::libc;
use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};

/// What one call of [`Device::receive`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets that there was no cell for, or that are too long for one; they are lost.
    pub overruns: u64,
}

/// Moves packets between a namespace and the slab, without waiting.
pub trait Device: AsFd + Send {
    /// Takes at max `max` of the packets that wait, and says in which cells they are.
    fn receive(&mut self, slab: &mut Slab, max: usize, cells: &mut Vec<u32>) -> Received;

    /// Hands packets over, and says which were not taken, by their place among the cells. Whoever
    /// calls gives the cells back.
    fn send(&mut self, slab: &mut Slab, cells: &[u32], lost: &mut Vec<usize>);

    /// Packets that the kernel dropped before they could be received, since the last call.
    fn missed(&mut self) -> u64;
}

/// The same descriptor once more, to wait for packets with while the device is in use.
///
/// # Errors
/// There are no descriptors left.
pub fn poll_fd(device: &dyn Device) -> io::Result<OwnedFd> {
    device.as_fd().try_clone_to_owned()
}

/// A request about an interface by its name.
fn interface_request(name: &str) -> libc::ifreq {
    // SAFETY: `ifreq` is plain data of a system call, for which all zeros is a value.
    #[allow(unsafe_code)]
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Instructions of a socket filter (linux/filter.h); the program lives as long as they do.
fn program(instructions: &mut [libc::sock_filter]) -> libc::sock_fprog {
    libc::sock_fprog { len: instructions.len() as u16, filter: instructions.as_mut_ptr() }
}

/// An instruction of a socket filter: what to do, with which value, and by how many instructions it
/// goes further where a comparison fails.
fn instruction(code: u32, value: u32, unless: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: unless, k: value }
}
