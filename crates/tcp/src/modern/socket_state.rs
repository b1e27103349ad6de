//! State of a sender that only sockets have: options of the application, the size of the send
//! buffer, ends of records, and activity times. Simulated transfers do not have it.

use std::collections::VecDeque;

use super::activity_durations::ActivityDurations;
use tcpcast_link::time::Nanos;

/// Size of the send buffer, in bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendBufferSize {
    /// Writes never block.
    Unlimited,
    /// Set by the application: twice the value of `SO_SNDBUF`.
    Fixed(u64),
    /// Grows with the congestion window: second and third value of `tcp_wmem`.
    Growing {
        /// Size at the start of the connection.
        initial: u64,
        /// Maximum size.
        max: u64,
    },
}

/// Options of a socket that the application sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Size of the send buffer.
    pub send_buffer: SendBufferSize,
    /// The application may write while fewer bytes than this are not sent: `TCP_NOTSENT_LOWAT`.
    pub notsent_lowat: u64,
    /// Packets that are not full wait: `TCP_CORK`.
    pub corked: bool,
    /// Time without progress after which the connection is given up, 0 if unlimited:
    /// `TCP_USER_TIMEOUT`, RFC 5482.
    pub user_timeout: Nanos,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            send_buffer: SendBufferSize::Unlimited,
            notsent_lowat: u64::MAX,
            corked: false,
            user_timeout: 0,
        }
    }
}

/// Flags of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteFlags {
    /// The application is about to write more, so a packet that is not full waits until the next
    /// event: `MSG_MORE`.
    pub more: bool,
    /// The written data ends a record, and no packet has data of two records: `MSG_EOR`.
    pub ends_record: bool,
}

/// A buffer of segmentation offload, `sk_buff` in Linux.
#[derive(Clone, Copy, Debug)]
pub(super) struct OffloadBuffer {
    pub start: u64,
    pub end: u64,
    pub ends_record: bool,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct SocketState {
    pub options: SocketOptions,
    pub activity_durations: ActivityDurations,
    /// Whether the last write had [`WriteFlags::more`], and no other event occurred since.
    pub expects_more: bool,
    /// Packets that end at or before this byte do not wait: `TCP_NODELAY` was set after they were
    /// written.
    pub pushed: u64,
    /// Whether the application waits for space in the send buffer: `SOCK_NOSPACE`.
    pub waits_for_space: bool,
    /// Whether an acknowledgement may have freed space.
    pub space_check_due: bool,
    /// Time of the first probe of a closed window.
    pub probing_since: Nanos,
    /// Current size of the send buffer.
    pub size: u64,
    pub buffers: VecDeque<OffloadBuffer>,
    /// Largest receive window so far.
    pub max_window: u64,
}

impl SocketState {
    pub fn new() -> Self {
        Self { size: u64::MAX, ..Self::default() }
    }

    /// Changes the options; the send buffer gets a new size only if its option changes.
    pub fn set_options(&mut self, options: SocketOptions) {
        if options.send_buffer != self.options.send_buffer {
            self.size = match options.send_buffer {
                SendBufferSize::Unlimited => u64::MAX,
                SendBufferSize::Fixed(size) | SendBufferSize::Growing { initial: size, .. } => size,
            };
        }
        self.options = options;
    }

    /// End of the first record after byte `next`.
    pub fn record_end_after(&self, next: u64) -> Option<u64> {
        let record = |buffer: &&OffloadBuffer| buffer.ends_record && buffer.end > next;
        self.buffers.iter().find(record).map(|buffer| buffer.end)
    }
}
