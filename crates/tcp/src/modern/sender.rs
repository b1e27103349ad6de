//! Sending end of a connection, as a state machine: it takes times, application requests and
//! acknowledgements, and is polled for packets to send.
//!
//! ```text
//!  on_ack -> scoreboard -> RACK, loss marking -> phase -> delivery rate -> congestion control
//!                                                                               |
//!  poll_transmit (until None) <- pacing <- cwnd <- PRR <------------------------+
//! ```
//!
//! Sequence numbers count bytes and do not wrap. Windows are in packets of `mss` bytes; only the
//! last packet written by the application can be shorter.

use super::accurate_ecn::ReportedMarks;
use super::activity_durations::ActivityDurations;
use super::cc::AnyCongestionControl;
use super::cc::path_model::BbrState;
use super::delivery_rate::DeliveryCounter;
use super::flight::Flight;
use super::offload::OffloadChunk;
use super::outstanding_packet::{OutstandingPacket, PacketMarks};
use super::pacing::Pacer;
use super::rack::RackState;
use super::recovery_phase::{RecoveryPhase, UndoState};
use super::rtt::RttEstimator;
use super::segment::SackBlocks;
use super::socket_state::SocketState;
use super::stack::Stack;
use super::tick_clock::{TickClock, TimerPurpose};
use super::window::CongestionWindow;
use crate::tcp_event::{TcpEvent, TcpProbe};
use tcpcast_link::time::Nanos;

/// Retransmissions allowed since the last acknowledgement or timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllowedRetransmissions {
    /// None.
    Nothing,
    /// Lost packets.
    Lost,
    /// Lost packets, if no new data can be sent: RFC 5682, section 2.1, step 2.b.
    UnlessNew,
}

/// A packet that is sent regardless of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketBeyondWindow {
    /// New data, as a tail loss probe.
    New,
    /// The last packet, as a tail loss probe.
    ProbeLast,
    /// The first packet after a timeout.
    First,
    /// A probe of a closed window.
    WindowProbe,
}

/// A tail loss probe in flight: RFC 8985, section 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TailProbe {
    /// End of the sent data, including the probe.
    pub high: u64,
    /// Whether the probe is a retransmission.
    pub retransmits: bool,
}

/// Utilization of the window: Linux's window validation (similar to RFC 7661).
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowUsage {
    /// Whether the window was fully used in the current round.
    pub limited: bool,
    /// Maximum number of outstanding packets in the current round, if the window was not fully
    /// used.
    pub max_out: u32,
    /// The round ends when this byte is acknowledged.
    pub round_end: u64,
    /// Maximum number of outstanding packets since `since`.
    pub used: u32,
    /// Last time at which the window was fully used.
    pub since: Nanos,
}

/// Counters for reporting only.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderCounters {
    /// Packets retransmitted, including probes.
    pub retransmitted: u32,
    /// Packets reported as duplicates.
    pub duplicates: u32,
    /// Data packets sent.
    pub sent: u32,
}

/// Sending end of a connection.
///
/// Fields that each acknowledgement needs are grouped in cache lines of 64 bytes: with many
/// connections each line is a cache miss. Fields that only recovery needs come last.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    /// First unacknowledged byte, possibly within a packet.
    pub(super) una: u64,
    /// Byte after the last one written by the application.
    pub(super) written: u64,
    /// End of the receiver's window.
    pub(super) allowed: u64,
    /// Maximum of the data in the send buffer, in bytes.
    pub(super) max_send_buffer: u64,
    /// Sequence number of the packet that advertised the window.
    pub(super) window_update_seq: u64,
    pub(super) chunk: OffloadChunk,
    pub(super) flight: Flight,
    /// Number of timer expiries without progress.
    pub(super) backoff: u32,
    /// Whether the application has closed the stream.
    pub(super) closed: bool,
    /// Whether FIN was sent.
    pub(super) fin_sent: bool,
    pub(super) repair: AllowedRetransmissions,
    pub(super) forced: Option<PacketBeyondWindow>,
    pub(super) window: CongestionWindow,
    /// Packets that may be reordered before a loss is assumed.
    pub(super) reordering: u32,
    pub(super) last_sent: Nanos,
    pub(super) usage: WindowUsage,
    pub(super) timer: TimerPurpose,
    pub(super) rack: RackState,
    pub(super) rtt: RttEstimator,
    /// Present only in sockets.
    pub(super) socket: Option<Box<SocketState>>,
    pub(super) tail_probe: Option<TailProbe>,
    pub(super) delivery: DeliveryCounter,
    /// Send time of the first retransmission after the last acknowledged retransmission.
    pub(super) retransmitted_at: Option<Nanos>,
    pub(super) phase: RecoveryPhase,
    pub(super) burst_open: bool,
    /// Whether the next new packet carries CWR.
    pub(super) cwr_due: bool,
    /// Whether the rescue retransmission of this recovery was sent: RFC 6675.
    pub(super) rescued: bool,
    pub(super) pacer: Pacer,
    pub(super) counters: SenderCounters,
    pub(super) control: AnyCongestionControl,
    pub(super) undo: Option<UndoState>,
    /// Threshold before the last reduction, if it can be undone.
    pub(super) prior_ssthresh: Option<u32>,
    pub(super) clock: TickClock,
    /// Byte after the last small packet.
    pub(super) small_end: u64,
    /// Packets with a lower number were already checked for loss: RFC 6675.
    pub(super) loss_checked: u32,
    /// SACK blocks of the previous acknowledgement.
    pub(super) last_sacks: SackBlocks,
    /// Counters of accurate ECN.
    pub(super) marks: Option<Box<ReportedMarks>>,
}

impl Sender {
    /// Creates the sender of a new connection whose first byte is `start`. `seed` determines the
    /// phase of its clock and of BBR's cycle.
    #[inline(always)]
    #[must_use]
    pub fn new(now: Nanos, start: u64, seed: u64, stack: &Stack) -> Self {
        let mut sender = Self {
            flight: Flight::new(start),
            una: start,
            written: start,
            closed: false,
            fin_sent: false,
            allowed: start,
            max_send_buffer: stack.max_send_buffer,
            window_update_seq: 0,
            window: CongestionWindow::new(stack.initial_window),
            phase: RecoveryPhase::Open,
            repair: AllowedRetransmissions::Nothing,
            forced: None,
            undo: None,
            prior_ssthresh: None,
            retransmitted_at: None,
            rtt: RttEstimator::new(stack),
            delivery: DeliveryCounter::default(),
            rack: RackState::default(),
            reordering: stack.reordering.initial,
            timer: TimerPurpose::Off,
            backoff: 0,
            clock: TickClock::new(seed, stack),
            tail_probe: None,
            usage: WindowUsage {
                limited: false,
                max_out: 0,
                round_end: start,
                used: 0,
                since: now,
            },
            cwr_due: false,
            last_sent: now,
            small_end: start,
            last_sacks: SackBlocks::default(),
            marks: None,
            loss_checked: 0,
            rescued: false,
            burst_open: false,
            chunk: OffloadChunk::default(),
            pacer: Pacer::new(&stack.pacing, stack.control.bursts()),
            counters: SenderCounters::default(),
            socket: None,
            control: stack.new_control(now, start, seed),
        };
        sender.delivery.set_time_recording(sender.control.sets_window_and_rate());
        sender.flight.unreported_losses = sender.control.has_loss_feedback().then(Vec::new);
        sender.pacer.set_rate(sender.control.pacing_rate());
        sender
    }

    /// Restarts the sender for a new connection and keeps its memory.
    pub(super) fn restart_connection(&mut self, now: Nanos, seed: u64, stack: &Stack) {
        let room = self.flight.take_slot_memory();
        *self = Self::new(now, 1, seed, stack);
        self.flight.reuse_slot_memory(room);
    }

    /// The handshake is complete. `rtt` is [`None`] if the handshake was retransmitted and gave no
    /// sample; `window` is the receiver's window in bytes.
    pub fn on_established(&mut self, now: Nanos, rtt: Option<Nanos>, window: u64, stack: &Stack) {
        match rtt {
            Some(rtt) => self.add_handshake_sample(now, rtt, stack),
            None => self.rtt.set_fallback_rto(stack),
        }
        self.max_send_buffer = stack.max_send_buffer;
        self.allowed = self.una + window.min(stack.max_send_buffer);
        self.usage.since = now;
        self.last_sent = now;
    }

    /// The handshake has measured the round-trip time.
    pub(super) fn add_handshake_sample(&mut self, now: Nanos, rtt: Nanos, stack: &Stack) {
        self.rtt.update_min(now, rtt);
        self.rtt.add_sample(rtt, self.una, self.flight.end_byte(), stack);
        self.control.on_established(&self.window, now, rtt);
        self.pacer.set_rate(self.control.pacing_rate());
        self.set_pacing_chunk_size(stack);
    }

    /// Records that a SYN carries the first `len` bytes: RFC 7413, section 4.2.1.
    pub(super) fn record_syn_data(&mut self, now: Nanos, len: u32) {
        let mut packet = OutstandingPacket::sent_at_time(now, PacketMarks::default());
        self.delivery.on_sent(now, true, &mut packet);
        self.flight.push_packet(packet, len);
    }

    /// The connection is established. Its SYN carried `len` bytes at `sent_at`; if the SYN-ACK does
    /// not acknowledge them, they are sent again at once: Linux's `tcp_rcv_fastopen_synack`.
    pub(super) fn resume_after_syn_data(&mut self, now: Nanos, sent_at: Nanos, len: u32, ack: u64) {
        let number = self.flight.next_number();
        self.record_syn_data(sent_at, len);
        if self.flight.take_first_acked_packet(ack).is_some() {
            self.allowed += ack - self.una;
            self.una = ack;
        } else {
            self.flight.mark_lost(number);
            self.report_losses_to_control(now);
            self.repair = AllowedRetransmissions::Lost;
        }
    }

    /// Records that the last packet of the handshake advertised the window, so that the next packet
    /// with the same window that acknowledges nothing counts as a duplicate: `tcp_init_wl` in
    /// Linux.
    pub(super) fn init_window_update_seq(&mut self, seq: u64) {
        self.window_update_seq = seq;
    }

    /// Starts with one packet: the handshake was retransmitted more than once (RFC 5681, section
    /// 3.1).
    pub fn start_with_one_packet(&mut self) {
        self.window.cwnd = 1;
    }

    /// The application writes `bytes`.
    pub fn write_bytes(
        &mut self,
        now: Nanos,
        bytes: u64,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) {
        self.restart_after_idle(now, stack, probe);
        let room = self.flight.in_flight() < self.window.cwnd;
        if self.unsent_bytes() < u64::from(stack.mss)
            && room
            && self.flight.lost <= self.flight.retransmitted
        {
            self.delivery.mark_app_limited(self.flight.in_flight());
        }
        self.written += bytes;
    }

    /// The application closes the stream: FIN follows the last byte.
    pub fn close_stream(&mut self) {
        self.closed = true;
    }

    /// Bytes written and not yet sent.
    #[inline(always)]
    #[must_use]
    pub fn unsent_bytes(&self) -> u64 {
        self.written.saturating_sub(self.flight.end_byte())
    }

    /// Bytes written and not yet acknowledged.
    #[must_use]
    pub fn unacked_and_unsent_bytes(&self) -> u64 {
        self.written.saturating_sub(self.una)
    }

    /// Whether all data, and FIN after a close, is acknowledged.
    #[inline(always)]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.una == self.written + u64::from(self.closed)
    }

    /// Whether all data is acknowledged, regardless of FIN.
    #[inline(always)]
    #[must_use]
    pub fn is_data_acknowledged(&self) -> bool {
        self.una >= self.written
    }

    /// Whether nothing is outstanding, waits or is due, so that acknowledgements and polls have no
    /// effect. Never true for sockets, which also record activity.
    #[inline(always)]
    pub(super) fn has_nothing_to_do(&self) -> bool {
        self.una == self.written
            && self.flight.end_byte() == self.una
            && !self.closed
            && self.forced.is_none()
            && self.socket.is_none()
    }

    /// Stops sending: the application does not wait for FIN and its acknowledgement.
    pub fn abandon_connection(&mut self) {
        self.closed &= self.fin_sent;
        self.timer = TimerPurpose::Off;
        self.forced = None;
        self.repair = AllowedRetransmissions::Nothing;
        self.pacer.set_packet_waiting(false);
    }

    /// Whether FIN is acknowledged.
    #[must_use]
    pub fn is_fin_acknowledged(&self) -> bool {
        self.closed && self.is_finished()
    }

    /// Time at which the pacer allows the next packet, [`tcpcast_link::time::NEVER`] if none waits. Call
    /// [`Sender::poll_transmit`] again then.
    #[inline(always)]
    #[must_use]
    pub fn next_paced_time(&self) -> Nanos {
        self.pacer.send_time_if_waiting()
    }

    /// Next new byte to send.
    #[inline(always)]
    #[must_use]
    pub fn next_byte(&self) -> u64 {
        self.flight.end_byte()
    }

    /// First unacknowledged byte.
    #[inline(always)]
    #[must_use]
    pub fn una(&self) -> u64 {
        self.una
    }

    /// State of BBR; `None` with another congestion control.
    #[must_use]
    pub fn bbr_state(&self) -> Option<BbrState> {
        self.control.bbr_state()
    }

    /// Congestion window, in packets.
    #[inline(always)]
    #[must_use]
    pub fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// Slow-start threshold, in packets.
    #[inline(always)]
    #[must_use]
    pub fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    /// Packets in flight.
    #[inline(always)]
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.flight.in_flight()
    }

    /// Outstanding packets and their state.
    #[must_use]
    pub fn flight(&self) -> &Flight {
        &self.flight
    }

    /// Recovery phase.
    #[must_use]
    pub fn phase(&self) -> RecoveryPhase {
        self.phase
    }

    /// The round-trip estimate.
    #[must_use]
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Counters.
    #[must_use]
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// Busy and limited times of a socket.
    #[must_use]
    pub fn activity_durations(&self) -> Option<&ActivityDurations> {
        self.socket.as_deref().map(|socket| &socket.activity_durations)
    }

    /// Counters of delivered packets.
    #[must_use]
    pub fn delivery_counter(&self) -> &DeliveryCounter {
        &self.delivery
    }

    /// Packets that may be reordered before a loss is assumed.
    #[must_use]
    pub fn reordering_packets(&self) -> u32 {
        self.reordering
    }

    /// Number of times that reordering was observed.
    #[must_use]
    pub fn reordering_count(&self) -> u32 {
        self.rack.reorderings
    }

    /// Number of timer expiries without progress.
    #[must_use]
    pub fn timeouts_without_progress(&self) -> u32 {
        self.backoff
    }

    /// Number of unanswered probes of a closed window.
    #[must_use]
    pub fn unanswered_window_probes(&self) -> u32 {
        if matches!(self.timer, TimerPurpose::Persist(_)) { self.backoff } else { 0 }
    }

    /// The congestion control.
    #[must_use]
    pub fn congestion_control(&self) -> &AnyCongestionControl {
        &self.control
    }

    /// End of the receiver's window.
    #[must_use]
    pub fn receive_window_end(&self) -> u64 {
        self.allowed
    }

    /// Threshold to restore after a reduction: Linux's `tcp_current_ssthresh`.
    pub(super) fn current_ssthresh(&self) -> u32 {
        if self.phase.reduces_window() {
            self.window.ssthresh
        } else {
            self.window.ssthresh.max(self.window.cwnd / 2 + self.window.cwnd / 4)
        }
    }

    /// RFC 5681, section 4.1, as in Linux: the window is halved per RTO of idle time, down to the
    /// initial window.
    fn restart_after_idle(&mut self, now: Nanos, stack: &Stack, probe: &mut impl TcpProbe) {
        if !stack.idle_restart
            || self.flight.packets_out() > 0
            || self.control.sets_window_and_rate()
        {
            return;
        }
        let rto = self.rtt.rto();
        let idle = now - self.last_sent;
        if idle <= rto {
            return;
        }
        self.window.ssthresh = self.current_ssthresh();
        let min = stack.initial_window.min(self.window.cwnd);
        let mut left = idle;
        while left > rto && self.window.cwnd > min {
            left -= rto;
            self.window.cwnd >>= 1;
        }
        self.window.cwnd = self.window.cwnd.max(min);
        self.usage.since = now;
        self.usage.used = 0;
        probe.on_tcp_event(now, TcpEvent::IdleRestart);
    }
}
