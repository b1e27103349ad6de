//! Configuration of a stack: a preset and options that override its rules.

use super::buffer_memory::BufferMemory;
use super::cc::{CongestionControlKind, CubicOptions, ExternalControlId, PragueOptions};
use super::handshake::HandshakeKind;
use super::kernel_version::{KernelRules, KernelVersion};
use super::presets::Preset;
use super::send_buffer::data_of_send_buffer;
use super::socket_state::{SendBufferSize, SocketOptions};
use super::stack::{
    AckDelayRule, PacingCondition, PacingRules, ReceiverRules, ReorderingThreshold, Stack,
};
use crate::packet_kind::{HEADER_BYTES, TIMESTAMP_BYTES};
use crate::quic::QuicRules;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::num::{NonZeroU16, NonZeroU32};
use tcpcast_link::time::Nanos;

/// A stack and the handshake of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "StackOptions")]
pub struct ModernTcpConfig {
    /// Rules of both ends.
    pub stack: Stack,
    /// Handshake before the data of a connection.
    pub handshake: HandshakeKind,
    /// First round-trip sample if there is no handshake. Set by the network.
    pub rtt: Nanos,
    /// Whether the sender closes its connection after a file. Set by the network.
    pub closes: bool,
}

/// Bytes of an Ethernet header, which `fq` counts.
const ETHERNET_BYTES: u32 = 14;

/// Minimum number of packets that a connection may hand to `fq` before they are due:
/// `tcp_small_queue_check`. At higher rates, Linux allows the data of a millisecond.
const SMALL_QUEUE_PACKETS: u32 = 2;

/// What paces packets.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PacingOption {
    /// TCP itself, if the congestion control requests a rate.
    Internal,
    /// The queue discipline `fq` of the sending host, for all congestion controls.
    Fq,
    /// TCP itself, for all congestion controls and at most at this rate in bit/s.
    MaxRateBps(u64),
    /// Nothing.
    Off,
}

/// Use of ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EcnOption {
    Off,
    /// The receiver echoes marks until the sender has reduced its window (RFC 3168), or each mark.
    Classic,
    /// RFC 9768.
    Accurate,
}

/// Maximum memory of the buffers of a socket.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SocketBuffersOption {
    /// The buffers limit nothing.
    Unlimited,
    /// The defaults of the release of Linux.
    Kernel,
    /// The defaults of Linux 5.15.
    #[serde(rename = "linux-5.15")]
    Linux515,
    /// The defaults of Linux 6.18.
    #[serde(rename = "linux-6.18")]
    Linux618,
    /// Third values of `tcp_wmem` and `tcp_rmem`, in bytes.
    Bytes { send: u64, receive: u64 },
}

/// Second value of `tcp_wmem`.
const INITIAL_WMEM: u64 = 16_384;
/// Third value of `tcp_wmem` by default.
const DEFAULT_WMEM: u64 = 4 << 20;

impl SocketBuffersOption {
    /// Memory of the send buffer and of the receive buffer.
    fn memory(self, kernel: &KernelRules) -> Option<(u64, BufferMemory)> {
        match self {
            Self::Unlimited => None,
            Self::Kernel => Some((DEFAULT_WMEM, kernel.receive_memory)),
            Self::Linux515 => Some((DEFAULT_WMEM, BufferMemory::LINUX_5_15)),
            Self::Linux618 => Some((DEFAULT_WMEM, BufferMemory::LINUX_6_18)),
            Self::Bytes { send, receive } => {
                Some((send, BufferMemory { max: receive, ..kernel.receive_memory }))
            }
        }
    }
}

/// Options of a socket whose application waits for space in the send buffer.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct SocketOption {
    /// Third value of `tcp_wmem`, in bytes.
    send_buffer: u64,
    /// `TCP_NOTSENT_LOWAT`, in bytes.
    notsent_lowat: Option<u64>,
}

impl SocketOption {
    fn options(self) -> SocketOptions {
        let initial = INITIAL_WMEM.min(self.send_buffer);
        SocketOptions {
            send_buffer: SendBufferSize::Growing { initial, max: self.send_buffer },
            notsent_lowat: self.notsent_lowat.unwrap_or(u64::MAX),
            ..SocketOptions::default()
        }
    }
}

/// A preset and its options. Windows in packets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StackOptions {
    stack: Preset,
    kernel: KernelVersion,
    /// Bytes of data in a full packet.
    mss: NonZeroU32,
    initial_window: u32,
    /// `None` selects the buffer of the preset.
    receiver_window: Option<u32>,
    delayed_acks: bool,
    /// Used only by presets with a fixed delay.
    #[serde(rename = "ack_timeout_ns")]
    ack_timeout: Nanos,
    #[serde(rename = "min_rto_ns")]
    min_rto: Nanos,
    #[serde(rename = "initial_rto_ns")]
    initial_rto: Nanos,
    #[serde(rename = "max_rto_ns")]
    max_rto: Nanos,
    /// 0 selects exact timers.
    #[serde(rename = "rto_granularity_ns")]
    rto_granularity: Nanos,
    duplicate_threshold: u32,
    limited_transmit: bool,
    idle_restart: bool,
    timestamps: bool,
    handshake: HandshakeKind,
    fast_open: bool,
    ecn: EcnOption,
    pacing: PacingOption,
    socket_buffers: SocketBuffersOption,
    /// Number of an external congestion control, which replaces that of the preset.
    #[serde(default, deserialize_with = "deserialize_external")]
    external: Option<ExternalControlId>,
    /// `None` if the send buffer accepts all data.
    socket: Option<SocketOption>,
    nodelay: bool,
    /// Used only by MulTCP.
    virtual_flows: NonZeroU16,
    /// Used only by Prague.
    ecn_fallback: bool,
    /// `None` selects certificates of a usual size.
    #[serde(default)]
    certificate: Option<u32>,
    /// Rules of QUIC, if it replaces TCP; omitted for TCP.
    #[serde(default)]
    quic: Option<QuicRules>,
}

/// Reads the number of a registered congestion control.
fn deserialize_external<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ExternalControlId>, D::Error> {
    let number = Option::<usize>::deserialize(deserializer)?;
    let id = |number| {
        ExternalControlId::from_number(number).ok_or_else(|| {
            D::Error::custom(format!("no congestion control {number} is registered"))
        })
    };
    number.map(id).transpose()
}

impl From<StackOptions> for ModernTcpConfig {
    fn from(options: StackOptions) -> Self {
        let preset = options.stack.stack();
        let stack = Stack {
            control: options.congestion_control(preset.control),
            kernel: options.kernel.rules(),
            mss: options.mss.get(),
            initial_window: options.initial_window,
            receiving: options.receiver_rules(preset.receiving),
            min_rto: options.min_rto,
            initial_rto: options.initial_rto,
            max_rto: options.max_rto,
            tick: options.rto_granularity.max(1),
            timer_wheel: preset.timer_wheel && options.rto_granularity > 0,
            reordering: options.reordering_threshold(preset.reordering),
            limited_transmit: options.limited_transmit,
            idle_restart: options.idle_restart,
            timestamps: options.timestamps,
            ecn: options.ecn != EcnOption::Off,
            accurate_ecn: options.ecn == EcnOption::Accurate,
            pacing: options.pacing_rules(),
            no_delay: options.nodelay,
            fast_open: options.fast_open,
            socket: options.socket.map(SocketOption::options),
            max_send_buffer: options
                .socket_buffers
                .memory(&options.kernel.rules())
                .map_or(u64::MAX, |(send, _)| data_of_send_buffer(send, options.mss.get())),
            certificate: options.certificate.unwrap_or(preset.certificate),
            quic: options.quic,
            ..preset
        };
        // The network sets the remaining fields.
        Self { stack, handshake: options.handshake, rtt: 0, closes: false }
    }
}

impl StackOptions {
    fn congestion_control(&self, preset: CongestionControlKind) -> CongestionControlKind {
        if let Some(id) = self.external {
            return CongestionControlKind::External(id);
        }
        match preset {
            CongestionControlKind::MulTcp(_) => CongestionControlKind::MulTcp(self.virtual_flows),
            CongestionControlKind::Prague(options) => {
                CongestionControlKind::Prague(PragueOptions {
                    fallback: self.ecn_fallback,
                    ..options
                })
            }
            CongestionControlKind::Cubic(_)
                if self.quic.as_ref().is_some_and(|rules| rules.fractional_cubic) =>
            {
                CongestionControlKind::FractionalCubic
            }
            CongestionControlKind::Cubic(options) => {
                // In QUIC, slow start of CUBIC ends only by loss.
                let ends_early = self.quic.is_none();
                CongestionControlKind::Cubic(CubicOptions {
                    hystart: self.kernel.rules().hystart,
                    hystart_train: options.hystart_train && ends_early,
                    hystart_delay: options.hystart_delay && ends_early,
                    ..options
                })
            }
            other => other,
        }
    }

    fn pacing_rules(&self) -> PacingRules {
        let options = if self.timestamps { TIMESTAMP_BYTES } else { 0 };
        let counts_frames = self.kernel.rules().fq_counts_frames;
        let always = PacingRules { condition: PacingCondition::Always, ..PacingRules::INTERNAL };
        match self.pacing {
            PacingOption::Internal => PacingRules::INTERNAL,
            PacingOption::Fq => PacingRules {
                header_bytes: u32::from(counts_frames) * (ETHERNET_BYTES + HEADER_BYTES + options),
                queued_packets: SMALL_QUEUE_PACKETS,
                ..always
            },
            PacingOption::MaxRateBps(rate) => PacingRules { max_rate: rate / 8, ..always },
            PacingOption::Off => {
                PacingRules { condition: PacingCondition::Never, ..PacingRules::INTERNAL }
            }
        }
    }

    fn receiver_rules(&self, preset: ReceiverRules) -> ReceiverRules {
        let delayed_acks = match preset.delayed_acks {
            _ if !self.delayed_acks => AckDelayRule::Off,
            AckDelayRule::Fixed { .. } => AckDelayRule::Fixed { timeout: self.ack_timeout },
            other => other,
        };
        let bytes = |packets| u64::from(packets) * u64::from(self.mss.get());
        let buffer = self.receiver_window.map_or(preset.buffer, bytes);
        let window_growth = if self.receiver_window.is_some() { 0 } else { preset.window_growth };
        let memory = self.socket_buffers.memory(&self.kernel.rules()).map(|(_, receive)| receive);
        let memory = memory.filter(|_| self.receiver_window.is_none());
        ReceiverRules { delayed_acks, buffer, window_growth, memory, ..preset }
    }

    /// Keeps the threshold fixed if it is fixed in the preset.
    fn reordering_threshold(&self, preset: ReorderingThreshold) -> ReorderingThreshold {
        let initial = self.duplicate_threshold;
        let fixed = preset.max == preset.initial;
        ReorderingThreshold { initial, max: if fixed { initial } else { preset.max.max(initial) } }
    }
}
