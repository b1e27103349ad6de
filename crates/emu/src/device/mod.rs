//! Where packets come from and go to: one device for each namespace at the link.

mod packet_socket;
mod ring;
mod tun;

pub use packet_socket::PacketSocket;
pub(crate) use packet_socket::{HOST_MAC, LINK_MAC, without_offloads};
pub use tun::Tun;

use crate::path::Slab;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// What one call of [`Device::receive`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets that there was no cell for; they are lost.
    pub overruns: u64,
}

/// Moves packets between a namespace and the slab, without waiting.
pub trait Device: AsFd + Send {
    /// Takes at most `most` of the packets that wait, and says in which cells they are.
    ///
    /// # Errors
    /// What the system call returned.
    fn receive(
        &mut self,
        slab: &mut Slab,
        most: usize,
        cells: &mut Vec<u32>,
    ) -> io::Result<Received>;

    /// Hands packets over; how many were taken, from the first. Whoever calls gives the cells back.
    fn send(&mut self, slab: &mut Slab, cells: &[u32]) -> usize;

    /// Packets that the kernel dropped before they could be received, since the last call.
    fn missed(&mut self) -> u64 {
        0
    }
}

/// The same descriptor once more, to wait for packets with while the device is in use.
///
/// # Errors
/// There are no descriptors left.
pub fn waiting_end(device: &dyn Device) -> io::Result<OwnedFd> {
    device.as_fd().try_clone_to_owned()
}
