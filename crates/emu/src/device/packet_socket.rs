//! A packet socket with a ring, which receives packets for the link. A packet socket needs no
//! device file, and therefore no privilege outside the namespaces; one system call receives many
//! packets.
//!
//! The kernel writes packets into the ring, so that bursts are not limited by the socket buffer,
//! which an unprivileged user cannot enlarge.

use super::packet_ring::PacketRing;
use super::{ReceiveResult, check_libc_result, filter_instruction, socket_filter_program};
use crate::path::{MAX_BYTES, PacketSlab};
use nix::libc;
use nix::sys::socket::{getsockopt, sockopt::SocketError};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Direction of the received packets of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveFilter {
    /// Packets received by the interface.
    Incoming,
    /// Packets sent by the interface.
    Outgoing,
}

/// A packet socket with its ring.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    ring: PacketRing,
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
    check_libc_result(result).map(drop)
}

impl PacketSocket {
    /// Creates a socket with a ring of `frames` frames on an interface of the calling thread's
    /// network namespace. The interface must be up.
    ///
    /// # Errors
    /// Fails without privileges in the namespace, or without memory for the ring.
    pub fn new(interface: u32, direction: ReceiveFilter, frames: usize) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers are passed, and the descriptor has no other owner.
        #[allow(unsafe_code)]
        let socket = unsafe {
            OwnedFd::from_raw_fd(check_libc_result(libc::socket(libc::AF_PACKET, kind, 0))?)
        };
        match direction {
            ReceiveFilter::Incoming => {
                let one: libc::c_int = 1;
                set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &one)?;
                // Excludes packets that the link itself sends.
                set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &one)?;
            }
            ReceiveFilter::Outgoing => accept_only_outgoing(&socket)?,
        }
        let ring = PacketRing::new(&socket, frames)?;
        bind_to_interface(&socket, interface)?;
        Ok(Self { socket, ring })
    }

    /// Receives at most `max` packets and adds their cells to `cells`.
    pub(crate) fn receive(
        &mut self,
        slab: &mut PacketSlab,
        max: usize,
        cells: &mut Vec<u32>,
    ) -> ReceiveResult {
        let mut received = ReceiveResult::default();
        for taken in 0..max {
            let cell = slab.take_cell();
            let bytes = match cell {
                Some(cell) => self.ring.copy_next_packet(slab.cell_memory_mut(cell)),
                None => self.ring.copy_next_packet(&mut []),
            };
            match (bytes, cell) {
                (Some(bytes), Some(cell)) if bytes <= MAX_BYTES => {
                    slab.set_length(cell, bytes);
                    cells.push(cell);
                }
                (bytes, cell) => {
                    cell.into_iter().for_each(|cell| slab.return_cell(cell));
                    if bytes.is_some() {
                        received.overruns += 1;
                        continue;
                    }
                    if taken == 0 {
                        // The poll was woken by an error, for example an interface that went down.
                        // Reading the error of the socket also clears the error.
                        let _ = getsockopt(&self.socket, SocketError);
                    }
                    break;
                }
            }
        }
        received
    }

    /// Number of packets that the kernel has dropped since the last call, because the ring was full.
    pub(crate) fn take_kernel_drop_count(&self) -> u64 {
        self.ring.read_drop_count(&self.socket)
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
        filter_instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, kind, 0),
        filter_instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            libc::PACKET_OUTGOING.into(),
            1,
        ),
        filter_instruction(libc::BPF_RET | libc::BPF_K, u32::MAX, 0),
        filter_instruction(libc::BPF_RET | libc::BPF_K, 0, 0),
    ];
    let program = socket_filter_program(&mut instructions);
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn bind_to_interface(socket: &OwnedFd, interface: u32) -> io::Result<()> {
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
    check_libc_result(result).map(drop)
}
