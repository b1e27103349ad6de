//! The send buffer of a socket, and what its options change in a sender: see `socket_state`.

use super::cc::path_model::MAX_BURST_BYTES;
use super::offload::max_packets_per_buffer;
use super::sender::Sender;
use super::socket_state::{OffloadBuffer, SendBufferSize, SocketOptions, SocketState, WriteFlags};
use super::stack::Stack;
use super::tick_clock::TimerPurpose;
use super::transmit::MIN_BUFFERED_PACKETS;
use crate::tcp_event::TcpProbe;
use tcpcast_link::time::Nanos;

/// Memory of a buffer of segmentation offload beside its data: Linux's `sk_buff` with a head of
/// 1 KiB.
const BUFFER_OVERHEAD: u64 = 1280;
/// Memory of a packet beside its data for which Linux sizes the send buffer: headers and
/// `skb_shared_info` before rounding to a power of two, and `sk_buff` after it.
const PACKET_OVERHEAD: (u64, u64) = (640, 256);
/// Windows up to this size (`TCP_MSS_DEFAULT`) are not halved to size a buffer.
const MIN_HALVED_WINDOW: u64 = 536;

/// Largest amount of data in a send buffer of `memory` bytes. Linux's `tcp_sendmsg_locked` checks
/// for space once per buffer of segmentation offload, so the limit can be exceeded by one.
pub(super) fn data_of_send_buffer(memory: u64, mss: u32) -> u64 {
    let mss = u64::from(mss);
    let buffer = (MAX_BURST_BYTES / mss).max(1) * mss;
    memory.div_ceil(buffer + BUFFER_OVERHEAD) * buffer
}

impl Sender {
    /// Enables the state of sockets, and rate samples for any congestion control that may be
    /// selected later.
    pub(super) fn set_socket_state(&mut self, socket: Option<Box<SocketState>>) {
        self.socket = socket;
        self.delivery.set_time_recording(true);
    }

    pub(super) fn set_socket_options(&mut self, options: SocketOptions) {
        if let Some(socket) = &mut self.socket {
            socket.set_options(options);
        }
    }

    /// Bytes of the next new packet, at most a full packet of one record.
    #[inline(always)]
    pub(super) fn next_new_len(&self, stack: &Stack) -> u32 {
        let len = self.unsent_bytes().min(u64::from(stack.mss));
        match &self.socket {
            Some(socket) => self.len_within_record(len, socket),
            None => len as u32,
        }
    }

    #[inline(never)]
    fn len_within_record(&self, len: u64, socket: &SocketState) -> u32 {
        let next = self.flight.end_byte();
        socket.record_end_after(next).map_or(len, |end| len.min(end - next)) as u32
    }

    /// Whether a packet of `len` bytes, less than a full one, waits for an acknowledgement (Nagle)
    /// or the application.
    pub(super) fn must_small_packet_wait(&self, len: u32, stack: &Stack) -> bool {
        if let Some(socket) = &self.socket {
            let end = self.flight.end_byte() + u64::from(len);
            // Only the last packet can become larger.
            if end < self.written || end <= socket.pushed {
                return false;
            }
            if socket.options.corked || socket.expects_more {
                return true;
            }
        }
        !stack.no_delay && self.small_end > self.una && self.flight.packets_out() > 0
    }

    /// `TCP_NODELAY`: written data does not wait, even if the socket is corked.
    pub(super) fn push_written_data(&mut self) {
        if let Some(socket) = &mut self.socket {
            socket.pushed = self.written;
        }
    }

    /// An acknowledgement or a timer ends the waiting of [`WriteFlags::more`].
    pub(super) fn end_waiting_for_more(&mut self) {
        if let Some(socket) = &mut self.socket {
            socket.expects_more = false;
        }
    }

    /// Records the receive window of an acknowledgement, which may also free space.
    pub(super) fn note_ack_for_socket(&mut self, window: u64) {
        self.end_waiting_for_more();
        if let Some(socket) = &mut self.socket {
            socket.max_window = socket.max_window.max(window);
            socket.space_check_due = true;
        }
    }

    /// The application of a socket writes up to `bytes`; returns how many the send buffer accepts.
    pub(super) fn write_to_socket(
        &mut self,
        now: Nanos,
        bytes: u64,
        flags: WriteFlags,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) -> u64 {
        let accepted = self.buffer_written_data(bytes, flags.ends_record, stack);
        if accepted > 0 {
            self.write_bytes(now, accepted, stack, probe);
        }
        if let Some(socket) = &mut self.socket {
            socket.expects_more = flags.more;
        }
        accepted
    }

    /// Puts up to `bytes` into the send buffer; returns the number that fit. As in Linux's
    /// `tcp_sendmsg_locked`, the space is checked before each buffer of segmentation offload, and a
    /// full buffer is sent at once if the window allows it.
    fn buffer_written_data(&mut self, bytes: u64, ends_record: bool, stack: &Stack) -> u64 {
        let (una, mss) = (self.una, u64::from(stack.mss));
        let mut next = self.flight.end_byte();
        let window = u64::from(self.window.cwnd.saturating_sub(self.flight.in_flight())) * mss;
        let sendable = window.min(self.allowed.saturating_sub(next)) / mss * mss;
        let sendable = next + sendable;
        let Some(socket) = &mut self.socket else { return bytes };
        socket.buffers.retain(|buffer| buffer.end > una);
        if (socket.size, socket.options.notsent_lowat) == (u64::MAX, u64::MAX) {
            // Nothing limits the number of buffers, so only records are stored.
            let (start, end) = (self.written, self.written + bytes);
            let record =
                (ends_record && bytes > 0).then_some(OffloadBuffer { start, end, ends_record });
            socket.buffers.extend(record);
            return bytes;
        }
        let cutoff = match socket.max_window {
            window if window > MIN_HALVED_WINDOW => window / 2,
            window => window,
        };
        let packets = u64::from(max_packets_per_buffer(stack)).min(cutoff / mss).max(1);
        let (full, wanted) = (packets * mss, self.written + bytes);
        let mut end = self.written;
        while end < wanted {
            let tail = socket.buffers.back_mut().filter(|tail| tail.end > next);
            let room = tail.filter(|tail| !tail.ends_record).map_or(0, |tail| {
                tail.start = tail.start.max(next);
                full.saturating_sub(tail.end - tail.start)
            });
            if room == 0 {
                let memory = end - una + BUFFER_OVERHEAD * socket.buffers.len() as u64;
                if memory >= socket.size || end - next >= socket.options.notsent_lowat {
                    socket.waits_for_space = true;
                    break;
                }
                let ends_record = false;
                socket.buffers.push_back(OffloadBuffer { start: end, end, ends_record });
            }
            let Some(tail) = socket.buffers.back_mut() else { break };
            end = wanted.min(end + if room == 0 { full } else { room });
            tail.end = end;
            if end - tail.start == full && tail.start == next && sendable > next {
                next = sendable.min(end);
                if next < end {
                    tail.end = next;
                    let ends_record = false;
                    socket.buffers.push_back(OffloadBuffer { start: next, end, ends_record });
                }
            }
        }
        if let Some(tail) = socket.buffers.back_mut().filter(|tail| tail.end == wanted) {
            tail.ends_record |= ends_record && bytes > 0;
        }
        end - self.written
    }

    /// Whether the application may write: Linux's `__sk_stream_is_writeable`.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        let Some(socket) = &self.socket else { return true };
        let buffers = socket.buffers.iter().filter(|buffer| buffer.end > self.una).count();
        let memory = self.written - self.una + BUFFER_OVERHEAD * buffers as u64;
        socket.size.saturating_sub(memory) >= memory / 2
            && self.unsent_bytes().saturating_mul(2) < socket.options.notsent_lowat
    }

    /// Whether the application waits for space in the send buffer.
    pub(super) fn waits_for_space(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.waits_for_space)
    }

    /// Number of packets, the last one possibly short, up to the end of the buffer that contains
    /// the next new byte.
    pub(super) fn packets_to_buffer_end(&self, stack: &Stack) -> u32 {
        let next = self.flight.end_byte();
        let buffers = self.socket.as_ref().map(|socket| &socket.buffers);
        let buffer = buffers.and_then(|buffers| buffers.iter().find(|b| b.end > next));
        match buffer {
            Some(buffer) => (buffer.end - next).div_ceil(u64::from(stack.mss)) as u32,
            None => {
                let packets = max_packets_per_buffer(stack);
                packets - self.flight.next_number() % packets
            }
        }
    }

    /// Time since which the receiver has allowed no progress, if the timer expired: Linux's
    /// `retrans_stamp` and `icsk_probes_tstamp`.
    pub(super) fn stalled_since(&self) -> Option<Nanos> {
        match self.timer {
            _ if self.backoff == 0 => None,
            TimerPurpose::Persist(_) => self.socket.as_ref().map(|socket| socket.probing_since),
            _ => self.retransmitted_at,
        }
    }

    /// Notes that the application waits for space.
    pub(super) fn wait_for_space(&mut self) {
        if let Some(socket) = &mut self.socket {
            socket.waits_for_space = true;
        }
    }

    /// Linux's `tcp_sndbuf_expand`.
    pub(super) fn grow_send_buffer(&mut self, stack: &Stack) {
        let packets = self.window.cwnd.max(self.reordering + 1).max(MIN_BUFFERED_PACKETS);
        let packets = u64::from(self.buffered_windows() * packets);
        let Some(socket) = &mut self.socket else { return };
        if let SendBufferSize::Growing { max, .. } = socket.options.send_buffer {
            let (before, after) = PACKET_OVERHEAD;
            let segment = u64::from(stack.full_segment_bytes()) + before;
            let needed = packets * (segment.next_power_of_two() + after);
            socket.size = socket.size.max(needed.min(max));
        }
    }

    /// Linux's `tcp_check_space`, after an acknowledgement and the packets that it allowed: the
    /// send buffer grows unless the congestion window is full. Returns whether the application no
    /// longer waits for space.
    pub(super) fn check_send_space(&mut self, now: Nanos, stack: &Stack) -> bool {
        let Some(socket) = &mut self.socket else { return false };
        if !std::mem::take(&mut socket.space_check_due) || !socket.waits_for_space {
            return false;
        }
        if self.flight.in_flight() < self.window.cwnd {
            self.grow_send_buffer(stack);
        }
        let writable = self.is_writable();
        if let Some(socket) = &mut self.socket {
            socket.waits_for_space = !writable;
            if writable {
                socket.activity_durations.end_limit_by_buffer(now);
            }
        }
        writable
    }
}
