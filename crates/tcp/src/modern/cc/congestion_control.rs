//! The interface of a congestion control, and the events that it receives.

use super::super::delivery_rate::RateSample;
use super::super::recovery_phase::PhaseName;
use super::super::u128_division::divide_u128;
use super::super::window::CongestionWindow;
use super::path_model::BbrState;
use tcpcast_link::time::{Nanos, SECOND};

/// Unit of window growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowGrowthUnit {
    /// Acknowledged packets.
    PacketsAcked,
    /// Acknowledgements.
    EachAck,
}

/// Rules of a stack that congestion controls need.
#[derive(Clone, Copy, Debug)]
pub struct ControlRules {
    /// Bytes of data per full packet.
    pub mss: u32,
    /// Initial congestion window, in packets.
    pub initial_window: u32,
    /// Unit of window growth.
    pub growth: WindowGrowthUnit,
    /// Minimum retransmission timeout.
    pub min_rto: Nanos,
    /// Tick of the clock.
    pub tick: Nanos,
    /// Whether both ends use SACK.
    pub uses_sack: bool,
    /// Whether both ends use ECN.
    pub uses_ecn: bool,
}

/// Input of congestion control for one acknowledgement. Counts are packets.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Arrival time.
    pub now: Nanos,
    /// Recovery phase after the acknowledgement.
    pub phase: PhaseName,
    /// Newly delivered: acknowledged cumulatively or by SACK for the first time.
    pub delivered: u32,
    /// Newly detected losses.
    pub lost: u32,
    /// Total losses; wraps.
    pub total_lost: u32,
    /// Time at which the pacer allows the next packet.
    pub pace_at: Nanos,
    /// Newly acknowledged cumulatively.
    pub acked: u32,
    /// In flight before the acknowledgement.
    pub prior_in_flight: u32,
    /// In flight after the acknowledgement.
    pub in_flight: u32,
    /// Round-trip time of the packet delivered last, if unambiguous.
    pub rtt: Option<Nanos>,
    /// Whether a single packet was acknowledged, possibly by a delayed acknowledgement.
    pub maybe_delayed: bool,
    /// Minimum round-trip time of the last minutes.
    pub min_rtt: Option<Nanos>,
    /// Smoothed round-trip time.
    pub srtt: Option<Nanos>,
    /// Delivery rate sample.
    pub rate: RateSample,
    /// Total packets delivered; wraps.
    pub total_delivered: u32,
    /// Total packets delivered with an ECN echo; wraps.
    pub total_delivered_ce: u32,
    /// First unacknowledged byte.
    pub una: u64,
    /// Byte after the last one sent.
    pub next: u64,
    /// Whether the window limited the rate.
    pub cwnd_limited: bool,
    /// Whether the packets in flight filled the window in this round trip.
    pub fills_window: bool,
    /// Bytes of a full packet.
    pub mss: u32,
    /// Outstanding packets.
    pub out: u32,
    /// Whether packets are paced.
    pub paced: bool,
}

impl AckSample {
    /// Pacing rate that Linux computes from the window, in bytes per second: the window divided by
    /// the smoothed round-trip time, times 2 in the first half of slow start and times 1.2
    /// otherwise.
    #[inline]
    #[must_use]
    pub fn pacing_rate_of_window(&self, window: &CongestionWindow) -> u64 {
        let Some(srtt) = self.srtt.filter(|&srtt| srtt > 0) else { return 0 };
        divide_u128(window_bytes(window, self.out, self.mss), srtt) as u64
    }
}

#[cfg(test)]
impl AckSample {
    /// An acknowledgement of `delivered` packets with `in_flight` packets left and an RTT of 20 ms.
    pub(crate) fn for_test(now: Nanos, delivered: u32, in_flight: u32) -> Self {
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

/// Returns [`AckSample::pacing_rate_of_window`] times the smoothed round-trip time in nanoseconds.
#[inline(always)]
#[must_use]
pub fn window_bytes(window: &CongestionWindow, out: u32, mss: u32) -> u128 {
    let percent = if window.cwnd < window.ssthresh / 2 { 200 } else { 120 };
    let bytes = u128::from(window.cwnd.max(out)) * u128::from(mss);
    // A second in nanoseconds is divided by the 100 of the percentage, because this is exact.
    bytes * percent * u128::from(SECOND / 100)
}

/// A packet detected as lost.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// Time of detection.
    pub now: Nanos,
    /// Packet number, in the order of bytes.
    pub number: u32,
    /// Packets in flight, including this one, when it was sent.
    pub in_flight: u32,
    /// Packets lost since then, including this one.
    pub lost_since: u32,
    /// Whether the rate was limited by the application when it was sent.
    pub app_limited: bool,
    /// Total packets delivered; wraps.
    pub total_delivered: u32,
}

/// Totals of delivered and lost packets so far; both wrap.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryTotals {
    /// Time of the last delivery.
    pub at: Nanos,
    /// Packets delivered.
    pub delivered: u32,
    /// Packets lost.
    pub lost: u32,
}

/// A change of the recovery phase. Each timeout is reported, even without a change.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryPhaseChange {
    /// New phase.
    pub phase: PhaseName,
    /// Time of the change.
    pub now: Nanos,
    /// Byte after the last one sent.
    pub next: u64,
    /// Totals at the change; at a timeout the outstanding packets count as lost.
    pub totals: DeliveryTotals,
}

/// Start of sending with nothing in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitStart {
    /// Time since the last packet was sent.
    pub idle: Nanos,
    /// Whether the rate was limited by the application before.
    pub app_limited: bool,
}

/// A congestion control algorithm.
pub trait CongestionControl {
    /// An acknowledgement with its round-trip time, before the window changes.
    fn on_rtt_sample(&mut self, _window: &mut CongestionWindow, _sample: &AckSample) {}

    /// The window may grow if the window limited the rate (`cwnd_limited` of the sample). In
    /// recovery, called only if [`Self::sets_window_and_rate`]; otherwise PRR reduces the window to
    /// `ssthresh`.
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample);

    /// A packet is detected as lost; called only if [`Self::has_loss_feedback`].
    fn on_lost_packet(&mut self, _window: &mut CongestionWindow, _lost: &LostPacket) {}

    /// Returns the threshold after a loss or a mark.
    fn ssthresh(&mut self, window: &CongestionWindow) -> u32;

    /// The recovery phase changes, or a timeout follows another one.
    fn on_recovery_phase_change(
        &mut self,
        _window: &mut CongestionWindow,
        _change: &RecoveryPhaseChange,
    ) {
    }

    /// The handshake has measured a round-trip time.
    fn on_established(&mut self, _window: &CongestionWindow, _now: Nanos, _rtt: Nanos) {}

    /// A packet is sent with nothing in flight.
    fn on_transmit_start(
        &mut self,
        _window: &mut CongestionWindow,
        _now: Nanos,
        _start: TransmitStart,
    ) {
    }

    /// Returns the window after a reduction is undone.
    fn undo_cwnd(&mut self, window: &CongestionWindow) -> u32 {
        window.cwnd.max(window.before_reduction)
    }

    /// Whether this algorithm sets window and rate itself, even during recovery. True if the
    /// algorithm requests a pacing rate.
    #[inline(always)]
    fn sets_window_and_rate(&self) -> bool {
        self.requested_pacing_rate().is_some()
    }

    /// Whether this algorithm is notified of each loss, with the flight size when the packet was
    /// sent.
    #[inline(always)]
    fn has_loss_feedback(&self) -> bool {
        false
    }

    /// Whether BBR probes for the minimum round-trip time. Few packets are sent meanwhile, so rate
    /// samples do not describe the path.
    #[inline(always)]
    fn is_probing_rtt(&self) -> bool {
        false
    }

    /// State of the model, if this is BBR.
    fn bbr_state(&self) -> Option<BbrState> {
        None
    }

    /// Requested pacing rate, in bytes per second.
    #[inline(always)]
    fn requested_pacing_rate(&self) -> Option<u64> {
        None
    }

    /// Whether [`Self::on_rtt_sample`] uses a sample with this round-trip time.
    #[inline(always)]
    fn needs_rtt_sample(&self, _window: &CongestionWindow, _rtt: Option<Nanos>) -> bool {
        false
    }
}
