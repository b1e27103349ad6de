//! A packet socket with a ring, which receives packets for the link. It needs no device file, and
//! therefore no privilege outside the namespaces, and one system call for many packets.
//!
//! The kernel writes packets into the ring, so that bursts are not limited by the socket buffer,
//! which an unprivileged user cannot enlarge.

use super::ring::Ring;
use super::{Received, checked, instruction, program};
use crate::path::{MAX_BYTES, Slab};
use nix::libc;
use nix::sys::socket::{getsockopt, sockopt::SocketError};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Direction of the received packets of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Packets received by the interface.
    Incoming,
    /// Packets sent by the interface.
    Outgoing,
}

/// A packet socket with its ring.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    ring: Ring,
}

/// Sets a socket option.
pub(super) fn set_option<T>(
    socket: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads the `length` bytes of `value`, a `T`. Instructions of a filter
    // program are kept by the caller until this returns.
    #[allow(unsafe_code)]
    let result = unsafe {
        let value = std::ptr::from_ref(value).cast();
        libc::setsockopt(socket.as_raw_fd(), level, option, value, length)
    };
    checked(result).map(drop)
}

impl PacketSocket {
    /// Creates a socket with a ring of `frames` frames on an interface of the calling thread's
    /// network namespace. The interface must be up.
    ///
    /// # Errors
    /// Fails without privileges in the namespace, or without memory for the ring.
    pub fn new(interface: u32, direction: Filter, frames: usize) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers are passed, and the descriptor has no other owner.
        #[allow(unsafe_code)]
        let socket =
            unsafe { OwnedFd::from_raw_fd(checked(libc::socket(libc::AF_PACKET, kind, 0))?) };
        match direction {
            Filter::Incoming => {
                let one: libc::c_int = 1;
                set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &one)?;
                // Excludes packets that the link itself sends.
                set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &one)?;
            }
            Filter::Outgoing => accept_only_outgoing(&socket)?,
        }
        let ring = Ring::new(&socket, frames)?;
        bind(&socket, interface)?;
        Ok(Self { socket, ring })
    }

    /// See [`super::Device::receive`].
    pub(super) fn receive(
        &mut self,
        slab: &mut Slab,
        max: usize,
        cells: &mut Vec<u32>,
    ) -> Received {
        let mut received = Received::default();
        for taken in 0..max {
            let cell = slab.take();
            let bytes = match cell {
                Some(cell) => self.ring.take(slab.room(cell)),
                None => self.ring.take(&mut []),
            };
            match (bytes, cell) {
                (Some(bytes), Some(cell)) if bytes <= MAX_BYTES => {
                    slab.set_length(cell, bytes);
                    cells.push(cell);
                }
                (bytes, cell) => {
                    cell.into_iter().for_each(|cell| slab.give(cell));
                    if bytes.is_some() {
                        received.overruns += 1;
                        continue;
                    }
                    if taken == 0 {
                        // The poll was woken by an error, for example an interface that went down.
                        // Reading the error clears it.
                        let _ = getsockopt(&self.socket, SocketError);
                    }
                    break;
                }
            }
        }
        received
    }

    /// Packets dropped because the ring was full, since the last call.
    pub(super) fn missed(&self) -> u64 {
        self.ring.missed(&self.socket)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Filters all packets except outgoing ones.
fn accept_only_outgoing(socket: &OwnedFd) -> io::Result<()> {
    let kind = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
    let mut instructions = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, kind, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::PACKET_OUTGOING.into(), 1),
        instruction(libc::BPF_RET | libc::BPF_K, u32::MAX, 0),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0),
    ];
    let program = program(&mut instructions);
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn bind(socket: &OwnedFd, interface: u32) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is plain data, and all zeros is a valid value.
    #[allow(unsafe_code)]
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface as i32;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel reads the `length` bytes of `address`.
    #[allow(unsafe_code)]
    let result =
        unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) };
    checked(result).map(drop)
}
