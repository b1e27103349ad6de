//! A TAP device: written packets arrive in its namespace, and packets sent there are received by a
//! packet socket.
//!
//! Reading the device would need a system call per packet. So the device rejects all packets of the
//! namespace after the packet socket has received them, and the interface counts them as dropped.

use super::batch::Batch;
use super::packet_socket::PacketSocket;
use super::{Device, Received, checked, frame, instruction, program};
use crate::path::Slab;
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

const CLONE_DEVICE: &str = "/dev/net/tun";

/// The end of a TAP device outside the namespace.
pub struct Tap {
    file: File,
    packets: PacketSocket,
    /// Batch writer, if supported; determined at the first packet.
    batch: Option<Option<Batch>>,
}

impl Tap {
    /// Creates a device in the calling thread's network namespace. Dropping the [`Tap`] removes the
    /// device. `set_up` brings it up and creates the packet socket.
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
        checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) })?;
        refuse_all(&file)?;
        Ok(Self { file, packets: set_up()?, batch: None })
    }
}

/// Makes the device reject all packets that its namespace sends.
fn refuse_all(file: &File) -> io::Result<()> {
    let mut nothing = [instruction(libc::BPF_RET | libc::BPF_K, 0, 0)];
    let mut program = program(&mut nothing);
    // SAFETY: TUNATTACHFILTER reads one `sock_fprog` and its instructions, which live until the
    // call returns. No safe library provides this request.
    #[allow(unsafe_code)]
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNATTACHFILTER as _, &mut program) };
    checked(done).map(drop)
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.packets.as_fd()
    }
}

impl Device for Tap {
    fn receive(&mut self, slab: &mut Slab, max: usize, cells: &mut Vec<u32>) -> Received {
        self.packets.receive(slab, max, cells)
    }

    fn send(&mut self, slab: &mut Slab, cells: &[u32], lost: &mut Vec<usize>) {
        cells.iter().for_each(|cell| frame::address(slab, *cell));
        // A ring belongs to the thread that uses it.
        let batch = self.batch.get_or_insert_with(|| Batch::new(self.file.as_fd()));
        if let Some(batch) = batch {
            return batch.write(slab, cells, lost);
        }
        for (at, cell) in cells.iter().enumerate() {
            if self.file.write(frame::of(slab, *cell)).is_err() {
                lost.push(at);
            }
        }
    }

    fn missed(&mut self) -> u64 {
        self.packets.missed()
    }
}
