//! The link's end of a veth pair, which needs no device file. One system call sends a batch of
//! packets.

use super::packet_socket::PacketSocket;
use super::{Device, check_libc_result, ethernet_frame, interface_request};
use crate::path::PacketSlab;
use nix::libc;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

const MAX_BATCH: usize = 64;

/// The link's end of a veth pair.
#[derive(Debug)]
pub struct VethDevice {
    packets: PacketSocket,
}

/// Disables offloads of an interface in the calling thread's network namespace, so that all its
/// packets have checksums and are at most one MTU long.
///
/// # Errors
/// Fails if the interface does not exist.
pub fn disable_offloads(interface: &str) -> io::Result<()> {
    const ETHTOOL_STXCSUM: u32 = 0x17;
    const ETHTOOL_SSG: u32 = 0x19;
    const ETHTOOL_STSO: u32 = 0x1f;
    const ETHTOOL_SGSO: u32 = 0x24;
    const ETHTOOL_SGRO: u32 = 0x2c;
    // SAFETY: no pointers are passed, and the descriptor has no other owner.
    #[allow(unsafe_code)]
    let socket = unsafe {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        OwnedFd::from_raw_fd(check_libc_result(libc::socket(libc::AF_INET, kind, 0))?)
    };
    for what in [ETHTOOL_STXCSUM, ETHTOOL_SSG, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO] {
        let mut value = [what, 0_u32];
        let mut request = interface_request(interface);
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        // SAFETY: SIOCETHTOOL reads an `ifreq` that points to two words, and both live until the
        // call returns. No safe library provides this request.
        #[allow(unsafe_code)]
        let result =
            unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) };
        match check_libc_result(result) {
            // Offloads that the device does not support are off.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            other => drop(other?),
        }
    }
    Ok(())
}

impl Device for VethDevice {
    fn packets(&mut self) -> &mut PacketSocket {
        &mut self.packets
    }

    fn send(&mut self, slab: &mut PacketSlab, cells: &[u32], lost: &mut Vec<usize>) {
        cells.iter().for_each(|cell| ethernet_frame::write_ethernet_header(slab, *cell));
        let mut begin = 0;
        while begin < cells.len() {
            let end = cells.len().min(begin + MAX_BATCH);
            begin += self.send_batch(slab, &cells[begin..end]);
            if begin < end {
                // The first rejected packet is lost; the following ones are retried.
                lost.push(begin);
                begin += 1;
            }
        }
    }
}

impl VethDevice {
    /// Creates the link's end from its packet socket.
    #[must_use]
    pub fn new(packets: PacketSocket) -> Self {
        Self { packets }
    }

    fn send_batch(&self, slab: &PacketSlab, batch: &[u32]) -> usize {
        // SAFETY: both are plain data for a system call, and all zeros is a valid value.
        #[allow(unsafe_code)]
        let (mut parts, mut messages) = unsafe {
            (mem::zeroed::<[libc::iovec; MAX_BATCH]>(), mem::zeroed::<[libc::mmsghdr; MAX_BATCH]>())
        };
        for ((cell, part), message) in batch.iter().zip(&mut parts).zip(&mut messages) {
            let bytes = ethernet_frame::frame_of_cell(slab, *cell);
            // The kernel only reads the sent data.
            part.iov_base = bytes.as_ptr().cast_mut().cast();
            part.iov_len = bytes.len();
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: each of the first `batch.len()` messages points to one part, and each part to a
        // cell of the slab, which is borrowed until the call returns.
        #[allow(unsafe_code)]
        let sent = unsafe {
            let count = batch.len().min(MAX_BATCH) as libc::c_uint;
            libc::sendmmsg(self.packets.as_fd().as_raw_fd(), messages.as_mut_ptr(), count, 0)
        };
        usize::try_from(sent).unwrap_or(0)
    }
}
