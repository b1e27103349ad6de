//! Sockets that send messages (UDP) and pings (ICMP).

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, bind, connect, send,
    setsockopt, socket, sockopt,
};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Port of messages.
const MESSAGE_PORT: u16 = 5002;
/// Bytes of the headers of IPv4 and UDP, and of IPv4 and ICMP.
pub(super) const HEADER_BYTES: u32 = 28;
/// Echo request (RFC 792).
const ECHO_REQUEST: u8 = 8;

/// A connected socket for messages or pings.
#[derive(Debug)]
pub(super) struct DatagramSocket {
    socket: OwnedFd,
    /// Number of the next ping; `None` for messages.
    ping: Option<u16>,
}

/// Sets the differentiated services codepoint of all packets of a socket. TCP sets the ECN bits.
pub(super) fn set_codepoint(socket: impl AsFd, dscp: u8) -> io::Result<()> {
    if dscp == 0 {
        return Ok(());
    }
    let value = i32::from(dscp) << 2;
    // SAFETY: the kernel reads as many bytes as `value` has.
    #[allow(unsafe_code)]
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_TOS,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Opens a socket that discards what it receives, in the calling thread's network namespace.
/// Without such a socket, the host would answer messages with errors. `None` if one exists already.
pub(super) fn open_message_sink(address: Ipv4Addr) -> io::Result<Option<OwnedFd>> {
    let sink = open_socket(SockProtocol::Udp)?;
    // Messages beyond the smallest buffer are dropped behind the link.
    setsockopt(&sink, sockopt::RcvBuf, &0)?;
    match bind(sink.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(address, MESSAGE_PORT))) {
        Ok(()) => Ok(Some(sink)),
        Err(Errno::EADDRINUSE) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn open_socket(protocol: SockProtocol) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    Ok(socket(AddressFamily::Inet, SockType::Datagram, flags, protocol)?)
}

impl DatagramSocket {
    /// Opens a socket for messages or pings to a host, in the calling thread's network namespace.
    pub(super) fn open(to: Ipv4Addr, dscp: u8, pings: bool) -> io::Result<Self> {
        let protocol = if pings { SockProtocol::Icmp } else { SockProtocol::Udp };
        let socket = open_socket(protocol)?;
        set_codepoint(&socket, dscp)?;
        let to = SocketAddrV4::new(to, if pings { 0 } else { MESSAGE_PORT });
        connect(socket.as_raw_fd(), &SockaddrIn::from(to))?;
        Ok(Self { socket, ping: pings.then_some(0) })
    }

    /// Sends a packet of `bytes` with headers, at least as many as the headers.
    pub(super) fn send_packet(&mut self, bytes: u32) -> io::Result<()> {
        let content = bytes.saturating_sub(HEADER_BYTES) as usize;
        let mut packet = vec![0; content];
        if let Some(number) = &mut self.ping {
            // The kernel sets checksum and identifier.
            let mut header = [ECHO_REQUEST, 0, 0, 0, 0, 0, 0, 0];
            header[6..].copy_from_slice(&number.to_be_bytes());
            packet.splice(0..0, header);
            *number = number.wrapping_add(1);
        }
        match send(self.socket.as_raw_fd(), &packet, MsgFlags::empty()) {
            // A full device drops the packet, as a host would.
            Ok(_) | Err(Errno::ENOBUFS | Errno::EAGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
