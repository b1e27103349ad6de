//! Congestion control by code outside of this crate, such as a class of Python.

use super::super::recovery_phase::PhaseName;
use super::super::window::CongestionWindow;
use super::{AckSample, CongestionControl, ControlRules, RecoveryPhaseChange};
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};
use tcpcast_link::time::Nanos;

/// Congestion control of one connection. It sets window and rate also during a recovery.
pub trait ExternalControl: Debug + Send + Sync {
    /// An acknowledgement.
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample);

    /// A recovery from losses begins, or ECN marks were echoed for the first time in a window.
    fn on_loss(&mut self, window: &mut CongestionWindow, now: Nanos);

    /// The retransmission timer expired.
    fn on_timeout(&mut self, window: &mut CongestionWindow, now: Nanos);

    /// Requested pacing rate in bytes per second.
    fn pacing_rate(&self) -> Option<u64>;

    /// A copy with its own state.
    fn duplicate(&self) -> Box<dyn ExternalControl>;
}

/// Creates the congestion control of each connection.
pub trait ExternalControlFactory: Debug + Send + Sync {
    /// Creates the control of a connection.
    fn create(&self, rules: &ControlRules) -> Box<dyn ExternalControl>;
}

/// Number of a factory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalControlId(usize);

static FACTORIES: RwLock<Vec<Arc<dyn ExternalControlFactory>>> = RwLock::new(Vec::new());

impl ExternalControlId {
    /// Registers a factory for the rest of the process.
    pub fn register(factory: Arc<dyn ExternalControlFactory>) -> Self {
        let mut factories = FACTORIES.write().unwrap_or_else(PoisonError::into_inner);
        factories.push(factory);
        Self(factories.len() - 1)
    }

    /// The factory with this number, if it is registered.
    #[must_use]
    pub fn from_number(number: usize) -> Option<Self> {
        let factories = FACTORIES.read().unwrap_or_else(PoisonError::into_inner);
        (number < factories.len()).then_some(Self(number))
    }

    /// Number for [`Self::from_number`].
    #[must_use]
    pub fn number(self) -> usize {
        self.0
    }
}

/// State of a connection.
#[derive(Debug)]
pub struct External(Box<dyn ExternalControl>);

impl Clone for External {
    fn clone(&self) -> Self {
        Self(self.0.duplicate())
    }
}

impl External {
    /// Creates the control of a connection.
    #[must_use]
    pub fn new(id: ExternalControlId, rules: &ControlRules) -> Self {
        let factory = {
            let factories = FACTORIES.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&factories[id.0])
        };
        Self(factory.create(rules))
    }
}

impl CongestionControl for External {
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        self.0.on_ack(window, sample);
    }

    /// The control itself reduces the window when the recovery begins.
    fn ssthresh(&mut self, window: &CongestionWindow) -> u32 {
        window.ssthresh
    }

    fn on_recovery_phase_change(
        &mut self,
        window: &mut CongestionWindow,
        change: &RecoveryPhaseChange,
    ) {
        match change.phase {
            PhaseName::Loss => self.0.on_timeout(window, change.now),
            PhaseName::Recovery | PhaseName::Cwr => self.0.on_loss(window, change.now),
            PhaseName::Open | PhaseName::Disorder => (),
        }
    }

    fn undo_cwnd(&mut self, window: &CongestionWindow) -> u32 {
        window.cwnd
    }

    fn sets_window_and_rate(&self) -> bool {
        true
    }

    fn requested_pacing_rate(&self) -> Option<u64> {
        self.0.pacing_rate()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::presets::Preset;
    use super::super::super::segment::{ArrivingAck, Timestamps, timestamp_at};
    use super::super::super::sender::Sender;
    use super::super::super::stack::Stack;
    use super::super::CongestionControlKind;
    use super::*;
    use tcpcast_link::time::MILLISECOND;

    /// Adds a packet per acknowledgement, and halves the window for a loss.
    #[derive(Clone, Debug)]
    struct Plain;

    impl ExternalControl for Plain {
        fn on_ack(&mut self, window: &mut CongestionWindow, _sample: &AckSample) {
            window.cwnd += 1;
        }

        fn on_loss(&mut self, window: &mut CongestionWindow, _now: Nanos) {
            window.cwnd /= 2;
        }

        fn on_timeout(&mut self, window: &mut CongestionWindow, _now: Nanos) {
            window.cwnd = 1;
        }

        fn pacing_rate(&self) -> Option<u64> {
            None
        }

        fn duplicate(&self) -> Box<dyn ExternalControl> {
            Box::new(self.clone())
        }
    }

    impl ExternalControlFactory for Plain {
        fn create(&self, _rules: &ControlRules) -> Box<dyn ExternalControl> {
            Box::new(self.clone())
        }
    }

    #[test]
    fn external_control_determines_the_window() {
        let id = ExternalControlId::register(Arc::new(Plain));
        assert_eq!(ExternalControlId::from_number(id.number()), Some(id));
        assert_eq!(ExternalControlId::from_number(usize::MAX), None);
        let control = CongestionControlKind::External(id);
        let stack = Stack { control, ..Preset::LinuxReno.stack() };
        let mut sender = Sender::new(0, 1, 7, &stack);
        sender.on_established(0, Some(20 * MILLISECOND), 1 << 40, &stack);
        sender.write_bytes(0, 1 << 20, &stack, &mut ());
        while sender.poll_transmit(0, &stack).is_some() {}
        for packet in 1..=5u64 {
            let timestamps = Some(Timestamps { value: 1, echo: timestamp_at(0) });
            let ack = ArrivingAck {
                ack: 1 + packet * u64::from(stack.mss),
                window: 1 << 40,
                seq: 1,
                timestamps,
                ..ArrivingAck::default()
            };
            sender.on_ack(20 * MILLISECOND, &ack, &stack, &mut ());
        }
        assert_eq!(sender.window.cwnd, 15);
        sender.on_deadline(sender.deadline(), &stack, &mut ());
        while sender.window.cwnd > 1 {
            let due = sender.deadline();
            sender.on_deadline(due, &stack, &mut ());
            while sender.poll_transmit(due, &stack).is_some() {}
        }
        assert_eq!(sender.window.cwnd, 1, "after a timeout");
    }
}
