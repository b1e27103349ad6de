//! Kernel counters of a connection, and of all connections of a namespace.

use nix::libc;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd};

/// Limits the advertised window of a receiver by `TCP_WINDOW_CLAMP`, in bytes. `SO_RCVBUF` would
/// limit the memory, and packets use more memory than their data.
pub(super) fn limit_receive_window(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as `bytes` has.
    #[allow(unsafe_code)]
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            (&raw const bytes).cast(),
            size_of_val(&bytes) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Bytes of `struct tcp_info` (linux/tcp.h) up to the last field used here.
const TCP_INFO_BYTES: usize = 248;

/// `TCP_INFO` of a connection, and its length in this kernel. Missing fields are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TcpInfo([u8; TCP_INFO_BYTES], usize);

impl TcpInfo {
    pub(super) fn read_from_socket(socket: impl AsFd) -> io::Result<Self> {
        let mut bytes = [0_u8; TCP_INFO_BYTES];
        let mut length = TCP_INFO_BYTES as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to where `bytes` are.
        #[allow(unsafe_code)]
        let result = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let known = length as usize;
        if result == 0 { Ok(Self(bytes, known)) } else { Err(io::Error::last_os_error()) }
    }

    fn u32_at(&self, start: usize) -> u32 {
        u32::from_ne_bytes([self.0[start], self.0[start + 1], self.0[start + 2], self.0[start + 3]])
    }

    fn u64_at(&self, start: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[start..start + 8]);
        u64::from_ne_bytes(bytes)
    }

    /// Number of retransmissions.
    pub(super) fn retransmission_count(&self) -> u32 {
        self.u32_at(100)
    }

    /// Time with data to send, and the part of that time in which the receive window or the send
    /// buffer was the limit, µs.
    pub(super) fn busy_and_limited_us(&self) -> (u64, u64) {
        (self.u64_at(168), self.u64_at(176) + self.u64_at(184))
    }

    /// Whether the kernel counts timeouts per connection (since Linux 6.7).
    pub(super) fn has_timeout_counters(&self) -> bool {
        self.1 >= 244
    }

    /// Number of timeouts, and of timeout sequences. Timeouts of a SYN-ACK count as one sequence.
    pub(super) fn timeout_counts(&self) -> [u64; 2] {
        [240, 242].map(|start| u16::from_ne_bytes([self.0[start], self.0[start + 1]]).into())
    }
}

/// TCP counters of a namespace.
#[derive(Debug)]
pub(super) struct NetstatCounters(File);

/// Entries into fast recovery with and without SACK, and expired retransmission timers including
/// timers of SYN-ACKs.
const COUNTER_NAMES: [&str; 3] = ["TCPSackRecovery", "TCPRenoRecovery", "TCPTimeouts"];

impl NetstatCounters {
    /// Opens the counters of the calling thread's namespace; any thread can read them.
    pub(super) fn open_netstat() -> io::Result<Self> {
        File::open("/proc/thread-self/net/netstat").map(Self)
    }

    /// Returns the number of entries into fast recovery, and of timeouts.
    pub(super) fn read_recoveries_and_timeouts(&mut self) -> io::Result<(u64, u64)> {
        let mut text = String::new();
        self.0.rewind()?;
        self.0.read_to_string(&mut text)?;
        let [sack, reno, timeouts] = COUNTER_NAMES.map(|name| counter_value(&text, name));
        Ok((sack + reno, timeouts))
    }
}

/// Returns the value of a counter. The file has a line of names followed by a line of values.
fn counter_value(text: &str, name: &str) -> u64 {
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("TcpExt:")).collect();
    let [names, values] = lines[..] else { return 0 };
    let mut pairs = names.split(' ').zip(values.split(' '));
    pairs.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
impl TcpInfo {
    /// Creates the information of a connection with a number of timeouts and timeout sequences.
    pub(super) fn with_timeout_counts(timeouts: u16, sequences: u16) -> Self {
        let mut bytes = [0; TCP_INFO_BYTES];
        bytes[240..242].copy_from_slice(&timeouts.to_ne_bytes());
        bytes[242..244].copy_from_slice(&sequences.to_ne_bytes());
        Self(bytes, TCP_INFO_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn tcp_info_of_an_idle_connection_has_no_losses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = TcpInfo::read_from_socket(&client).unwrap();
        assert_eq!((info.retransmission_count(), info.timeout_counts()), (0, [0, 0]));
        assert!(info.busy_and_limited_us().0 >= info.busy_and_limited_us().1);
    }

    #[test]
    fn limit_window_limits_advertised_window() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (sender, _) = listener.accept().unwrap();
        limit_receive_window(&client, 5000).unwrap();
        sender.set_nonblocking(true).unwrap();
        while (&sender).write(&[0; 4096]).is_ok() {}
        // The space that was advertised before the limit is used up first. Then at most the limit
        // is advertised.
        let window = || TcpInfo::read_from_socket(&sender).unwrap().u32_at(228);
        let mut buffer = [0; 1 << 16];
        while window() > 5000 {
            assert!((&client).read(&mut buffer).unwrap() > 0);
        }
    }

    #[test]
    fn short_tcp_info_has_no_timeout_counters() {
        let TcpInfo(bytes, _) = TcpInfo::with_timeout_counts(5, 2);
        let [new, old] = [244, 240].map(|length| TcpInfo(bytes, length));
        assert_eq!((new.timeout_counts(), new.has_timeout_counters()), ([5, 2], true));
        assert!(!old.has_timeout_counters());
    }

    #[test]
    fn value_finds_counters_by_name() {
        let text = "TcpExt: A TCPTimeouts B\nTcpExt: 1 22 3\nIpExt: TCPTimeouts\nIpExt: 9\n";
        assert_eq!((counter_value(text, "TCPTimeouts"), counter_value(text, "C")), (22, 0));
        assert!(NetstatCounters::open_netstat().unwrap().read_recoveries_and_timeouts().is_ok());
    }
}
