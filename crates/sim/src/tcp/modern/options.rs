//! A stack as a run is given it: a preset, and the options that are laid over it.

use super::handshake::Handshake;
use super::path::ModernTcp;
use super::stack::{DelayedAcks, Preset, Receiving, Reordering, Stack};
use crate::clock::Nanos;
use serde::Deserialize;
use std::num::NonZeroU32;

/// A preset and options. Windows in packets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StackOptions {
    stack: Preset,
    /// Bytes of data in a full packet.
    mss: NonZeroU32,
    initial_window: u32,
    /// `None` is the preset's buffer.
    receiver_window: Option<u32>,
    delayed_acks: bool,
    /// Of a preset whose delay is fixed.
    #[serde(rename = "ack_timeout_ns")]
    ack_timeout: Nanos,
    #[serde(rename = "min_rto_ns")]
    min_rto: Nanos,
    #[serde(rename = "initial_rto_ns")]
    initial_rto: Nanos,
    #[serde(rename = "max_rto_ns")]
    max_rto: Nanos,
    /// 0 is exact timers.
    #[serde(rename = "rto_granularity_ns")]
    rto_granularity: Nanos,
    duplicate_threshold: u32,
    limited_transmit: bool,
    idle_restart: bool,
    timestamps: bool,
    handshake: Handshake,
    ecn: bool,
}

impl From<StackOptions> for ModernTcp {
    fn from(options: StackOptions) -> Self {
        let preset = options.stack.stack();
        let stack = Stack {
            mss: options.mss.get(),
            initial_window: options.initial_window,
            receiving: options.receiving(preset.receiving),
            min_rto: options.min_rto,
            initial_rto: options.initial_rto,
            max_rto: options.max_rto,
            tick: options.rto_granularity.max(1),
            timer_wheel: preset.timer_wheel && options.rto_granularity > 0,
            reordering: options.reordering(preset.reordering),
            limited_transmit: options.limited_transmit,
            idle_restart: options.idle_restart,
            timestamps: options.timestamps,
            ecn: options.ecn,
            ..preset
        };
        // The network says what the handshake takes.
        Self { stack, handshake: options.handshake, rtt: 0, syn_bytes: 0, closes: false }
    }
}

impl StackOptions {
    fn receiving(&self, preset: Receiving) -> Receiving {
        let delayed_acks = match preset.delayed_acks {
            _ if !self.delayed_acks => DelayedAcks::Off,
            DelayedAcks::Fixed { .. } => DelayedAcks::Fixed { timeout: self.ack_timeout },
            other => other,
        };
        let bytes = |packets| u64::from(packets) * u64::from(self.mss.get());
        let buffer = self.receiver_window.map_or(preset.buffer, bytes);
        let window_growth = if self.receiver_window.is_some() { 0 } else { preset.window_growth };
        Receiving { delayed_acks, buffer, window_growth, ..preset }
    }

    /// A threshold that does not adapt stays fixed.
    fn reordering(&self, preset: Reordering) -> Reordering {
        let initial = self.duplicate_threshold;
        let fixed = preset.most == preset.initial;
        Reordering { initial, most: if fixed { initial } else { preset.most.max(initial) } }
    }
}
