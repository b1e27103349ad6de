//! A TAP device: what is written to it arrives in its namespace, and what leaves there is heard by a
//! packet socket.
//!
//! Reading it would be a system call a packet. So all that the namespace sends by it is refused when
//! the packet socket has had it, and counts as dropped by the interface.

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

/// The end of a TAP device that is not in a namespace.
pub struct Tap {
    file: File,
    packets: PacketSocket,
    /// What writes many packets at once, if the machine has it; known from the first packet on.
    batch: Option<Option<Batch>>,
}

impl Tap {
    /// Makes a device of that name in the calling thread's network namespace, which `set_up` brings
    /// up before packets are heard; it goes when this is dropped.
    ///
    /// # Errors
    /// `/dev/net/tun` cannot be opened, or the namespace is not the caller's.
    pub fn new(name: &str, set_up: impl FnOnce() -> io::Result<PacketSocket>) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(CLONE_DEVICE)?;
        let mut request = super::interface_request(name);
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives until the call returns. No safe
        // library has this request.
        #[allow(unsafe_code)]
        checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) })?;
        refuse_all(&file)?;
        Ok(Self { file, packets: set_up()?, batch: None })
    }
}

/// Has the device refuse what its namespace sends.
fn refuse_all(file: &File) -> io::Result<()> {
    let mut nothing = [instruction(libc::BPF_RET | libc::BPF_K, 0, 0)];
    let mut program = program(&mut nothing);
    // SAFETY: TUNATTACHFILTER reads one `sock_fprog` and the instructions that it points to, which
    // live until the call returns. No safe library has this request.
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
        // A ring is of the thread that uses it.
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
