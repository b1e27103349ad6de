//! Today's TCP: a preset, and the keys that a scenario lays over it.

use super::unknown;
use pyo3::prelude::*;
use tcpcast_sim::tcp::modern::{
    DelayedAcks, Handshake, ModernTcp, Preset, Receiving, Reordering, Stack,
};

/// Times in nanoseconds, windows in packets.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct ModernDict {
    stack: String,
    /// Bytes of data in a packet.
    mss: u32,
    initial_window: u32,
    /// `None` where it is unlimited.
    receiver_window: Option<u32>,
    delayed_acks: bool,
    ack_timeout_ns: u64,
    min_rto_ns: u64,
    initial_rto_ns: u64,
    max_rto_ns: u64,
    rto_granularity_ns: u64,
    duplicate_threshold: u32,
    limited_transmit: bool,
    idle_restart: bool,
    timestamps: bool,
    /// See `Handshake`.
    handshake: String,
    ecn: bool,
}

impl ModernDict {
    pub(super) fn into_tcp(self) -> PyResult<ModernTcp> {
        let preset = Preset::named(&self.stack).ok_or_else(|| unknown("stack", &self.stack))?;
        let preset = preset.stack();
        let stack = Stack {
            mss: self.mss,
            initial_window: self.initial_window,
            receiving: self.receiving(preset.receiving),
            min_rto: self.min_rto_ns,
            initial_rto: self.initial_rto_ns,
            max_rto: self.max_rto_ns,
            tick: self.rto_granularity_ns.max(1),
            timer_wheel: preset.timer_wheel && self.rto_granularity_ns > 0,
            reordering: self.reordering(preset.reordering),
            limited_transmit: self.limited_transmit,
            idle_restart: self.idle_restart,
            timestamps: self.timestamps,
            ecn: self.ecn,
            ..preset
        };
        let handshake = Handshake::named(&self.handshake)
            .ok_or_else(|| unknown("handshake", &self.handshake))?;
        // The network says what the handshake takes.
        Ok(ModernTcp { stack, handshake, rtt: 0, syn_bytes: 0, closes: false })
    }

    fn receiving(&self, preset: Receiving) -> Receiving {
        let delayed_acks = match preset.delayed_acks {
            _ if !self.delayed_acks => DelayedAcks::Off,
            DelayedAcks::Fixed { .. } => DelayedAcks::Fixed { timeout: self.ack_timeout_ns },
            other => other,
        };
        let bytes = |packets| u64::from(packets) * u64::from(self.mss);
        let buffer = self.receiver_window.map_or(preset.buffer, bytes);
        Receiving { delayed_acks, buffer, ..preset }
    }

    /// A threshold that does not adapt stays fixed.
    fn reordering(&self, preset: Reordering) -> Reordering {
        let initial = self.duplicate_threshold;
        let fixed = preset.most == preset.initial;
        Reordering { initial, most: if fixed { initial } else { preset.most.max(initial) } }
    }
}
