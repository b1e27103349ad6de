//! One connection: the receiver that opened it, the sender that has accepted, and a file on it.

use super::tcp_info::{TcpInfo, limit_window};
use nix::errno::Errno;
use nix::libc::linger;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, connect, recv, setsockopt, socket,
    sockopt,
};
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;
use tcpcast_link::time::Nanos;

/// Bytes written and read at once.
pub(super) const PIECE: usize = 1 << 17;
/// Pieces read before others have their turn.
const READS: usize = 8;

/// What the connections of a flow told, and were sent, since the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub received: u64,
    pub rtt_sum_ns: u64,
    pub rtt_samples: u64,
    pub retransmitted: u64,
    /// Without those of SYN-ACK.
    pub timeouts: u64,
    pub timeout_sequences: u64,
    pub busy_us: u64,
    pub limited_us: u64,
}

impl Told {
    pub(super) fn add(&mut self, other: Self) {
        self.received += other.received;
        self.rtt_sum_ns += other.rtt_sum_ns;
        self.rtt_samples += other.rtt_samples;
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.timeout_sequences += other.timeout_sequences;
        self.busy_us += other.busy_us;
        self.limited_us += other.limited_us;
    }
}

/// A connection with the file that is on it.
#[derive(Debug)]
pub(super) struct Connection {
    pub flow: usize,
    /// The receiver's port.
    pub port: u16,
    pub receiver: TcpStream,
    /// Once it has accepted.
    pub sender: Option<TcpStream>,
    /// Which file of its flow it is, and its bytes; without them it never ends.
    pub number: u64,
    pub bytes: Option<u64>,
    /// When all had been read, by the link's clock.
    pub delivered: Option<Nanos>,
    unsent: u64,
    unread: u64,
    /// The most bytes that the receiver advertises; `None` is as many as its buffer holds.
    window: Option<u32>,
    told: Told,
    acks: u32,
    /// Retransmissions before this file.
    retransmitted: u64,
    /// Timeouts of SYN-ACK, and sequences of them.
    of_handshake: [u64; 2],
}

impl Connection {
    /// Asks for a connection from the calling thread's network namespace. The receiver advertises
    /// at most `window` bytes, if there is such a limit.
    pub(super) fn open(
        flow: usize,
        to: SocketAddrV4,
        number: u64,
        bytes: Option<u64>,
        window: Option<u32>,
    ) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let end = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
        // Before the connection, so that the scale of the window fits.
        window.map_or(Ok(()), |window| limit_window(&end, window))?;
        match connect(end.as_raw_fd(), &SockaddrIn::from(to)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(fault) => return Err(fault.into()),
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
            window,
            told: Told::default(),
            acks: 0,
            retransmitted: 0,
            of_handshake: [0; 2],
        })
    }

    /// The sender has accepted, and has sent nothing yet.
    pub(super) fn accepted(&mut self, sender: TcpStream) {
        self.of_handshake = TcpInfo::of(&sender).map_or([0; 2], |info| info.timeouts());
        self.sender = Some(sender);
    }

    /// The next file goes over it.
    pub(super) fn go_on(&mut self, number: u64, bytes: u64) {
        (self.number, self.bytes, self.delivered) = (number, Some(bytes), None);
        (self.unsent, self.unread) = (bytes, bytes);
        self.retransmitted = self.told.retransmitted;
    }

    /// Writes what there is room for; whether all of the file is written.
    pub(super) fn push(&mut self, piece: &[u8], closes: bool) -> io::Result<bool> {
        let Some(sender) = &mut self.sender else { return Ok(false) };
        while self.unsent > 0 {
            let most = self.unsent.min(piece.len() as u64) as usize;
            match sender.write(&piece[..most]) {
                Ok(bytes) => self.unsent -= bytes as u64,
                Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
                Err(fault) => return Err(fault),
            }
        }
        if closes {
            sender.shutdown(Shutdown::Write)?;
        }
        Ok(true)
    }

    /// Counts what has come without copying it (tcp(7), MSG_TRUNC); whether that is the rest.
    pub(super) fn take(&mut self, piece: &mut [u8]) -> io::Result<bool> {
        // Linux's `tcp_measure_rcv_mss` sets another limit when the first full packet comes.
        self.window.map_or(Ok(()), |window| limit_window(&self.receiver, window))?;
        for _ in 0..READS {
            if self.unread == 0 {
                break;
            }
            let most = self.unread.min(piece.len() as u64) as usize;
            match recv(self.receiver.as_raw_fd(), &mut piece[..most], MsgFlags::MSG_TRUNC) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => {
                    self.unread -= bytes as u64;
                    self.told.received += bytes as u64;
                }
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(self.unread == 0)
    }

    /// Asks the kernel.
    pub(super) fn ask(&mut self) -> Told {
        if let Some(info) = self.sender.as_ref().and_then(|sender| TcpInfo::of(sender).ok()) {
            self.hear(&info);
        }
        self.told
    }

    /// The round-trip time counts once for each ack that came since: TCP takes a sample of each.
    fn hear(&mut self, info: &TcpInfo) {
        let new = info.acks().wrapping_sub(self.acks);
        self.acks = info.acks();
        self.told.rtt_samples += u64::from(new);
        self.told.rtt_sum_ns += u64::from(new) * u64::from(info.rtt_us()) * 1000;
        self.told.retransmitted = u64::from(info.retransmitted());
        let [timeouts, sequences] = info.timeouts();
        self.told.timeouts = timeouts.saturating_sub(self.of_handshake[0]);
        self.told.timeout_sequences = sequences.saturating_sub(self.of_handshake[1]);
        (self.told.busy_us, self.told.limited_us) = info.busy_us();
    }

    /// Retransmissions of the file on it, as of when the kernel was asked last.
    pub(super) fn retransmitted(&self) -> u64 {
        self.told.retransmitted - self.retransmitted
    }

    /// Forgets the connection: the receiver resets it, so that nothing of it is left on the path.
    /// Where the sender is reset, too, it sends nothing more, not even what was lost.
    pub(super) fn end(self, resets: bool) -> io::Result<()> {
        let at_once = linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&self.receiver, sockopt::Linger, &at_once)?;
        if let Some(sender) = self.sender.filter(|_| resets) {
            setsockopt(&sender, sockopt::Linger, &at_once)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::{Duration, Instant};

    fn until(mut done: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !done() {
            assert!(Instant::now() < end, "it takes too long");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_connection_takes_one_file_after_another() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let mut connection = Connection::open(0, to, 0, Some(300_000), Some(20_000)).unwrap();
        let (sender, from) = listener.accept().unwrap();
        assert_eq!(from.port(), connection.port);
        sender.set_nonblocking(true).unwrap();
        connection.accepted(sender);
        let mut piece = vec![0; PIECE];
        for (number, bytes) in [(1, 5_u64), (2, 100)] {
            until(|| {
                connection.push(&piece.clone(), false).unwrap();
                connection.take(&mut piece).unwrap()
            });
            connection.go_on(number, bytes);
        }
        let told = connection.ask();
        assert_eq!((told.received, told.retransmitted), (300_005, 0));
        assert!(told.rtt_samples > 0 && told.rtt_sum_ns > 0);
        assert_eq!((connection.bytes, connection.retransmitted()), (Some(100), 0));
        connection.end(true).unwrap();
    }

    /// A connection with two timeouts of SYN-ACK begins with them in its `TCP_INFO`.
    #[test]
    fn linux_s_tcp_create_openreq_child_s_timeouts_of_syn_ack_are_not_those_of_data() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port());
        let mut connection = Connection::open(0, to, 0, None, None).unwrap();
        connection.of_handshake = [2, 1];
        connection.hear(&TcpInfo::with_timeouts(2, 1));
        assert_eq!((connection.told.timeouts, connection.told.timeout_sequences), (0, 0));
        connection.hear(&TcpInfo::with_timeouts(5, 2));
        assert_eq!((connection.told.timeouts, connection.told.timeout_sequences), (3, 1));
    }
}
