//! Congestion control: how large the window is, and for BBR how fast it is sent.

pub mod bbr;
pub mod bbr3;
mod cubic;
mod dctcp;
mod hystart;
pub mod path_model;
mod reno;

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use cubic::CubicControl;
pub use dctcp::DctcpControl;
pub use reno::RenoControl;

use super::delivery_rate::RateSample;
use super::phase::PhaseName;
use super::stack::{Control, Stack};
use super::u128_division::quotient;
use super::window::Window;
use crate::clock::{Nanos, SECOND};

/// What an acknowledgement says to the congestion control. Counts are packets.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When it arrived.
    pub now: Nanos,
    /// The phase after it was judged.
    pub phase: PhaseName,
    /// Newly delivered: acknowledged cumulatively or by SACK for the first time.
    pub delivered: u32,
    /// Newly found lost.
    pub lost: u32,
    /// Found lost in all; wraps.
    pub total_lost: u32,
    /// When the next packet may be sent at the pace.
    pub pace_at: Nanos,
    /// Newly acknowledged cumulatively.
    pub acked: u32,
    /// In flight before it.
    pub prior_in_flight: u32,
    /// In flight after it.
    pub in_flight: u32,
    /// The round-trip time of the packet that was delivered last, if it is unambiguous.
    pub rtt: Option<Nanos>,
    /// Whether a single packet was acknowledged, perhaps late by a delayed acknowledgement.
    pub maybe_delayed: bool,
    /// The smallest round-trip time of the last minutes.
    pub min_rtt: Option<Nanos>,
    /// The smoothed round-trip time.
    pub srtt: Option<Nanos>,
    /// The delivery rate.
    pub rate: RateSample,
    /// Delivered in all; wraps.
    pub total_delivered: u32,
    /// Delivered with an ECN echo in all; wraps.
    pub total_delivered_ce: u32,
    /// The first byte not acknowledged.
    pub una: u64,
    /// The byte after the last one sent.
    pub next: u64,
    /// Whether the window was used up.
    pub cwnd_limited: bool,
    /// Whether as much was in flight as the window has room for, in this round trip.
    pub fills_window: bool,
    /// Bytes of a full packet.
    pub mss: u32,
    /// Packets sent and not acknowledged.
    pub out: u32,
    /// Whether packets are paced.
    pub paced: bool,
}

impl AckSample {
    /// The rate that Linux computes for each connection, in bytes a second: a window in a smoothed
    /// round-trip time, twice that in the first half of slow start, 1.2 times else.
    #[inline]
    #[must_use]
    pub fn window_rate(&self, window: &Window) -> u64 {
        let Some(srtt) = self.srtt.filter(|&srtt| srtt > 0) else { return 0 };
        quotient(window_bytes(window, self.out, self.mss), srtt) as u64
    }
}

#[cfg(test)]
impl AckSample {
    /// An acknowledgement of `delivered` packets with so many left in flight, over 20 ms.
    pub(crate) fn of(now: Nanos, delivered: u32, in_flight: u32) -> Self {
        let rtt = Some(SECOND / 50);
        Self {
            now,
            phase: PhaseName::Open,
            delivered,
            lost: 0,
            total_lost: 0,
            pace_at: now,
            acked: delivered,
            prior_in_flight: in_flight + delivered,
            in_flight,
            rtt,
            maybe_delayed: false,
            min_rtt: rtt,
            srtt: rtt,
            rate: RateSample::default(),
            total_delivered: 0,
            total_delivered_ce: 0,
            una: 0,
            next: 0,
            cwnd_limited: true,
            fills_window: true,
            mss: 1448,
            out: in_flight,
            paced: true,
        }
    }
}

/// [`AckSample::window_rate`] times the smoothed round-trip time in nanoseconds.
#[inline(always)]
#[must_use]
pub fn window_bytes(window: &Window, out: u32, mss: u32) -> u128 {
    let percent = if window.cwnd < window.ssthresh / 2 { 200 } else { 120 };
    let bytes = u128::from(window.cwnd.max(out)) * u128::from(mss);
    // Percent and hundredths of seconds: a whole number of nanoseconds for each.
    bytes * percent * u128::from(SECOND / 100)
}

/// A packet that is found lost.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// When it is.
    pub now: Nanos,
    /// Its number, in the order of the bytes.
    pub number: u32,
    /// Packets in flight with it when it was sent.
    pub in_flight: u32,
    /// Packets found lost since then, this one with them.
    pub lost_since: u32,
    /// Whether the application limited when it was sent.
    pub app_limited: bool,
    /// Delivered in all; wraps.
    pub total_delivered: u32,
}

/// What was delivered and lost so far, in packets; both wrap.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    /// When the last packet was delivered.
    pub at: Nanos,
    /// Delivered.
    pub delivered: u32,
    /// Found lost.
    pub lost: u32,
}

/// The sender changes to another phase, or begins with one anew: each timeout is told.
#[derive(Clone, Copy, Debug)]
pub struct PhaseChange {
    /// To this.
    pub phase: PhaseName,
    /// When.
    pub now: Nanos,
    /// The byte after the last one sent.
    pub next: u64,
    /// What was delivered and lost until then; at a timeout the packets out are taken for lost.
    pub totals: Totals,
}

/// How sending begins with nothing in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitStart {
    /// How long after the last packet.
    pub idle: Nanos,
    /// Whether the application limited before.
    pub app_limited: bool,
}

/// A congestion control.
pub trait CongestionControl {
    /// Before the window is changed: an acknowledgement with its round-trip time.
    fn on_sample(&mut self, _window: &mut Window, _sample: &AckSample) {}

    /// The window may grow, if the sample says that the sender used all of it (`cwnd_limited`).
    /// In recovery only one that governs the window is asked; else PRR brings it to `ssthresh`.
    fn on_ack(&mut self, window: &mut Window, sample: &AckSample);

    /// A packet is found lost; asked only where [`Self::has_loss_feedback`].
    fn on_lost(&mut self, _window: &mut Window, _lost: &LostPacket) {}

    /// The threshold after a loss or a mark.
    fn ssthresh(&mut self, window: &Window) -> u32;

    /// The sender changes to another phase, or a timeout follows another.
    fn on_phase(&mut self, _window: &mut Window, _change: &PhaseChange) {}

    /// The handshake has told a round-trip time.
    fn on_established(&mut self, _window: &Window, _now: Nanos, _rtt: Nanos) {}

    /// A packet is sent with nothing in flight.
    fn on_transmit_start(&mut self, _window: &mut Window, _now: Nanos, _start: TransmitStart) {}

    /// The window when a reduction is undone.
    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        window.cwnd.max(window.before_reduction)
    }

    /// Whether it sets window and rate itself, also while losses are repaired: what asks for a rate
    /// does.
    #[inline(always)]
    fn controls_window(&self) -> bool {
        self.requested_pacing_rate().is_some()
    }

    /// Whether it hears of each packet found lost, with what was in flight when that was sent.
    #[inline(always)]
    fn has_loss_feedback(&self) -> bool {
        false
    }

    /// Whether rate samples of now say nothing of the path, as little is sent on purpose.
    #[inline(always)]
    fn is_probing_rtt(&self) -> bool {
        false
    }

    /// The rate it asks for, in bytes a second.
    #[inline(always)]
    fn requested_pacing_rate(&self) -> Option<u64> {
        None
    }

    /// A word of each line of it that most acknowledgements need.
    #[inline(always)]
    fn prefetch(&self) -> u64 {
        0
    }

    /// Whether a sample with this round-trip time says something to [`Self::on_sample`].
    #[inline(always)]
    fn needs_sample(&self, _window: &Window, _rtt: Option<Nanos>) -> bool {
        false
    }
}

/// Any of them, so that the connections of one run can differ. Each acknowledgement asks several times
/// which one it is: that is a number of its own.
#[derive(Clone, Debug)]
#[repr(u8)]
pub enum AnyControl {
    /// RFC 5681.
    Reno(RenoControl),
    /// RFC 9438.
    Cubic(CubicControl),
    /// RFC 8257.
    Dctcp(DctcpControl),
    /// BBR version 1.
    Bbr(Box<Bbr>),
    /// BBR version 3.
    Bbr3(Box<Bbr3>),
}

macro_rules! each {
    ($self:expr, $control:ident => $call:expr) => {
        match $self {
            AnyControl::Reno($control) => $call,
            AnyControl::Cubic($control) => $call,
            AnyControl::Dctcp($control) => $call,
            AnyControl::Bbr($control) => $call,
            AnyControl::Bbr3($control) => $call,
        }
    };
}

impl AnyControl {
    /// That of a new connection, which begins with byte `start` at `now`; BBR draws from `seed`
    /// where in its cycle it begins, and how long version 3 waits between probes.
    #[must_use]
    pub fn new(stack: &Stack, now: Nanos, start: u64, seed: u64) -> Self {
        match stack.control {
            Control::Reno => Self::Reno(RenoControl::new(stack)),
            Control::Cubic(rules) => Self::Cubic(CubicControl::new(rules, stack, now, start)),
            Control::Dctcp => Self::Dctcp(DctcpControl::new(stack, start)),
            Control::Bbr => Self::Bbr(Box::new(Bbr::new(stack, now, seed))),
            Control::Bbr3 => Self::Bbr3(Box::new(Bbr3::new(stack, now, seed))),
        }
    }

    /// See [`CongestionControl::prefetch`], of one that is no farther away than this.
    #[inline(always)]
    pub(super) fn prefetch(&self) -> u64 {
        match self {
            Self::Reno(control) => control.prefetch(),
            Self::Cubic(control) => control.prefetch(),
            Self::Dctcp(control) => control.prefetch(),
            Self::Bbr(_) | Self::Bbr3(_) => 0,
        }
    }

    /// The same of one that is.
    #[inline(always)]
    pub(super) fn prefetch_second(&self) -> u64 {
        match self {
            Self::Reno(_) | Self::Cubic(_) | Self::Dctcp(_) => 0,
            Self::Bbr(control) => control.prefetch(),
            Self::Bbr3(control) => control.prefetch(),
        }
    }

    /// See [`CongestionControl::controls_window`].
    #[inline(always)]
    #[must_use]
    pub fn controls_window(&self) -> bool {
        each!(self, control => control.controls_window())
    }

    /// See [`CongestionControl::has_loss_feedback`].
    #[inline(always)]
    #[must_use]
    pub fn has_loss_feedback(&self) -> bool {
        each!(self, control => control.has_loss_feedback())
    }

    /// See [`CongestionControl::is_probing_rtt`].
    #[must_use]
    pub fn is_probing_rtt(&self) -> bool {
        each!(self, control => control.is_probing_rtt())
    }

    /// See [`CongestionControl::requested_pacing_rate`].
    #[inline(always)]
    #[must_use]
    pub fn pacing_rate(&self) -> Option<u64> {
        each!(self, control => control.requested_pacing_rate())
    }

    /// See [`CongestionControl::needs_sample`].
    #[inline(always)]
    #[must_use]
    pub fn needs_sample(&self, window: &Window, rtt: Option<Nanos>) -> bool {
        each!(self, control => control.needs_sample(window, rtt))
    }

    /// See [`CongestionControl::on_sample`].
    #[inline(always)]
    pub fn on_sample(&mut self, window: &mut Window, sample: &AckSample) {
        each!(self, control => control.on_sample(window, sample));
    }

    /// See [`CongestionControl::on_ack`], of one that governs; no code is made of the others.
    #[inline(always)]
    pub fn set_window_by_control(&mut self, window: &mut Window, sample: &AckSample) {
        each!(self, control => if control.controls_window() { control.on_ack(window, sample) });
    }

    /// The same, of one that does not.
    #[inline(always)]
    pub fn grow(&mut self, window: &mut Window, sample: &AckSample) {
        each!(self, control => if !control.controls_window() { control.on_ack(window, sample) });
    }

    /// See [`CongestionControl::on_lost`].
    pub fn on_lost(&mut self, window: &mut Window, lost: &LostPacket) {
        each!(self, control => control.on_lost(window, lost));
    }

    /// See [`CongestionControl::ssthresh`].
    pub fn ssthresh(&mut self, window: &Window) -> u32 {
        each!(self, control => control.ssthresh(window))
    }

    /// See [`CongestionControl::on_phase`].
    pub fn on_phase(&mut self, window: &mut Window, change: &PhaseChange) {
        each!(self, control => control.on_phase(window, change));
    }

    /// See [`CongestionControl::on_established`].
    pub fn on_established(&mut self, window: &Window, now: Nanos, rtt: Nanos) {
        each!(self, control => control.on_established(window, now, rtt));
    }

    /// See [`CongestionControl::on_transmit_start`].
    pub fn on_transmit_start(&mut self, window: &mut Window, now: Nanos, start: TransmitStart) {
        each!(self, control => control.on_transmit_start(window, now, start));
    }

    /// See [`CongestionControl::undo_cwnd`].
    pub fn undo_cwnd(&mut self, window: &Window) -> u32 {
        each!(self, control => control.undo_cwnd(window))
    }
}
