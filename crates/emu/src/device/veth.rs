//! A packet socket on the link's end of a veth pair: needs no device file, so no privilege outside
//! the namespaces.
//!
//! Packets come through a ring that the kernel writes, so that a burst is not lost for want of a
//! socket buffer, which a user may not enlarge. They go by one system call a batch.

use super::ring::Ring;
use super::{Device, Received};
use crate::path::Slab;
use nix::libc;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The address of every namespace's end of a veth pair: they never meet.
pub const HOST_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// That of the link's ends. What a host sends is addressed to the host's own, as its interface does
/// not ask for neighbours, so the kernel passes it to the packet socket alone.
pub const LINK_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const HEADER_BYTES: usize = 14;
const BATCH: usize = 64;

/// A packet socket with its ring.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    ring: Ring,
    /// Of IPv4 and of IPv6.
    headers: [[u8; HEADER_BYTES]; 2],
}

/// A request about an interface by its name.
pub(super) fn interface_request(name: &str) -> libc::ifreq {
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

/// Sets an option of a packet socket.
pub(super) fn set_option<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value`, which are those of a `T`.
    #[allow(unsafe_code)]
    let result = unsafe {
        let value = std::ptr::from_ref(value).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, value, length)
    };
    checked(result).map(drop)
}

impl PacketSocket {
    /// A socket on the interface of that index in the calling thread's network namespace.
    ///
    /// # Errors
    /// The namespace is not the caller's, or there is no memory for the ring.
    pub fn new(interface: u32) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers are passed, and the descriptor is nobody else's.
        #[allow(unsafe_code)]
        let socket =
            unsafe { OwnedFd::from_raw_fd(checked(libc::socket(libc::AF_PACKET, kind, 0))?) };
        let one: libc::c_int = 1;
        set_option(&socket, libc::PACKET_QDISC_BYPASS, &one)?;
        // What the link itself sends does not come back.
        set_option(&socket, libc::PACKET_IGNORE_OUTGOING, &one)?;
        let ring = Ring::new(&socket)?;
        bind(&socket, interface)?;
        let mut header = [0; HEADER_BYTES];
        header[..6].copy_from_slice(&HOST_MAC);
        header[6..12].copy_from_slice(&LINK_MAC);
        let of = |kind: u16| {
            header[12..].copy_from_slice(&kind.to_be_bytes());
            header
        };
        let headers = [ETHERTYPE_IPV4, ETHERTYPE_IPV6].map(of);
        Ok(Self { socket, ring, headers })
    }
}

fn bind(socket: &OwnedFd, interface: u32) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is plain data, for which all zeros is a value.
    #[allow(unsafe_code)]
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface as i32;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `address`, which are all of it.
    #[allow(unsafe_code)]
    let result =
        unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) };
    checked(result).map(drop)
}

/// Switches off what would make a device hand over packets longer than its MTU, or without their
/// checksums; in the calling thread's network namespace.
///
/// # Errors
/// There is no such interface.
pub fn without_offloads(interface: &str) -> io::Result<()> {
    const CHECKSUM: u32 = 0x17; // ETHTOOL_STXCSUM, and so on
    const SCATTER: u32 = 0x19;
    const TCP_SEGMENTATION: u32 = 0x1f;
    const SEGMENTATION: u32 = 0x24;
    const RECEIVE_OFFLOAD: u32 = 0x2c;
    // SAFETY: no pointers are passed, and the descriptor is nobody else's.
    #[allow(unsafe_code)]
    let socket = unsafe {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        OwnedFd::from_raw_fd(checked(libc::socket(libc::AF_INET, kind, 0))?)
    };
    for what in [CHECKSUM, SCATTER, TCP_SEGMENTATION, SEGMENTATION, RECEIVE_OFFLOAD] {
        let mut value = [what, 0_u32];
        let mut request = interface_request(interface);
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        // SAFETY: SIOCETHTOOL reads an `ifreq` that points to two words, and both live until the
        // call returns. No safe library has this request.
        #[allow(unsafe_code)]
        let result =
            unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) };
        match checked(result) {
            // What the device has not got is off.
            Err(fault) if fault.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            other => drop(other?),
        }
    }
    Ok(())
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Device for PacketSocket {
    fn receive(
        &mut self,
        slab: &mut Slab,
        most: usize,
        cells: &mut Vec<u32>,
    ) -> io::Result<Received> {
        let mut received = Received::default();
        for _ in 0..most {
            let cell = slab.take();
            let copied = match cell {
                Some(cell) => self.ring.take(slab.room(cell)),
                None => self.ring.take(&mut []),
            };
            match (copied, cell) {
                (Some(bytes), Some(cell)) => {
                    slab.set_length(cell, bytes);
                    cells.push(cell);
                }
                (Some(_), None) => received.overruns += 1,
                (None, cell) => {
                    cell.into_iter().for_each(|cell| slab.give(cell));
                    break;
                }
            }
        }
        Ok(received)
    }

    fn send(&mut self, slab: &mut Slab, cells: &[u32]) -> usize {
        let mut sent = 0;
        for batch in cells.chunks(BATCH) {
            for cell in batch {
                let is_ipv6 = slab.packet(*cell).first().is_some_and(|first| first >> 4 == 6);
                slab.set_header(*cell, &self.headers[usize::from(is_ipv6)]);
            }
            let taken = self.send_batch(slab, batch);
            sent += taken;
            if taken < batch.len() {
                break;
            }
        }
        sent
    }

    fn missed(&mut self) -> u64 {
        self.ring.missed(&self.socket)
    }
}

impl PacketSocket {
    fn send_batch(&self, slab: &Slab, batch: &[u32]) -> usize {
        // SAFETY: both are plain data of a system call, for which all zeros is a value.
        #[allow(unsafe_code)]
        let (mut parts, mut messages) = unsafe {
            (mem::zeroed::<[libc::iovec; BATCH]>(), mem::zeroed::<[libc::mmsghdr; BATCH]>())
        };
        for ((cell, part), message) in batch.iter().zip(&mut parts).zip(&mut messages) {
            let bytes = slab.framed(*cell, HEADER_BYTES);
            // The kernel only reads what it sends.
            part.iov_base = bytes.as_ptr().cast_mut().cast();
            part.iov_len = bytes.len();
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: the first `batch.len()` messages point to one part each, and these to cells of the
        // slab, which is borrowed until the call returns.
        #[allow(unsafe_code)]
        let sent = unsafe {
            let count = batch.len().min(BATCH) as libc::c_uint;
            libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), count, 0)
        };
        usize::try_from(sent).unwrap_or(0)
    }
}
