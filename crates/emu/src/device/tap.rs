//! A TUN device: what the namespace routes to it is read here, and what is written arrives there.

use super::{Device, Received};
use crate::path::Slab;
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

const CLONE_DEVICE: &str = "/dev/net/tun";

/// The end of a TUN device that is not in a namespace.
#[derive(Debug)]
pub struct Tun {
    file: File,
    /// For packets that there is no cell for.
    scratch: Box<[u8]>,
}

impl Tun {
    /// Makes a device of that name in the calling thread's network namespace; it goes when this is
    /// dropped.
    ///
    /// # Errors
    /// `/dev/net/tun` cannot be opened, or the namespace is not the caller's.
    pub fn new(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(CLONE_DEVICE)?;
        let mut request = super::packet_socket::interface_request(name);
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives until the call returns. No safe
        // library has this request.
        #[allow(unsafe_code)]
        let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { file, scratch: vec![0; 65_536].into_boxed_slice() })
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Device for Tun {
    fn receive(
        &mut self,
        slab: &mut Slab,
        most: usize,
        cells: &mut Vec<u32>,
    ) -> io::Result<Received> {
        let mut received = Received::default();
        for _ in 0..most {
            let cell = slab.take();
            let room = match cell {
                Some(cell) => slab.room(cell),
                None => &mut self.scratch,
            };
            match (self.file.read(room), cell) {
                (Ok(bytes), Some(cell)) => {
                    slab.set_length(cell, bytes);
                    cells.push(cell);
                }
                (Ok(_), None) => received.overruns += 1,
                (Err(fault), cell) => {
                    if let Some(cell) = cell {
                        slab.give(cell);
                    }
                    let is_empty = fault.kind() == io::ErrorKind::WouldBlock;
                    return if is_empty { Ok(received) } else { Err(fault) };
                }
            }
        }
        Ok(received)
    }

    fn send(&mut self, slab: &mut Slab, cells: &[u32]) -> usize {
        let taken = cells.iter().take_while(|cell| self.file.write(slab.packet(**cell)).is_ok());
        taken.count()
    }
}
