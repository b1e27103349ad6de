//! Devices: one per namespace at the link.
//!
//! ```text
//! host -> its interface -> ring of a packet socket -> link -> TAP: io_uring, or write -> host
//!                                                             veth: sendmmsg
//! ```
//!
//! TAP and veth are Ethernet devices. The host's end and the link's end have fixed MAC addresses
//! (`HOST_MAC`, `LINK_MAC`), which may be equal for all devices because each is a separate
//! network.

mod ethernet_frame;
mod io_uring_batch;
mod packet_ring;
mod packet_socket;
mod tap;
mod veth;

pub(crate) use ethernet_frame::{HOST_MAC, LINK_MAC};
pub use packet_socket::{PacketSocket, ReceiveFilter};
pub use tap::TapDevice;
pub use veth::VethDevice;
pub(crate) use veth::disable_offloads;

use crate::path::PacketSlab;
use nix::libc;
use std::io;
use std::mem;

/// Result of [`PacketSocket::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveResult {
    /// Packets lost because no cell was available or large enough.
    pub overruns: u64,
}

/// Moves packets between a namespace and the slab without blocking.
pub trait Device: Send {
    /// The socket that receives the packets of the namespace.
    fn packets(&mut self) -> &mut PacketSocket;

    /// Sends packets and adds the indices of rejected ones to `lost`. The caller frees the cells.
    fn send(&mut self, slab: &mut PacketSlab, cells: &[u32], lost: &mut Vec<usize>);
}

/// Creates a request for an interface by name.
fn interface_request(name: &str) -> libc::ifreq {
    // SAFETY: `ifreq` is plain data for a system call, and all zeros is a valid value.
    #[allow(unsafe_code)]
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request
}

fn check_libc_result(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Creates a socket filter program (linux/filter.h), which borrows the instructions.
fn socket_filter_program(instructions: &mut [libc::sock_filter]) -> libc::sock_fprog {
    libc::sock_fprog { len: instructions.len() as u16, filter: instructions.as_mut_ptr() }
}

/// Creates an instruction of a socket filter. `skip_if_false`: number of instructions to skip if a
/// comparison fails.
fn filter_instruction(code: u32, value: u32, skip_if_false: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: skip_if_false, k: value }
}
