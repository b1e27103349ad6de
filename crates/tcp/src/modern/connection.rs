//! Both ends of a socket: handshake, data in both directions, end of the stream.
//!
//! ```text
//!  Closed --connect--> SynSent --SYN-ACK--> Established --close--> FinWait1 --ack--> FinWait2
//!    |                                        ^   |                   | FIN             | FIN
//!    +--listen--> Listen --SYN--> SynReceived-+   | FIN               v                 v
//!                                 (ack of SYN)    |                Closing --ack--> TimeWait
//!                                                 v
//!                                             CloseWait --close--> LastAck --ack--> Closed
//! ```
//!
//! With TCP Fast Open, the server sends data between its SYN-ACK and the acknowledgement:
//!
//! ```text
//!  Listen --SYN with data--> SynReceived --SYN-ACK sent--> FastOpen --ack of SYN--> Established
//!                                 ^--SYN, timer of SYN-ACK----+
//! ```

use super::accurate_ecn::{AnsweredFeedback, ReceivedMarks, ReportedMarks, ace_of_handshake};
use super::handshake::SynAttempts;
use super::receiver::{ArrivingData, Receiver};
use super::segment::{
    ArrivingAck, CumulativeAck, OutgoingAck, PacketToSend, SackBlocks, SendReason, Timestamps,
    timestamp_at,
};
use super::sender::Sender;
use super::socket_state::{SocketOptions, SocketState, WriteFlags};
use super::stack::Stack;
use super::tick_clock::{TimerPurpose, TimerSpan};
use super::transmit_fast_path::FullPacketRun;
use super::wire_segment::{Segment, SegmentFlags, SegmentOptions};
use crate::packet_kind::TIMESTAMP_BYTES;
use crate::tcp_event::TcpProbe;
use tcpcast_link::Ecn;
use tcpcast_link::time::{NEVER, Nanos};

/// States of RFC 9293, section 3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum ConnectionState {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    /// SYN-RECEIVED of a server that may send data, because the SYN had a cookie: RFC 7413, section
    /// 4.2.2. If a SYN-ACK is due, the state is [`ConnectionState::SynReceived`] until it is sent.
    FastOpen,
    Established,
    FinWait1,
    FinWait2,
    Closing,
    TimeWait,
    CloseWait,
    LastAck,
}

/// Window field of a segment on the wire.
const MAX_WINDOW_FIELD: u64 = 65_535;

/// Sequence number of the first byte in each direction.
const FIRST_BYTE: u64 = 1;

/// Window scales negotiated by the handshake.
#[derive(Clone, Copy, Debug, Default)]
struct NegotiatedScales {
    our_scale: u8,
    their_scale: u8,
}

/// State of the handshake.
#[derive(Clone, Copy, Debug)]
struct HandshakeState {
    attempts: SynAttempts,
    due: bool,
    fast_open: FastOpenState,
}

/// Use of TCP Fast Open in a connection: RFC 7413.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FastOpenState {
    Unused,
    /// The SYN of this end carried data.
    Sent {
        at: Nanos,
        len: u32,
    },
    /// This end has accepted the data of a SYN.
    Accepted,
}

/// Space in a SYN that Linux leaves to options, whatever their length: `MAX_TCP_OPTION_SPACE`.
const SYN_OPTION_SPACE: u32 = 40;

/// Error that a call of the application returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketError {
    /// The sending direction is closed: `EPIPE`.
    BrokenPipe,
    /// The peer has reset the connection: `ECONNRESET`.
    ConnectionReset,
    /// The peer refuses the connection: `ECONNREFUSED`.
    ConnectionRefused,
    /// The peer does not answer: `ETIMEDOUT`.
    TimedOut,
}

/// Events for which an application may wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakeups {
    /// Data arrived, or the state changed.
    pub readable: bool,
    /// Space in the send buffer became free, or the state changed.
    pub writable: bool,
}

impl Wakeups {
    const STATE_CHANGE: Self = Self { readable: true, writable: true };
}

/// Connection of a socket. The connection offers the options of the stack passed to `new`;
/// [`Connection::stack`] contains the negotiated rules.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    stack: Stack,
    state: ConnectionState,
    /// The application closes the sending direction when nothing more can be sent now.
    closing: bool,
    /// See [`Segment::messages`].
    pub(super) messages: u8,
    max_window_field: u64,
    handshake: HandshakeState,
    negotiated: NegotiatedScales,
    /// Local maximum segment size, and local window scale if both ends use scaling.
    advertised_mss: u32,
    window_scale: u8,
    seed: u64,
    /// Timestamp of the peer's SYN.
    peer_stamp: Option<u32>,
    ecn_offered: bool,
    /// ECN codepoint of the peer's SYN or SYN-ACK.
    peer_codepoint: Ecn,
    /// Pending reset.
    reset: Option<Segment>,
    options: SocketOptions,
    /// Error that the next call returns.
    error: Option<SocketError>,
    /// Whether the application has shut down receiving.
    receive_closed: bool,
    /// Arrival of the last data, or of the handshake.
    last_data_received: Nanos,
    wakeups: Wakeups,
}

impl Connection {
    /// Creates a closed connection that offers `advertised_mss` and `window_scale`; BBR's random
    /// choices depend on `seed`.
    #[must_use]
    pub fn new(stack: Stack, advertised_mss: u32, window_scale: u8, seed: u64) -> Self {
        let mut connection = Self {
            advertised_mss,
            window_scale,
            max_window_field: MAX_WINDOW_FIELD,
            ..Self::of_simulation(0, &stack, seed)
        };
        connection.sender.set_socket_state(Some(Box::new(SocketState::new())));
        connection
    }

    /// Creates a closed connection of a simulated application: writes block only if the stack has
    /// options of a socket, and windows are neither limited nor rounded by their field.
    pub(super) fn of_simulation(now: Nanos, stack: &Stack, seed: u64) -> Self {
        let mut connection = Self::without_socket(now, stack, seed);
        connection.add_socket();
        connection
    }

    #[inline(always)]
    fn without_socket(now: Nanos, stack: &Stack, seed: u64) -> Self {
        Self {
            sender: Sender::new(now, FIRST_BYTE, seed, stack),
            receiver: Receiver::new(FIRST_BYTE, stack),
            stack: *stack,
            state: ConnectionState::Closed,
            closing: false,
            messages: 0,
            max_window_field: u64::MAX,
            handshake: HandshakeState {
                attempts: SynAttempts::new(NEVER, stack),
                due: false,
                fast_open: FastOpenState::Unused,
            },
            negotiated: NegotiatedScales::default(),
            advertised_mss: stack.full_segment_bytes(),
            window_scale: 0,
            seed,
            peer_stamp: None,
            ecn_offered: false,
            peer_codepoint: Ecn::NotEct,
            reset: None,
            options: SocketOptions::default(),
            error: None,
            receive_closed: false,
            last_data_received: 0,
            wakeups: Wakeups::default(),
        }
    }

    /// Adds the state of the socket, if the stack has its options.
    #[inline]
    fn add_socket(&mut self) {
        if let Some(options) = self.stack.socket {
            self.sender.set_socket_state(Some(Box::new(SocketState::new())));
            self.set_options(options);
        }
    }

    /// Replaces a simulated connection by a closed one in the same memory.
    pub(super) fn restart(&mut self, now: Nanos, stack: &Stack, seed: u64) {
        let memory = self.sender.flight.take_slot_memory();
        *self = Self::without_socket(now, stack, seed);
        self.sender.flight.reuse_slot_memory(memory);
        self.add_socket();
    }

    /// Opens the connection without a handshake, as if one had measured `rtt` and each end had
    /// advertised the buffer of its own stack.
    pub(super) fn open(&mut self, now: Nanos, rtt: Nanos) {
        self.state = ConnectionState::Established;
        self.messages = 1;
        self.sender.on_established(
            now,
            Some(rtt),
            self.stack.receiving.initial_window(),
            &self.stack,
        );
        self.sender.note_ack_for_socket(self.stack.receiving.initial_window());
        self.sender.grow_send_buffer(&self.stack);
        self.sender.init_window_update_seq(FIRST_BYTE);
        self.receiver.on_established(Some(rtt), None);
        self.start_accurate_ecn(ReceivedMarks::new(None), ReportedMarks::new(Some(0b101)));
    }

    /// Starts accurate ECN if it was negotiated.
    fn start_accurate_ecn(&mut self, received: ReceivedMarks, reported: ReportedMarks) {
        if self.stack.accurate_ecn {
            self.receiver.count_marks(received);
            self.sender.marks = Some(Box::new(reported));
        }
    }

    /// The application waits for the peer to connect.
    pub fn listen(&mut self) {
        self.state = ConnectionState::Listen;
    }

    /// The application opens the connection: a SYN is due.
    pub fn connect(&mut self, now: Nanos) {
        self.state = ConnectionState::SynSent;
        self.handshake.due = true;
        self.handshake.attempts.deadline = now;
    }

    /// Like [`Connection::connect`], but the application first writes `bytes`, which the SYN may
    /// carry: `MSG_FASTOPEN`. Returns how many the send buffer accepts.
    pub fn connect_with_data(&mut self, now: Nanos, bytes: u64, probe: &mut impl TcpProbe) -> u64 {
        self.connect(now);
        self.sender.write_to_socket(now, bytes, WriteFlags::default(), &self.stack, probe)
    }

    /// State of the connection.
    #[must_use]
    pub fn state(&self) -> ConnectionState {
        self.state
    }

    /// Negotiated rules.
    #[must_use]
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Changes the options of the socket.
    pub fn set_options(&mut self, options: SocketOptions) {
        self.options = options;
        self.sender.set_socket_options(options);
    }

    /// Changes rules, like socket options.
    pub fn change_stack_options(&mut self, change: impl FnOnce(&mut Stack)) {
        let control = self.stack.control;
        change(&mut self.stack);
        if self.stack.control != control {
            let start = self.sender.next_byte();
            self.sender.control = self.stack.new_control(self.sender.last_sent, start, self.seed);
            self.sender.pacer.set_rate(self.sender.control.pacing_rate());
        }
    }

    /// Sets whether small packets are not delayed: `TCP_NODELAY`. As in Linux, this also sends the
    /// data that a corked socket holds.
    pub fn set_no_delay(&mut self, no_delay: bool) {
        self.stack.no_delay = no_delay;
        if no_delay {
            self.sender.push_written_data();
        }
    }

    /// Sending end.
    #[inline(always)]
    #[must_use]
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Receiving end.
    #[must_use]
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// The application writes all `bytes`: only if the connection is not of a socket.
    #[inline(always)]
    pub(super) fn write_unlimited(&mut self, now: Nanos, bytes: u64, probe: &mut impl TcpProbe) {
        self.sender.write_bytes(now, bytes, &self.stack, probe);
    }

    /// The application of a simulated connection writes up to `bytes`; returns how many the send
    /// buffer accepts.
    pub(super) fn write_to_buffer(
        &mut self,
        now: Nanos,
        bytes: u64,
        probe: &mut impl TcpProbe,
    ) -> u64 {
        self.sender.write_to_socket(now, bytes, WriteFlags::default(), &self.stack, probe)
    }

    /// The application reads up to `max` bytes of those that have arrived in order; returns how
    /// many.
    pub(super) fn read_available(&mut self, now: Nanos, max: u64) -> u64 {
        let bytes = self.receiver.readable_bytes().min(max);
        if bytes > 0 {
            self.receiver.on_read(now, bytes, &self.stack);
        }
        bytes
    }

    /// Whether a new packet is short although more data follows, because the receiver's window ends.
    pub(super) fn splits_packet(&self, sent: &PacketToSend) -> bool {
        sent.sending == SendReason::New
            && sent.len > 0
            && sent.len < self.stack.mss
            && self.sender.unsent_bytes() > 0
    }

    /// The application writes up to `bytes`; returns how many the send buffer accepts.
    pub fn write(
        &mut self,
        now: Nanos,
        bytes: u64,
        flags: WriteFlags,
        probe: &mut impl TcpProbe,
    ) -> Result<u64, SocketError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        match self.state {
            ConnectionState::SynSent | ConnectionState::SynReceived => return Ok(0),
            ConnectionState::FastOpen
            | ConnectionState::Established
            | ConnectionState::CloseWait => (),
            _ => return Err(SocketError::BrokenPipe),
        }
        Ok(self.sender.write_to_socket(now, bytes, flags, &self.stack, probe))
    }

    /// The application reads up to `max` bytes; returns how many, 0 at the end of the stream, and
    /// [`None`] if it must wait.
    pub fn read(&mut self, now: Nanos, max: u64) -> Result<Option<u64>, SocketError> {
        let bytes = self.read_available(now, max);
        if bytes > 0 {
            return Ok(Some(bytes));
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        Ok(self.is_read_at_end().then_some(0))
    }

    fn is_read_at_end(&self) -> bool {
        self.receive_closed
            || self.receiver.is_stream_complete()
            || self.state == ConnectionState::Closed
    }

    /// Whether a read returns at once.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.receiver.readable_bytes() > 0 || self.is_read_at_end() || self.error.is_some()
    }

    /// Whether a write returns at once. If not, the application waits for space.
    pub fn poll_writable(&mut self) -> bool {
        let writable = match self.state {
            ConnectionState::SynSent | ConnectionState::SynReceived => false,
            ConnectionState::FastOpen
            | ConnectionState::Established
            | ConnectionState::CloseWait => self.sender.is_writable(),
            _ => true,
        };
        if !writable {
            self.sender.wait_for_space();
        }
        writable
    }

    /// Whether a write has found the send buffer full, and no wakeup occurred since.
    #[must_use]
    pub fn waits_for_space(&self) -> bool {
        let open = matches!(self.state, ConnectionState::Established | ConnectionState::CloseWait);
        open && self.sender.waits_for_space()
    }

    /// Error that the next call returns.
    #[must_use]
    pub fn error(&self) -> Option<SocketError> {
        self.error
    }

    /// Returns and clears the error: `SO_ERROR`.
    pub fn take_error(&mut self) -> Option<SocketError> {
        self.error.take()
    }

    /// Changes the maximum segment size that the next SYN offers: `TCP_MAXSEG`.
    pub fn set_advertised_mss(&mut self, mss: u32) {
        self.advertised_mss = mss;
    }

    /// Arrival of the last data, or of the handshake.
    #[must_use]
    pub fn last_data_received(&self) -> Nanos {
        self.last_data_received
    }

    /// Maximum segment size of the peer's SYN that this end offers.
    #[must_use]
    pub fn advertised_mss(&self) -> u32 {
        self.advertised_mss
    }

    /// Events since the last call.
    pub fn take_wakeups(&mut self) -> Wakeups {
        std::mem::take(&mut self.wakeups)
    }

    /// The application does not receive any more. As in Linux, data is still accepted until the
    /// sending direction is closed as well.
    pub fn shut_down_receiving(&mut self) {
        self.receive_closed = true;
    }

    /// The application closes the sending direction.
    pub fn shut_down_sending(&mut self) {
        let accepts_data = self.handshake.fast_open == FastOpenState::Accepted;
        self.state = match self.state {
            // The SYN-ACK is not acknowledged yet; FIN may be sent before that.
            state @ (ConnectionState::SynReceived | ConnectionState::FastOpen) if accepts_data => {
                state
            }
            ConnectionState::Established | ConnectionState::SynReceived => {
                ConnectionState::FinWait1
            }
            ConnectionState::CloseWait => ConnectionState::LastAck,
            ConnectionState::Listen | ConnectionState::SynSent => ConnectionState::Closed,
            other => return self.state = other,
        };
        self.sender.close_stream();
    }

    /// The application closes the sending direction once nothing more can be sent now. As in Linux,
    /// FIN is then on the last packet if this packet has not been sent yet; otherwise it is separate.
    pub(super) fn close_after_burst(&mut self) {
        self.closing = true;
    }

    /// The application has exited: no timer runs, and only packets in flight are still acknowledged.
    pub(super) fn abandon(&mut self) {
        self.sender.abandon_connection();
        self.handshake.attempts.deadline = NEVER;
        self.handshake.due = false;
    }

    /// The application closes the socket. If unread data is discarded, a reset is sent: RFC 1122,
    /// section 4.2.2.13.
    pub fn close(&mut self, now: Nanos) {
        self.receive_closed = true;
        if self.receiver.readable_bytes() == 0 {
            self.shut_down_sending();
            return;
        }
        let mut reset = self.acknowledge(now);
        reset.flags.rst = true;
        self.reset = Some(reset);
        self.state = ConnectionState::Closed;
    }

    /// Time at which [`Connection::on_deadline`] must be called, [`NEVER`] if no timer runs.
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        match self.state {
            ConnectionState::Closed | ConnectionState::Listen => NEVER,
            ConnectionState::SynSent | ConnectionState::SynReceived => {
                self.handshake.attempts.deadline
            }
            ConnectionState::FastOpen => {
                self.handshake.attempts.deadline.min(self.sender.next_paced_time())
            }
            _ => self
                .sender
                .deadline()
                .min(self.sender.next_paced_time())
                .min(self.receiver.deadline())
                .min(self.user_timeout()),
        }
    }

    /// Expiry of the timer of the sending end, or of the handshake; [`NEVER`] if it is off. As in
    /// Linux's `tcp_retransmit_timer`, no data is sent again before the SYN-ACK is acknowledged.
    #[inline(always)]
    #[must_use]
    pub fn sender_deadline(&self) -> Nanos {
        if self.is_unconfirmed() {
            self.handshake.attempts.deadline
        } else {
            self.sender.deadline()
        }
    }

    /// Lower bound of the deadline, which is cheaper to compute.
    #[inline(always)]
    #[must_use]
    pub fn sender_deadline_lower_bound(&self) -> Nanos {
        if self.is_unconfirmed() {
            self.handshake.attempts.deadline
        } else {
            self.sender.deadline_lower_bound()
        }
    }

    /// Whether no data may be sent yet.
    #[inline(always)]
    fn is_opening(&self) -> bool {
        self.state <= ConnectionState::SynReceived
    }

    /// Whether the handshake is not complete.
    #[inline(always)]
    fn is_unconfirmed(&self) -> bool {
        self.state <= ConnectionState::FastOpen
    }

    /// Time at which the connection is given up: RFC 5482.
    fn user_timeout(&self) -> Nanos {
        match (self.options.user_timeout, self.sender.stalled_since()) {
            (timeout, Some(since)) if timeout > 0 => since + timeout,
            _ => NEVER,
        }
    }

    fn fail(&mut self, error: SocketError) {
        self.state = ConnectionState::Closed;
        self.error = Some(error);
        self.wakeups = Wakeups::STATE_CHANGE;
    }

    /// A timer expired: call [`Connection::poll_transmit`] for resulting segments.
    pub fn on_deadline(&mut self, now: Nanos, probe: &mut impl TcpProbe) {
        if matches!(
            self.state,
            ConnectionState::SynSent | ConnectionState::SynReceived | ConnectionState::FastOpen
        ) {
            let HandshakeState { attempts, due, .. } = &mut self.handshake;
            if attempts.deadline <= now {
                *due = true;
                if self.state == ConnectionState::SynSent {
                    attempts.on_syn_timeout(&self.stack);
                } else {
                    attempts.on_syn_ack_timeout(&self.stack);
                    self.state = ConnectionState::SynReceived;
                }
            }
            return;
        }
        if self.user_timeout() <= now {
            return self.fail(SocketError::TimedOut);
        }
        if self.sender.deadline() <= now {
            self.sender.end_waiting_for_more();
            self.sender.on_deadline(now, &self.stack, probe);
        }
        if self.receiver.deadline() <= now {
            self.receiver.on_deadline(now);
        }
    }

    /// Returns the next segment to send now; call until [`None`].
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        let mut segment = Segment::default();
        self.poll(now, &mut segment).map(|_| segment)
    }

    /// Like [`Connection::poll_transmit`], but fills in `segment`, which must be empty or an earlier
    /// segment of this end with data. Returns the packet of the sending end that it carries, if any.
    #[inline(always)]
    pub(super) fn poll(
        &mut self,
        now: Nanos,
        segment: &mut Segment,
    ) -> Option<Option<PacketToSend>> {
        if self.reset.is_some() || self.is_opening() {
            let reset = self.reset.take();
            *segment = reset.or_else(|| self.poll_handshake_segment(now))?;
            return Some(None);
        }
        if !self.receiver.has_earlier_ack() && !self.sender.has_nothing_to_do() {
            if let Some(sent) = self.poll_sender(now) {
                self.fill_data(now, &sent, segment);
                return Some(Some(sent));
            }
            self.wakeups.writable |= self.sender.check_send_space(now, &self.stack);
        }
        self.poll_answer(now, segment).then_some(None)
    }

    /// Like [`Connection::poll`] of an open connection whose sending end has nothing to send: fills in
    /// an acknowledgement, if one is due.
    #[inline(always)]
    fn poll_answer(&mut self, now: Nanos, segment: &mut Segment) -> bool {
        let ack = match self.receiver.poll_cumulative_ack(&self.stack) {
            Some(ack) if segment.options.sacks.is_empty() => ack,
            Some(ack) => {
                segment.options.sacks = SackBlocks::default();
                ack
            }
            None => {
                let Some(outgoing) = self.receiver.poll_ack(&self.stack) else { return false };
                let OutgoingAck { ack, window, sacks, echo, ece } = outgoing;
                segment.options.sacks = sacks;
                CumulativeAck { ack, window, seq: 0, echo, ece }
            }
        };
        self.fill_ack(now, self.sender.next_byte(), &ack, segment);
        self.add_accurate_option(now, segment);
        true
    }

    /// Like [`Connection::poll`], if the sending end has nothing to do. Returns whether `segment` is
    /// to be sent.
    #[inline(always)]
    pub(super) fn poll_without_data(&mut self, now: Nanos, segment: &mut Segment) -> bool {
        if self.reset.is_some() || self.is_opening() {
            self.poll(now, segment).is_some()
        } else {
            self.poll_answer(now, segment)
        }
    }

    fn poll_sender(&mut self, now: Nanos) -> Option<PacketToSend> {
        let sent = self.sender.poll_transmit(now, &self.stack);
        if sent.is_some() || !std::mem::take(&mut self.closing) {
            return sent;
        }
        self.shut_down_sending();
        self.sender.poll_transmit(now, &self.stack)
    }

    /// Returns a run of packets, possibly empty, instead of repeated calls of [`Connection::poll`], and
    /// fills in the segment of the first. Unless the run ends the burst, and after [`None`], call that
    /// method next.
    #[inline(always)]
    pub(super) fn poll_run(&mut self, now: Nanos, segment: &mut Segment) -> Option<FullPacketRun> {
        // The buffers of a socket determine its packets.
        if self.is_opening() || self.stack.socket.is_some() || self.receiver.has_earlier_ack() {
            return None;
        }
        let mut run = self.sender.transmit_full_packet_run(now, &mut self.closing, &self.stack)?;
        if self.sender.closed && self.state == ConnectionState::Established {
            self.state = ConnectionState::FinWait1;
        }
        if run.packets > 0 {
            self.fill_data(now, &run.first, segment);
        }
        run.ends &= !self.receiver.is_ack_due();
        Some(run)
    }

    /// Whether there is certainly nothing to send.
    #[inline(always)]
    pub(super) fn is_idle(&mut self) -> bool {
        !self.is_opening()
            && !self.closing
            && !self.is_answer_due()
            && self.sender.stop_waiting_if_idle(&self.stack)
    }

    /// Whether an acknowledgement, a segment of the handshake or a reset is due now.
    #[inline(always)]
    pub(super) fn is_answer_due(&self) -> bool {
        self.receiver.is_ack_due() || self.handshake.due || self.reset.is_some()
    }

    /// A simulated application sends the next message of its opening, which occupies no bytes.
    pub(super) fn send_message(&mut self, now: Nanos) -> Segment {
        self.messages += 1;
        self.acknowledge(now)
    }

    /// An acknowledgement that is sent even if none is due.
    fn acknowledge(&mut self, now: Nanos) -> Segment {
        let mut segment = Segment::default();
        let sacks = &mut segment.options.sacks;
        let ack = self.receiver.on_data_sent(now, &self.stack, sacks);
        self.fill_ack(now, self.sender.next_byte(), &ack, &mut segment);
        self.add_accurate_option(now, &mut segment);
        segment
    }

    fn poll_handshake_segment(&mut self, now: Nanos) -> Option<Segment> {
        if !std::mem::take(&mut self.handshake.due) {
            return None;
        }
        let attempts = &mut self.handshake.attempts;
        let wait = attempts.record_transmission(now);
        attempts.deadline = self.sender.clock.expiry_of(TimerSpan::new(now, wait));
        let first = attempts.sends == 1;
        let is_answer = self.state == ConnectionState::SynReceived;
        let mut ack = u64::from(is_answer);
        let (mut len, mut messages) = (0, 0);
        if self.handshake.fast_open == FastOpenState::Accepted {
            self.state = ConnectionState::FastOpen;
            ack = self.receiver.on_data_sent(now, &self.stack, &mut SackBlocks::default()).ack;
        } else if self.stack.fast_open && !is_answer && first {
            // A SYN that is sent again has neither cookie nor data: section 4.2.1.
            len = self.send_data_with_syn(now);
            self.messages = 1;
            messages = 1;
        }
        let (echo, scales) = (self.peer_stamp, !is_answer || self.negotiated.our_scale > 0);
        let mut flags = SegmentFlags { syn: true, ack: is_answer, ..SegmentFlags::default() };
        // RFC 3168, section 6.1.1.1; a retransmitted SYN does not offer ECN.
        flags.ece = self.stack.ecn && (is_answer || first);
        flags.cwr = flags.ece && !is_answer;
        self.ecn_offered |= flags.cwr;
        // RFC 9768, section 3.1.
        let mut accurate_ecn = None;
        if self.stack.accurate_ecn {
            flags.ae = flags.cwr;
            if is_answer {
                flags.set_ace(ace_of_handshake(self.peer_codepoint));
                accurate_ecn = ReceivedMarks::new(None).take_option(now, None, 0).filter(|_| first);
            }
        }
        let stamps = Timestamps { value: timestamp_at(now), echo: echo.unwrap_or(0) };
        Some(Segment {
            len,
            ack,
            window: MAX_WINDOW_FIELD,
            flags,
            messages,
            options: SegmentOptions {
                mss: Some(self.advertised_mss),
                window_scale: scales.then_some(self.window_scale),
                sack_permitted: self.stack.detection.uses_sack(),
                timestamps: self.stack.timestamps.then_some(stamps),
                sacks: SackBlocks::default(),
                accurate_ecn,
            },
            ..Segment::default()
        })
    }

    /// Takes the data that a SYN carries; returns its bytes.
    fn send_data_with_syn(&mut self, now: Nanos) -> u32 {
        let space = self.advertised_mss.saturating_sub(SYN_OPTION_SPACE);
        let len = self.sender.unsent_bytes().min(space.into()) as u32;
        if len > 0 {
            self.sender.record_syn_data(now, len);
            self.handshake.fast_open = FastOpenState::Sent { at: now, len };
        }
        len
    }

    /// Fills in the segment of a packet.
    #[inline(always)]
    fn fill_data(&mut self, now: Nanos, sent: &PacketToSend, segment: &mut Segment) {
        let sacks = &mut segment.options.sacks;
        let ack = self.receiver.on_data_sent(now, &self.stack, sacks);
        self.fill_ack(now, sent.start, &ack, segment);
        segment.len = if sent.sending == SendReason::WindowProbe { 0 } else { sent.len };
        segment.flags.fin = sent.fin;
        segment.flags.psh = sent.push;
        if self.stack.accurate_ecn {
            return;
        }
        segment.flags.cwr = sent.cwr;
        // RFC 9331, section 4.1: an L4S sender marks retransmissions as well.
        segment.ecn = match (self.stack.is_l4s(), sent.ect) {
            (true, _) => Ecn::Ect1,
            (false, true) => Ecn::Ect0,
            (false, false) => Ecn::NotEct,
        };
    }

    /// ACE of a packet. As in Linux, all packets of a connection with accurate ECN are ECN-capable,
    /// acknowledgements and retransmissions as well.
    fn fill_accurate_feedback(&mut self, segment: &mut Segment) {
        let Some(marks) = self.receiver.received_marks_mut() else { return };
        segment.flags.set_ace(marks.take_ace());
        let sends_ect = self.sender.marks.as_ref().is_some_and(|marks| marks.sends_ect);
        segment.ecn = match (self.stack.is_l4s(), sends_ect) {
            (_, false) => Ecn::NotEct,
            (true, true) => Ecn::Ect1,
            (false, true) => Ecn::Ect0,
        };
    }

    /// Option of accurate ECN of a packet without data; on others, it would shorten the data.
    #[inline(always)]
    fn add_accurate_option(&mut self, now: Nanos, segment: &mut Segment) {
        let srtt = self.receiver.srtt();
        let Some(marks) = self.receiver.received_marks_mut() else { return };
        let used = segment.options.ack_option_bytes();
        segment.options.accurate_ecn = marks.take_option(now, srtt, used);
    }

    /// Fills in an acknowledgement, except for its SACK blocks.
    #[inline(always)]
    fn fill_ack(&mut self, now: Nanos, seq: u64, ack: &CumulativeAck, segment: &mut Segment) {
        let stamps = Timestamps { value: timestamp_at(now), echo: ack.echo.unwrap_or(0) };
        segment.seq = seq;
        segment.ack = ack.ack;
        segment.window = (ack.window >> self.negotiated.our_scale).min(self.max_window_field);
        segment.flags.ack = true;
        segment.flags.ece = ack.ece;
        segment.messages = self.messages;
        segment.options.timestamps = self.stack.timestamps.then_some(stamps);
        if self.stack.accurate_ecn {
            self.fill_accurate_feedback(segment);
        }
    }

    /// A segment arrives: call [`Connection::poll_transmit`] for resulting segments. Returns whether
    /// it contains new data.
    #[inline(always)]
    pub fn on_segment(&mut self, now: Nanos, segment: &Segment, probe: &mut impl TcpProbe) -> bool {
        if segment.flags.rst || segment.flags.syn || self.is_unconfirmed() {
            self.on_rare_segment(now, segment, probe)
        } else {
            self.on_segment_if_open(now, segment, probe)
        }
    }

    /// A reset, or a segment of the handshake.
    #[inline(never)]
    fn on_rare_segment(
        &mut self,
        now: Nanos,
        segment: &Segment,
        probe: &mut impl TcpProbe,
    ) -> bool {
        if segment.flags.rst {
            self.on_reset(segment);
            return false;
        }
        match self.state {
            // The connection no longer exists or does not exist yet, or an acknowledgement is of
            // another connection: RFC 9293, sections 3.10.7.1 to 3.10.7.4.
            ConnectionState::Closed => {
                self.reset = segment.flags.ack.then(|| reset_segment(segment.ack));
            }
            ConnectionState::Listen | ConnectionState::SynReceived | ConnectionState::SynSent
                if segment.flags.ack
                    && (self.state == ConnectionState::Listen
                        || !(1..=self.sender.next_byte()).contains(&segment.ack)) =>
            {
                self.reset = Some(reset_segment(segment.ack));
            }
            ConnectionState::Listen => return self.on_syn(now, segment),
            ConnectionState::SynSent => self.on_syn_ack(now, segment),
            ConnectionState::SynReceived | ConnectionState::FastOpen => {
                return self.on_handshake_ack(now, segment, probe);
            }
            // A repeated handshake segment: RFC 5961, section 4.
            _ => self.receiver.make_ack_due(),
        }
        false
    }

    /// A reset arrives: RFC 5961, section 3.2.
    fn on_reset(&mut self, segment: &Segment) {
        let next = self.receiver.next_expected();
        let error = match self.state {
            ConnectionState::Closed | ConnectionState::Listen => return,
            ConnectionState::SynSent => {
                let is_answer = segment.flags.ack && segment.ack == 1;
                is_answer.then_some(SocketError::ConnectionRefused)
            }
            // No connection was accepted.
            ConnectionState::SynReceived if segment.seq == next => {
                return self.state = ConnectionState::Closed;
            }
            ConnectionState::CloseWait => Some(SocketError::BrokenPipe),
            _ => Some(SocketError::ConnectionReset),
        };
        match error {
            Some(error) if self.state == ConnectionState::SynSent || segment.seq == next => {
                self.fail(error);
            }
            _ if segment.seq > next && segment.seq < self.receiver.window_end() => {
                self.receiver.make_ack_due();
            }
            _ => (),
        }
    }

    /// A SYN arrives; returns whether its data is accepted.
    fn on_syn(&mut self, now: Nanos, segment: &Segment) -> bool {
        if !segment.flags.syn || segment.flags.ack {
            return false;
        }
        self.negotiate_options(segment);
        let SegmentFlags { ae, cwr, ece, .. } = segment.flags;
        self.stack.ecn &= ece && cwr;
        self.limit_accurate_ecn(ae);
        self.peer_codepoint = segment.ecn;
        self.state = ConnectionState::SynReceived;
        self.handshake.due = true;
        self.stack.fast_open
            && (segment.len > 0 || segment.messages > 0)
            && self.accept_fast_open(now, segment)
    }

    /// Accepts the data of a SYN: RFC 7413, section 4.2.2; `tcp_fastopen_create_child` in Linux. The
    /// sender has no sample of the round-trip time yet. Returns whether there is data.
    fn accept_fast_open(&mut self, now: Nanos, segment: &Segment) -> bool {
        self.handshake.fast_open = FastOpenState::Accepted;
        self.start_ends(now, None, segment.window, self.peer_stamp);
        let data = Segment { seq: FIRST_BYTE, ..*segment };
        segment.len > 0 && self.on_data(now, &data)
    }

    fn on_syn_ack(&mut self, now: Nanos, segment: &Segment) {
        if !(segment.flags.syn && segment.flags.ack) {
            return;
        }
        self.negotiate_options(segment);
        match AnsweredFeedback::from_ace(segment.flags.ace()) {
            answer if self.stack.accurate_ecn => {
                self.stack.ecn &= self.ecn_offered && answer != AnsweredFeedback::None;
                self.limit_accurate_ecn(answer == AnsweredFeedback::Accurate);
            }
            _ => self.stack.ecn &= self.ecn_offered && segment.flags.ece && !segment.flags.cwr,
        }
        self.peer_codepoint = segment.ecn;
        let written = self.sender.written;
        // The window of a SYN is never scaled: RFC 7323, section 2.2.
        self.enter_established(now, segment.window, segment.options.timestamps);
        self.sender.written = written;
        if let FastOpenState::Sent { at, len } = self.handshake.fast_open {
            self.sender.resume_after_syn_data(now, at, len, segment.ack);
            if self.sender.is_data_acknowledged() && std::mem::take(&mut self.closing) {
                self.shut_down_sending();
            }
        }
        let marks = ReceivedMarks::new(Some(segment.ecn));
        self.start_accurate_ecn(marks, ReportedMarks::new(None));
        self.receiver.make_ack_due();
    }

    /// Keeps accurate ECN if the peer supports it. Without it, L4S is not safe (RFC 9331, section
    /// 4.2): Prague then uses no ECN.
    fn limit_accurate_ecn(&mut self, is_supported: bool) {
        if self.stack.accurate_ecn && !(self.stack.ecn && is_supported) {
            self.stack.ecn &= !self.stack.is_l4s();
            self.stack.accurate_ecn = false;
        }
    }

    fn on_handshake_ack(
        &mut self,
        now: Nanos,
        segment: &Segment,
        probe: &mut impl TcpProbe,
    ) -> bool {
        if segment.flags.syn {
            // The peer has not received our answer, which echoes its newest timestamp: RFC 7323,
            // section 4.3.
            self.handshake.due = true;
            self.state = ConnectionState::SynReceived;
            self.peer_stamp = segment.options.timestamps.map(|stamps| stamps.value);
            return false;
        }
        if !segment.flags.ack || segment.ack < 1 {
            return false;
        }
        if self.handshake.fast_open == FastOpenState::Accepted {
            self.confirm_fast_open(now, segment.options.timestamps);
        } else {
            let window = segment.window << self.negotiated.their_scale;
            self.enter_established(now, window, segment.options.timestamps);
            let reported = ReportedMarks::new(Some(segment.flags.ace()));
            self.start_accurate_ecn(ReceivedMarks::new(None), reported);
        }
        self.on_segment_if_open(now, segment, probe)
    }

    /// The SYN-ACK of a connection that has accepted the data of a SYN is acknowledged:
    /// `tcp_rcv_synrecv_state_fastopen` in Linux, which starts the retransmission timer only now.
    fn confirm_fast_open(&mut self, now: Nanos, stamps: Option<Timestamps>) {
        let closed = self.sender.closed;
        self.state = if closed { ConnectionState::FinWait1 } else { ConnectionState::Established };
        self.wakeups = Wakeups::STATE_CHANGE;
        let echoed = self.echoed_stamps(stamps);
        if let Some(rtt) = self.handshake.attempts.handshake_rtt(now, echoed) {
            self.sender.add_handshake_sample(now, rtt, &self.stack);
        }
        self.limit_window_after_timeouts(echoed);
        self.sender.timer = TimerPurpose::Off;
        self.sender.arm_retransmission_timer(now);
        self.handshake.due = false;
        self.receiver.on_established(self.sender.rtt().srtt(), stamps.map(|stamps| stamps.value));
    }

    /// Keeps the rules that both ends support.
    fn negotiate_options(&mut self, segment: &Segment) {
        let options = &segment.options;
        let ours = &mut self.stack;
        ours.timestamps &= options.timestamps.is_some();
        if !options.sack_permitted {
            ours.detection = super::stack::LossDetection::DuplicateAcks;
            ours.receiving.dsack = false;
        }
        let timestamps = if ours.timestamps { TIMESTAMP_BYTES } else { 0 };
        ours.mss = options.mss.unwrap_or(536).min(self.advertised_mss) - timestamps;
        self.negotiated = match options.window_scale {
            Some(scale) => NegotiatedScales { our_scale: self.window_scale, their_scale: scale },
            None => NegotiatedScales::default(),
        };
        self.peer_stamp = options.timestamps.map(|stamps| stamps.value);
    }

    fn enter_established(&mut self, now: Nanos, window: u64, stamps: Option<Timestamps>) {
        self.state = ConnectionState::Established;
        let echoed = self.echoed_stamps(stamps);
        let rtt = self.handshake.attempts.handshake_rtt(now, echoed);
        let newest = stamps.map(|stamps| stamps.value).or(self.peer_stamp);
        self.start_ends(now, rtt, window, newest);
        self.limit_window_after_timeouts(echoed);
        self.handshake.due = false;
    }

    fn echoed_stamps(&self, stamps: Option<Timestamps>) -> Option<Timestamps> {
        stamps.filter(|stamps| self.stack.timestamps && stamps.echo != 0)
    }

    /// Data begins with one packet if timeouts of the SYN-ACK show congestion.
    fn limit_window_after_timeouts(&mut self, echoed: Option<Timestamps>) {
        if self.handshake.attempts.starts_with_one_packet(echoed) {
            self.sender.start_with_one_packet();
        }
    }

    /// Starts both ends with the negotiated rules.
    fn start_ends(
        &mut self,
        now: Nanos,
        rtt: Option<Nanos>,
        window: u64,
        newest_stamp: Option<u32>,
    ) {
        self.last_data_received = now;
        self.wakeups = Wakeups::STATE_CHANGE;
        let socket = self.sender.socket.take();
        self.sender.restart_connection(now, self.seed, &self.stack);
        self.sender.set_socket_state(socket);
        self.sender.note_ack_for_socket(window);
        self.sender.grow_send_buffer(&self.stack);
        self.sender.on_established(now, rtt, window, &self.stack);
        self.receiver = Receiver::new(FIRST_BYTE, &self.stack);
        self.receiver.on_established(self.sender.rtt().srtt(), newest_stamp);
    }

    #[inline(always)]
    fn on_segment_if_open(
        &mut self,
        now: Nanos,
        segment: &Segment,
        probe: &mut impl TcpProbe,
    ) -> bool {
        if !segment.flags.ack {
            return false;
        }
        if segment.ack > self.sender.next_byte() {
            // RFC 9293, section 3.10.7.4; like Linux, an open connection does not answer.
            if self.state != ConnectionState::Established {
                self.receiver.make_ack_due();
            }
            return false;
        }
        let has_data = segment.len > 0 || segment.flags.fin;
        self.pass_ack_to_sender(now, segment, has_data, probe);
        if !has_data {
            self.on_segment_without_data(segment);
            return false;
        }
        self.on_data(now, segment)
    }

    /// Passes the acknowledgement of a segment to the sender.
    #[inline(always)]
    fn pass_ack_to_sender(
        &mut self,
        now: Nanos,
        segment: &Segment,
        carries_data: bool,
        probe: &mut impl TcpProbe,
    ) {
        let (window, seq) = (segment.window << self.negotiated.their_scale, segment.seq);
        let timestamps = segment.options.timestamps.filter(|_| self.stack.timestamps);
        let echo = timestamps.map(|stamps| stamps.echo);
        let ece = match &mut self.sender.marks {
            None => segment.flags.ece,
            Some(marks) => {
                marks.check_first_packet(segment.flags.ace());
                let bytes = segment.ack.saturating_sub(self.sender.una);
                marks.may_report_marks(segment.flags.ace(), bytes / u64::from(self.stack.mss))
            }
        };
        let ack = CumulativeAck { ack: segment.ack, window, seq, echo, ece };
        if carries_data && self.sender.has_nothing_to_do() {
            // Usually only one end sends data.
            return self.sender.update_window_without_flight(&ack);
        }
        self.sender.note_ack_for_socket(window);
        if segment.options.sacks.is_empty()
            && self.sender.on_ack_fast_path(now, &ack, &self.stack, probe)
        {
            return;
        }
        let ack = ArrivingAck {
            ack: segment.ack,
            window,
            seq,
            carries_data,
            sacks: segment.options.sacks,
            timestamps,
            ece,
            ace: segment.flags.ace(),
            accurate_ecn: segment.options.accurate_ecn,
        };
        self.sender.on_ack_slow_path(now, &ack, &self.stack, probe);
    }

    /// A segment with data, or with FIN, arrives; returns whether its data is new.
    #[inline(always)]
    fn on_data(&mut self, now: Nanos, segment: &Segment) -> bool {
        let next = self.receiver.next_expected();
        let closes = matches!(self.state, ConnectionState::FinWait1 | ConnectionState::FinWait2);
        if closes && self.receive_closed && segment.seq + u64::from(segment.len) > next {
            // The application no longer reads the data: RFC 1122, section 4.2.2.13.
            self.reset = Some(reset_segment(segment.ack));
            self.state = ConnectionState::Closed;
            return false;
        }
        self.last_data_received = now;
        let data = ArrivingData {
            start: segment.seq,
            len: segment.len,
            fin: segment.flags.fin,
            ecn: segment.ecn,
            cwr: segment.flags.cwr,
            push: segment.flags.psh,
            timestamps: segment.options.timestamps,
        };
        let is_new = self.receiver.on_data(now, &data, &self.stack);
        self.wakeups.readable |= self.receiver.next_expected() != next;
        if self.state != ConnectionState::Established || self.receiver.is_stream_complete() {
            self.update_state_after_close();
        }
        is_new
    }

    #[inline(always)]
    fn on_segment_without_data(&mut self, segment: &Segment) {
        if let Some(marks) = self.receiver.received_marks_mut() {
            marks.on_packets(1, 0, segment.ecn);
        }
        let is_old = segment.ack < self.sender.una();
        if let Some(stamps) = segment.options.timestamps.filter(|_| !is_old) {
            self.receiver.on_timestamp_without_data(segment.seq, stamps);
        }
        if segment.seq + 1 == self.receiver.next_expected() {
            // A probe of our window, or a keepalive.
            self.receiver.on_packet_below_window();
        }
        if self.sender.is_fin_acknowledged() {
            self.update_state_after_close();
        }
    }

    fn update_state_after_close(&mut self) {
        let (acked, ended) =
            (self.sender.is_fin_acknowledged(), self.receiver.is_stream_complete());
        self.state = match (self.state, acked, ended) {
            (ConnectionState::Established, _, true) => ConnectionState::CloseWait,
            (ConnectionState::FinWait1, true, false) => ConnectionState::FinWait2,
            (ConnectionState::FinWait1, false, true) => ConnectionState::Closing,
            (ConnectionState::FinWait1, true, true)
            | (ConnectionState::FinWait2, _, true)
            | (ConnectionState::Closing, true, _) => ConnectionState::TimeWait,
            (ConnectionState::LastAck, true, _) => ConnectionState::Closed,
            (state, _, _) => state,
        };
    }
}

/// Reset for a connection that does not exist.
fn reset_segment(seq: u64) -> Segment {
    Segment {
        seq,
        flags: SegmentFlags { rst: true, ..SegmentFlags::default() },
        ..Segment::default()
    }
}
