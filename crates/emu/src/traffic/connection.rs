//! A connection: its receiver, its sender, and the current file.

use super::datagrams::set_codepoint;
use super::tcp_info::{TcpInfo, limit_receive_window};
use nix::errno::Errno;
use nix::libc::linger;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, connect, recv, setsockopt, socket,
    sockopt,
};
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;
use tcpcast_link::time::Nanos;

/// Buffer size of a write or read.
pub(super) const BUFFER_BYTES: usize = 1 << 17;
/// Maximum number of reads before other connections are served.
const MAX_READS: usize = 8;

/// Kernel counters of connections of a flow, and received bytes, since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SenderStats {
    pub received: u64,
    pub retransmitted: u64,
    /// Excluding timeouts of SYN-ACKs.
    pub timeouts: u64,
    pub timeout_sequences: u64,
    pub busy_us: u64,
    pub limited_us: u64,
}

impl SenderStats {
    pub(super) fn add_stats(&mut self, other: Self) {
        self.received += other.received;
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.timeout_sequences += other.timeout_sequences;
        self.busy_us += other.busy_us;
        self.limited_us += other.limited_us;
    }
}

/// A connection and its current file.
#[derive(Debug)]
pub(super) struct TestConnection {
    pub flow: usize,
    /// Port of the receiver.
    pub port: u16,
    pub receiver: TcpStream,
    /// `None` until the connection is accepted.
    pub sender: Option<TcpStream>,
    /// Number of the file in its flow, and its size; `None` for an endless transfer.
    pub number: u64,
    pub bytes: Option<u64>,
    /// Link time when the complete file was read.
    pub delivered: Option<Nanos>,
    unsent: u64,
    unread: u64,
    /// Bytes of the request that the receiver has not written, and that the sender has not read.
    request: [u64; 2],
    /// Maximum advertised window of the receiver, bytes; `None` for the size of its buffer.
    window: Option<u32>,
    stats: SenderStats,
    /// Retransmissions before this file.
    retransmitted: u64,
    /// Timeouts of SYN-ACKs, and timeout sequences of SYN-ACKs.
    handshake_timeouts: [u64; 2],
}

impl TestConnection {
    /// Opens a connection from the calling thread's network namespace. `window`: maximum advertised
    /// window of the receiver, bytes; `dscp`: codepoint of its packets.
    pub(super) fn open_connection(
        flow: usize,
        to: SocketAddrV4,
        (number, bytes): (u64, Option<u64>),
        (window, dscp): (Option<u32>, u8),
    ) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let end = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
        set_codepoint(&end, dscp)?;
        // Set before connecting, because the buffer size determines the window scale.
        window.map_or(Ok(()), |window| limit_receive_window(&end, window))?;
        match connect(end.as_raw_fd(), &SockaddrIn::from(to)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let receiver = TcpStream::from(end);
        let left = bytes.unwrap_or(u64::MAX);
        Ok(Self {
            flow,
            port: receiver.local_addr()?.port(),
            receiver,
            sender: None,
            number,
            bytes,
            delivered: None,
            unsent: left,
            unread: left,
            request: [0; 2],
            window,
            stats: SenderStats::default(),
            retransmitted: 0,
            handshake_timeouts: [0; 2],
        })
    }

    /// Stores the accepted sender, which has not sent data yet.
    pub(super) fn set_accepted_sender(&mut self, sender: TcpStream) {
        self.handshake_timeouts =
            TcpInfo::read_from_socket(&sender).map_or([0; 2], |info| info.timeout_counts());
        self.sender = Some(sender);
    }

    /// Starts the next file on this connection.
    pub(super) fn start_file(&mut self, number: u64, bytes: u64) {
        (self.number, self.bytes, self.delivered) = (number, Some(bytes), None);
        (self.unsent, self.unread) = (bytes, bytes);
        self.retransmitted = self.stats.retransmitted;
    }

    /// Starts a request of `request` bytes for the next file; [`Self::answer_request`] starts the
    /// file.
    pub(super) fn start_request(&mut self, request: u64) {
        (self.request, self.unsent) = ([request; 2], 0);
    }

    /// Starts the file that was requested.
    pub(super) fn answer_request(&mut self) {
        self.unsent = self.bytes.unwrap_or(0);
    }

    /// Writes as much of a request as possible. Returns true if it is complete.
    pub(super) fn write_request(&mut self, piece: &[u8]) -> io::Result<bool> {
        let [unwritten, _] = &mut self.request;
        write_bytes(&mut self.receiver, unwritten, piece)
    }

    /// Reads as much of a request as possible. Returns true if this completes it.
    pub(super) fn read_request(&mut self, piece: &mut [u8]) -> io::Result<bool> {
        let (Some(sender), [_, unread]) = (&self.sender, &mut self.request) else {
            return Ok(false);
        };
        if *unread == 0 {
            return Ok(false);
        }
        while *unread > 0 {
            let max = (*unread).min(piece.len() as u64) as usize;
            match recv(sender.as_raw_fd(), &mut piece[..max], MsgFlags::MSG_TRUNC) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => *unread -= bytes as u64,
                Err(Errno::EAGAIN) => return Ok(false),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Events for which the receiver and the sender wait.
    pub(super) fn wanted_events(&self) -> [EpollFlags; 2] {
        let flags = |reads: bool, writes: bool| {
            let none = EpollFlags::empty();
            let read = if reads { EpollFlags::EPOLLIN } else { none };
            read | if writes { EpollFlags::EPOLLOUT } else { none }
        };
        let [unwritten, unread] = self.request.map(|bytes| bytes > 0);
        [flags(self.unread > 0, unwritten), flags(unread, self.unsent > 0)]
    }

    /// Writes as much as fits into the send buffer. Returns true if the complete file is written.
    pub(super) fn write_unsent_bytes(&mut self, piece: &[u8], closes: bool) -> io::Result<bool> {
        let Some(sender) = &mut self.sender else { return Ok(false) };
        let had_data = self.unsent > 0;
        let done = write_bytes(sender, &mut self.unsent, piece)?;
        if had_data && done && closes {
            sender.shutdown(Shutdown::Write)?;
        }
        Ok(done)
    }

    /// Counts received bytes without copying them (tcp(7), MSG_TRUNC). Returns true if the file is
    /// complete.
    pub(super) fn read_from_socket(&mut self, piece: &mut [u8]) -> io::Result<bool> {
        // Linux's `tcp_measure_rcv_mss` changes the limit when the first full packet arrives.
        self.window.map_or(Ok(()), |window| limit_receive_window(&self.receiver, window))?;
        for _ in 0..MAX_READS {
            if self.unread == 0 {
                break;
            }
            let max = self.unread.min(piece.len() as u64) as usize;
            match recv(self.receiver.as_raw_fd(), &mut piece[..max], MsgFlags::MSG_TRUNC) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => {
                    self.unread -= bytes as u64;
                    self.stats.received += bytes as u64;
                }
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.unread == 0)
    }

    /// Updates the counters from the kernel and returns them.
    pub(super) fn sample_tcp_info(&mut self) -> SenderStats {
        if let Some(info) =
            self.sender.as_ref().and_then(|sender| TcpInfo::read_from_socket(sender).ok())
        {
            self.update_stats(&info);
        }
        self.stats
    }

    fn update_stats(&mut self, info: &TcpInfo) {
        self.stats.retransmitted = u64::from(info.retransmission_count());
        let [timeouts, sequences] = info.timeout_counts();
        self.stats.timeouts = timeouts.saturating_sub(self.handshake_timeouts[0]);
        self.stats.timeout_sequences = sequences.saturating_sub(self.handshake_timeouts[1]);
        (self.stats.busy_us, self.stats.limited_us) = info.busy_and_limited_us();
    }

    /// Retransmissions of the current file, as of the last sample.
    pub(super) fn retransmissions_of_file(&self) -> u64 {
        self.stats.retransmitted - self.retransmitted
    }

    /// Closes the connection. The receiver is reset, so that no packets remain on the path.
    /// `with_reset`: also resets the sender, so that it sends nothing more, not even
    /// retransmissions.
    pub(super) fn close_connection(self, with_reset: bool) -> io::Result<()> {
        let immediate = linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&self.receiver, sockopt::Linger, &immediate)?;
        if let Some(sender) = self.sender.filter(|_| with_reset) {
            setsockopt(&sender, sockopt::Linger, &immediate)?;
        }
        Ok(())
    }
}

/// Writes as much as fits into the send buffer. Returns true if no byte is left. A connection that
/// is not open yet accepts nothing.
fn write_bytes(socket: &mut TcpStream, left: &mut u64, piece: &[u8]) -> io::Result<bool> {
    while *left > 0 {
        let max = (*left).min(piece.len() as u64) as usize;
        match socket.write(&piece[..max]) {
            Ok(bytes) => *left -= bytes as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::{Duration, Instant};

    fn until(mut done: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(120);
        while !done() {
            assert!(Instant::now() < end, "timed out");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn connection_transfers_several_files() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let mut connection =
            TestConnection::open_connection(0, to, (0, Some(300_000)), (Some(20_000), 0)).unwrap();
        let (sender, from) = listener.accept().unwrap();
        assert_eq!(from.port(), connection.port);
        sender.set_nonblocking(true).unwrap();
        connection.set_accepted_sender(sender);
        let mut piece = vec![0; BUFFER_BYTES];
        for (number, bytes) in [(1, 5_u64), (2, 100)] {
            until(|| {
                connection.write_unsent_bytes(&piece.clone(), false).unwrap();
                connection.read_from_socket(&mut piece).unwrap()
            });
            connection.start_file(number, bytes);
        }
        let stats = connection.sample_tcp_info();
        assert_eq!((stats.received, stats.retransmitted), (300_005, 0));
        assert_eq!((connection.bytes, connection.retransmissions_of_file()), (Some(100), 0));
        connection.close_connection(true).unwrap();
    }

    /// After two timeouts of its SYN-ACK, the counters of a new connection in `TCP_INFO` begin with
    /// two timeouts in one sequence. The statistics exclude these timeouts.
    #[test]
    fn linux_tcp_create_openreq_child_excludes_syn_ack_timeouts() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port());
        let mut connection = TestConnection::open_connection(0, to, (0, None), (None, 0)).unwrap();
        connection.handshake_timeouts = [2, 1];
        connection.update_stats(&TcpInfo::with_timeout_counts(2, 1));
        assert_eq!((connection.stats.timeouts, connection.stats.timeout_sequences), (0, 0));
        connection.update_stats(&TcpInfo::with_timeout_counts(5, 2));
        assert_eq!((connection.stats.timeouts, connection.stats.timeout_sequences), (3, 1));
    }
}
