//! The sending end of a connection: a machine that is told of time, of what the application wants
//! and of acknowledgements, and is asked for the packets to send.
//!
//! ```text
//!  on_ack -> scoreboard -> RACK, loss marking -> phase -> delivery rate -> congestion control
//!                                                                               |
//!  poll_transmit (until None) <- pacing <- cwnd <- PRR <------------------------+
//! ```
//!
//! Sequence numbers count bytes and do not wrap. Windows are in packets of `mss` bytes; only the
//! last packet of what the application wrote can be shorter.

use super::cc::AnyControl;
use super::chronograph::Chronograph;
use super::delivery_rate::DeliveryCounter;
use super::event::{Event, Probe};
use super::flight::Flight;
use super::offload::Chunk;
use super::pacing::Pacer;
use super::phase::{Phase, RetransmittedAt, Undo};
use super::rack::Rack;
use super::rtt::RttEstimator;
use super::segment::SackBlocks;
use super::stack::Stack;
use super::ticks::TickClock;
use super::timers::Timer;
use super::window::Window;
use crate::clock::Nanos;

/// What may be retransmitted since the last acknowledgement or timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// Nothing.
    Nothing,
    /// What is lost.
    Lost,
    /// What is lost, unless new data can be sent: RFC 5682, section 2.1, step 2.b.
    UnlessNew,
}

/// A packet that is sent whatever the window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forced {
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
    /// The byte after the last one sent with it.
    pub high: u64,
    /// Whether it was a retransmission.
    pub retransmits: bool,
}

/// How far the window has been used: Linux's validation of the window (RFC 7661 in spirit).
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// It was used up in the current round.
    pub limited: bool,
    /// Else the most packets that were out.
    pub max_out: u32,
    /// The round ends when this byte is acknowledged.
    pub round_end: u64,
    /// The most packets that were out since `since`.
    pub used: u32,
    /// When it was used up last.
    pub since: Nanos,
}

/// Counters that say nothing to the protocol but are asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Packets retransmitted, probes too.
    pub retransmitted: u32,
    /// Packets reported as duplicates.
    pub duplicates: u32,
    /// Data packets sent.
    pub sent: u32,
}

/// The sending end.
///
/// What each acknowledgement needs stands together in lines of 64 bytes, as [`PacketSender`] begins one:
/// where connections are many each line is waited for. What only a repair needs stands apart.
///
/// [`PacketSender`]: super::packet_sender::PacketSender
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    /// The first byte not acknowledged, perhaps within a packet.
    pub(super) una: u64,
    /// The byte after the last one that the application wrote.
    pub(super) written: u64,
    /// The byte after the last one that the receiver takes.
    pub(super) allowed: u64,
    /// The sequence number of the packet that said so.
    pub(super) window_seq: u64,
    pub(super) chunk: Chunk,
    pub(super) flight: Flight,
    /// How often a timer has expired without progress.
    pub(super) backoff: u32,
    /// The application has closed the stream.
    pub(super) closed: bool,
    /// FIN has been sent.
    pub(super) fin_sent: bool,
    pub(super) repair: Repair,
    pub(super) forced: Option<Forced>,
    pub(super) window: Window,
    /// How many packets may be reordered before a loss is assumed.
    pub(super) reordering: u32,
    pub(super) last_sent: Nanos,
    pub(super) usage: Usage,
    pub(super) timer: Timer,
    pub(super) rack: Rack,
    pub(super) rtt: RttEstimator,
    /// Kept where it is asked for.
    pub(super) chronograph: Option<Box<Chronograph>>,
    pub(super) tail_probe: Option<TailProbe>,
    pub(super) delivery: DeliveryCounter,
    pub(super) retransmitted_at: RetransmittedAt,
    pub(super) phase: Phase,
    pub(super) burst_open: bool,
    /// The next new packet says that the window was reduced.
    pub(super) cwr_due: bool,
    /// A rescue retransmission of this recovery was sent: RFC 6675.
    pub(super) rescued: bool,
    pub(super) pacer: Pacer,
    pub(super) counters: Counters,
    pub(super) control: AnyControl,
    pub(super) undo: Option<Undo>,
    /// The threshold before the last reduction, if that may be undone.
    pub(super) prior_ssthresh: Option<u32>,
    pub(super) clock: TickClock,
    /// The byte after the last small packet.
    pub(super) small_end: u64,
    /// Packets before this were judged by what the receiver holds above them: RFC 6675.
    pub(super) judged: u32,
    /// The blocks of the acknowledgement before.
    pub(super) last_sacks: SackBlocks,
}

impl Sender {
    /// The end of a new connection whose first byte is `start`; from `seed` follows where its clock
    /// stands and where BBR's cycle begins.
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
            window_seq: 0,
            window: Window::new(stack.initial_window),
            phase: Phase::Open,
            repair: Repair::Nothing,
            forced: None,
            undo: None,
            prior_ssthresh: None,
            retransmitted_at: None,
            rtt: RttEstimator::new(stack),
            delivery: DeliveryCounter::default(),
            rack: Rack::default(),
            reordering: stack.reordering.initial,
            timer: Timer::Off,
            backoff: 0,
            clock: TickClock::new(seed, stack),
            tail_probe: None,
            usage: Usage { limited: false, max_out: 0, round_end: start, used: 0, since: now },
            cwr_due: false,
            last_sent: now,
            small_end: start,
            last_sacks: SackBlocks::default(),
            judged: 0,
            rescued: false,
            burst_open: false,
            chunk: Chunk::default(),
            pacer: Pacer::default(),
            counters: Counters::default(),
            chronograph: None,
            control: AnyControl::new(stack, now, start, seed),
        };
        sender.delivery.record_times(sender.control.controls_window());
        sender.flight.unreported_losses = sender.control.has_loss_feedback().then(Vec::new);
        sender.pacer.set_rate(sender.control.pacing_rate());
        sender
    }

    /// Becomes the end of a new connection, in the same place.
    pub(super) fn restart(&mut self, now: Nanos, seed: u64, stack: &Stack) {
        let room = self.flight.take_slots();
        *self = Self::new(now, 1, seed, stack);
        self.flight.reuse_slots(room);
    }

    /// Keeps account of what nobody but the user of a socket asks for, and of delivery as if any
    /// congestion control could follow on this one.
    pub(super) fn enable_accounting(&mut self) {
        self.chronograph = Some(Box::default());
        self.delivery.record_times(true);
    }

    /// The handshake has told the round-trip time, or nothing where it was retransmitted, and the
    /// receiver's window in bytes.
    pub fn establish(&mut self, now: Nanos, rtt: Option<Nanos>, window: u64, stack: &Stack) {
        match rtt {
            Some(rtt) => {
                self.rtt.update_min(now, rtt);
                self.rtt.sample(rtt, self.una, self.flight.end(), stack);
                self.control.on_established(&self.window, now, rtt);
                self.pacer.set_rate(self.control.pacing_rate());
                self.size_chunks(stack);
            }
            None => self.rtt.fall_back(stack),
        }
        self.allowed = self.una + window;
        self.usage.since = now;
        self.last_sent = now;
    }

    /// The acknowledgement that ended the handshake told the window, so that the next one that tells
    /// the same is a duplicate if it acknowledges nothing: Linux's `tcp_init_wl` of a server.
    pub(super) fn set_window_seq(&mut self, seq: u64) {
        self.window_seq = seq;
    }

    /// The handshake was retransmitted more than once: RFC 5681, section 3.1.
    pub fn restart_window(&mut self) {
        self.window.cwnd = 1;
    }

    /// The application writes `bytes`.
    pub fn write(&mut self, now: Nanos, bytes: u64, stack: &Stack, probe: &mut impl Probe) {
        self.restart_after_idle(now, stack, probe);
        let room = self.flight.in_flight() < self.window.cwnd;
        if self.unsent() < u64::from(stack.mss)
            && room
            && self.flight.lost <= self.flight.retransmitted
        {
            self.delivery.mark_app_limited(self.flight.in_flight());
        }
        self.written += bytes;
    }

    /// The application closes the stream: FIN follows the last byte.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Bytes written and not sent.
    #[inline(always)]
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.flight.end())
    }

    /// Whether all that was written, and FIN after a close, is acknowledged.
    #[inline(always)]
    #[must_use]
    pub fn finished(&self) -> bool {
        self.una == self.written + u64::from(self.closed)
    }

    /// Whether all that was written is acknowledged, FIN or not.
    #[inline(always)]
    #[must_use]
    pub fn data_acknowledged(&self) -> bool {
        self.una >= self.written
    }

    /// Nobody waits for FIN and its acknowledgement: nothing is sent any more.
    pub fn abandon(&mut self) {
        self.closed &= self.fin_sent;
        self.timer = Timer::Off;
        self.forced = None;
        self.repair = Repair::Nothing;
        self.pacer.set_waiting(false);
    }

    /// Whether FIN is acknowledged.
    #[must_use]
    pub fn fin_acknowledged(&self) -> bool {
        self.closed && self.finished()
    }

    /// When a packet that is paced may be sent, [`crate::clock::NEVER`] if none waits: then
    /// [`Sender::poll_transmit`] is to be asked again.
    #[inline(always)]
    #[must_use]
    pub fn pace_at(&self) -> Nanos {
        self.pacer.next_waiting_at()
    }

    /// The next byte to be sent for the first time.
    #[inline(always)]
    #[must_use]
    pub fn next(&self) -> u64 {
        self.flight.end()
    }

    /// The first byte not acknowledged.
    #[inline(always)]
    #[must_use]
    pub fn una(&self) -> u64 {
        self.una
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

    /// The packets out and what is known of them.
    #[must_use]
    pub fn flight(&self) -> &Flight {
        &self.flight
    }

    /// Where it stands in recovery.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The round-trip estimate.
    #[must_use]
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// What it has counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How long it was busy, and held up by the receiver, if it keeps account of that.
    #[must_use]
    pub fn chronograph(&self) -> Option<&Chronograph> {
        self.chronograph.as_deref()
    }

    /// Packets delivered.
    #[must_use]
    pub fn delivery(&self) -> &DeliveryCounter {
        &self.delivery
    }

    /// How many packets may be reordered before a loss is assumed.
    #[must_use]
    pub fn reordering(&self) -> u32 {
        self.reordering
    }

    /// How often reordering was seen.
    #[must_use]
    pub fn reorderings(&self) -> u32 {
        self.rack.reorderings
    }

    /// How often a timer has expired without progress.
    #[must_use]
    pub fn backoff(&self) -> u32 {
        self.backoff
    }

    /// The congestion control.
    #[must_use]
    pub fn control(&self) -> &AnyControl {
        &self.control
    }

    /// The byte after the last one that the receiver takes.
    #[must_use]
    pub fn allowed(&self) -> u64 {
        self.allowed
    }

    /// The threshold to come back to: Linux's `tcp_current_ssthresh`.
    pub(super) fn current_ssthresh(&self) -> u32 {
        if self.phase.reduces() {
            self.window.ssthresh
        } else {
            self.window.ssthresh.max(self.window.cwnd / 2 + self.window.cwnd / 4)
        }
    }

    #[inline(always)]
    pub(super) fn publish_window(&self, now: Nanos, probe: &mut impl Probe) {
        let event = Event::Window {
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            in_flight: self.flight.in_flight(),
        };
        probe.tcp(now, event);
    }

    /// RFC 5681, section 4.1, as Linux does it: the window is halved for each RTO that it was idle,
    /// down to the initial window.
    fn restart_after_idle(&mut self, now: Nanos, stack: &Stack, probe: &mut impl Probe) {
        if !stack.idle_restart || self.flight.out() > 0 || self.control.controls_window() {
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
        probe.tcp(now, Event::IdleRestart);
    }
}
