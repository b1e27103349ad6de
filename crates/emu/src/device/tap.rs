//! A TAP device: written packets arrive in its namespace, and packets sent there are received by a
//! packet socket.
//!
//! Reading the device would need a system call per packet. The packet socket receives each packet
//! first. The device then rejects the packet, and the interface counts it as dropped.

use super::io_uring_batch::IoUringBatch;
use super::packet_socket::PacketSocket;
use super::{Device, check_libc_result, ethernet_frame, filter_instruction, socket_filter_program};
use crate::path::PacketSlab;
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;

const CLONE_DEVICE: &str = "/dev/net/tun";

/// The end of a TAP device outside the namespace.
pub struct TapDevice {
    file: File,
    packets: PacketSocket,
    /// Batch writer, if supported; determined at the first packet.
    batch: Option<Option<IoUringBatch>>,
}

impl TapDevice {
    /// Creates a device in the calling thread's network namespace. Dropping the [`TapDevice`]
    /// removes the device. `configure_host` brings it up and creates the packet socket.
    ///
    /// # Errors
    /// Fails if `/dev/net/tun` cannot be opened, or without privileges in the namespace.
    pub fn new(name: &str, set_up: impl FnOnce() -> io::Result<PacketSocket>) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(CLONE_DEVICE)?;
        let mut request = super::interface_request(name);
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives until the call returns. No
        // safe library provides this request.
        #[allow(unsafe_code)]
        check_libc_result(unsafe {
            libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request)
        })?;
        reject_namespace_packets(&file)?;
        Ok(Self { file, packets: set_up()?, batch: None })
    }
}

/// Makes the device reject all packets that its namespace sends.
fn reject_namespace_packets(file: &File) -> io::Result<()> {
    let mut nothing = [filter_instruction(libc::BPF_RET | libc::BPF_K, 0, 0)];
    let mut program = socket_filter_program(&mut nothing);
    // SAFETY: TUNATTACHFILTER reads one `sock_fprog` and its instructions, which live until the
    // call returns. No safe library provides this request.
    #[allow(unsafe_code)]
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNATTACHFILTER as _, &mut program) };
    check_libc_result(done).map(drop)
}

impl Device for TapDevice {
    fn packets(&mut self) -> &mut PacketSocket {
        &mut self.packets
    }

    fn send(&mut self, slab: &mut PacketSlab, cells: &[u32], lost: &mut Vec<usize>) {
        cells.iter().for_each(|cell| ethernet_frame::write_ethernet_header(slab, *cell));
        // A ring belongs to the thread that uses it.
        let batch = self.batch.get_or_insert_with(|| IoUringBatch::new(self.file.as_fd()));
        if let Some(batch) = batch {
            return batch.write_packets(slab, cells, lost);
        }
        for (at, cell) in cells.iter().enumerate() {
            if self.file.write(ethernet_frame::frame_of_cell(slab, *cell)).is_err() {
                lost.push(at);
            }
        }
    }
}
