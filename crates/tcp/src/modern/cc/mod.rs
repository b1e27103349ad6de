//! Congestion control: window size, and pacing rate for BBR and TFRC.
//!
//! A new congestion control is a file in this folder, a row of `controls!`, and a row of
//! `presets!` (`presets.rs`).

pub mod bbr;
pub mod bbr3;
mod congestion_control;
mod cubic;
mod dctcp;
pub mod external;
mod fractional_cubic;
mod hystart;
mod multcp;
pub mod path_model;
mod prague;
mod reno;
mod tfrc;

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use congestion_control::{
    AckSample, CongestionControl, ControlRules, DeliveryTotals, LostPacket, RecoveryPhaseChange,
    TransmitStart, WindowGrowthUnit, window_bytes,
};
pub use cubic::{CubicControl, CubicOptions};
pub use dctcp::DctcpControl;
pub use external::{External, ExternalControl, ExternalControlFactory, ExternalControlId};
pub use fractional_cubic::FractionalCubic;
pub use multcp::MulTcpControl;
pub use prague::{PragueControl, PragueOptions};
pub use reno::RenoControl;
pub use tfrc::Tfrc;

use self::path_model::{BbrState, BurstRules};
use super::window::CongestionWindow;
use std::num::NonZeroU16;
use tcpcast_link::time::Nanos;

/// One row per congestion control: its name, its options if it has any, the type of its state, and
/// an expression that creates the state. `$d` is the dollar sign, which the inner macro needs.
macro_rules! controls {
    ($d:tt |$rules:ident, $now:ident, $start:ident, $seed:ident| $(
        $(#[$doc:meta])+
        $control:ident $(($options:ident: $options_type:ty))?: $state:ty = $new:expr,
    )+) => {
        /// Congestion control and its options.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CongestionControlKind {
            $($(#[$doc])+ $control $(($options_type))?,)+
        }

        /// State of any congestion control, so that connections of a run can differ. `repr(u8)`
        /// makes the match on the variant, which happens for each acknowledgement, cheap.
        #[derive(Clone, Debug)]
        #[repr(u8)]
        pub enum AnyCongestionControl {
            $($(#[$doc])+ $control($state),)+
        }

        impl AnyCongestionControl {
            /// Creates the congestion control of a connection that begins with byte `start` at
            /// `now`. `seed` determines the phase of BBR's cycle, and the times between probes of
            /// version 3.
            #[must_use]
            pub fn new(
                kind: CongestionControlKind,
                $rules: &ControlRules,
                $now: Nanos,
                $start: u64,
                $seed: u64,
            ) -> Self {
                match kind {
                    $(CongestionControlKind::$control $(($options))? => Self::$control($new),)+
                }
            }
        }

        /// Evaluates an expression with the state, for each type of state.
        macro_rules! each {
            ($d any:expr, $d state:ident => $d call:expr) => {
                match $d any {
                    $(AnyCongestionControl::$control($d state) => $d call,)+
                }
            };
        }
    };
}

controls! {
    $ |rules, now, start, seed|
    /// RFC 5681.
    Reno: RenoControl = RenoControl::new(rules),
    /// RFC 9438.
    Cubic(options: CubicOptions): CubicControl = CubicControl::new(options, rules, now, start),
    /// RFC 8312 with a window in bytes.
    FractionalCubic: FractionalCubic = FractionalCubic::default(),
    /// RFC 8257.
    Dctcp: DctcpControl = DctcpControl::new(rules, start),
    /// draft-briscoe-iccrg-prague-congestion-control.
    Prague(options: PragueOptions): Box<PragueControl> =
        Box::new(PragueControl::new(options, rules, start)),
    /// MulTCP (Crowcroft and Oechslin, 1998), with the number of Reno flows that it emulates.
    MulTcp(flows: NonZeroU16): MulTcpControl = MulTcpControl::new(flows, rules),
    /// BBR version 1 as in Linux (draft-cardwell-iccrg-bbr-congestion-control-00).
    Bbr: Box<Bbr> = Box::new(Bbr::new(rules, now, seed)),
    /// BBR version 3 (draft-ietf-ccwg-bbr-06).
    Bbr3: Box<Bbr3> = Box::new(Bbr3::new(rules, now, seed)),
    /// RFC 5348.
    Tfrc: Box<Tfrc> = Box::new(Tfrc::new(rules, now)),
    /// Code outside of this crate.
    External(id: ExternalControlId): External = External::new(id, rules),
}

impl CongestionControlKind {
    /// Bursts that this algorithm sends, if they are not those of Linux.
    #[must_use]
    pub fn bursts(self) -> Option<BurstRules> {
        match self {
            Self::Prague(options) => Some(options.bursts()),
            _ => None,
        }
    }
}

impl AnyCongestionControl {
    /// See [`CongestionControl::sets_window_and_rate`].
    #[inline(always)]
    #[must_use]
    pub fn sets_window_and_rate(&self) -> bool {
        each!(self, control => control.sets_window_and_rate())
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

    /// See [`CongestionControl::bbr_state`].
    #[must_use]
    pub fn bbr_state(&self) -> Option<BbrState> {
        each!(self, control => control.bbr_state())
    }

    /// See [`CongestionControl::requested_pacing_rate`].
    #[inline(always)]
    #[must_use]
    pub fn pacing_rate(&self) -> Option<u64> {
        each!(self, control => control.requested_pacing_rate())
    }

    /// See [`CongestionControl::needs_rtt_sample`].
    #[inline(always)]
    #[must_use]
    pub fn needs_rtt_sample(&self, window: &CongestionWindow, rtt: Option<Nanos>) -> bool {
        each!(self, control => control.needs_rtt_sample(window, rtt))
    }

    /// See [`CongestionControl::on_rtt_sample`].
    #[inline(always)]
    pub fn on_rtt_sample(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        each!(self, control => control.on_rtt_sample(window, sample));
    }

    /// See [`CongestionControl::on_ack`]; only for algorithms that set the window; for other
    /// algorithms the call is compiled out.
    #[inline(always)]
    pub fn set_window(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        each!(self, control => if control.sets_window_and_rate() { control.on_ack(window, sample) });
    }

    /// See [`CongestionControl::on_ack`]; only for algorithms that do not set the window.
    #[inline(always)]
    pub fn grow_window(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        each!(self, control => if !control.sets_window_and_rate() { control.on_ack(window, sample) });
    }

    /// See [`CongestionControl::on_lost_packet`].
    pub fn on_lost_packet(&mut self, window: &mut CongestionWindow, lost: &LostPacket) {
        each!(self, control => control.on_lost_packet(window, lost));
    }

    /// See [`CongestionControl::ssthresh`].
    pub fn ssthresh(&mut self, window: &CongestionWindow) -> u32 {
        each!(self, control => control.ssthresh(window))
    }

    /// See [`CongestionControl::on_recovery_phase_change`].
    pub fn on_recovery_phase_change(
        &mut self,
        window: &mut CongestionWindow,
        change: &RecoveryPhaseChange,
    ) {
        each!(self, control => control.on_recovery_phase_change(window, change));
    }

    /// See [`CongestionControl::on_established`].
    pub fn on_established(&mut self, window: &CongestionWindow, now: Nanos, rtt: Nanos) {
        each!(self, control => control.on_established(window, now, rtt));
    }

    /// See [`CongestionControl::on_transmit_start`].
    pub fn on_transmit_start(
        &mut self,
        window: &mut CongestionWindow,
        now: Nanos,
        start: TransmitStart,
    ) {
        each!(self, control => control.on_transmit_start(window, now, start));
    }

    /// See [`CongestionControl::undo_cwnd`].
    pub fn undo_cwnd(&mut self, window: &CongestionWindow) -> u32 {
        each!(self, control => control.undo_cwnd(window))
    }
}
