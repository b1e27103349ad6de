//! Modern TCP as in Linux, and RFC 6675: both ends of a connection without I/O or clock.
//!
//! A [`Stack`] contains the rules, and [`Preset`] names common stacks. A [`Connection`]
//! combines a [`Sender`] and a [`Receiver`] with the handshake and the end of the stream: scripts use
//! it as a socket, and simulations as an [`Endpoint`].

mod accurate_ecn;
mod ack;
mod ack_context;
mod ack_fast_path;
mod activity_durations;
mod buffer_memory;
pub mod cc;
mod connection;
mod delivery_rate;
mod endpoint;
mod flight;
mod flight_fast_path;
mod handshake;
mod kernel_version;
mod loss_phase;
mod offload;
mod outstanding_packet;
mod pacing;
mod packet_events;
mod presets;
mod prr;
mod rack;
mod reassembly;
mod receiver;
mod recovery;
mod recovery_phase;
mod rtt;
mod scoreboard;
mod segment;
mod send_buffer;
mod sender;
mod socket_state;
mod stack;
mod stack_options;
mod tcp_info;
mod tick_clock;
mod timers;
mod transmit;
mod transmit_fast_path;
mod u128_division;
mod window;
mod wire_segment;

pub use accurate_ecn::{AccEcnOption, ReceivedMarks, ReportedMarks};
pub use cc::{
    AckSample, CongestionControlKind, ControlRules, CubicOptions, ExternalControl,
    ExternalControlFactory, ExternalControlId, WindowGrowthUnit,
};
pub use connection::{Connection, ConnectionState, SocketError, Wakeups};
pub use delivery_rate::{DeliveryCounter, DeliveryRate, RateSample};
pub use endpoint::{Endpoint, EndpointRole, SegmentOutcome, SegmentSink};
pub use flight::Flight;
pub use handshake::HandshakeKind;
pub use kernel_version::{HyStartRule, KernelRules, KernelVersion, PrrRule};
pub use outstanding_packet::{OutstandingPacket, PacketMarks};
pub use presets::Preset;
pub(crate) use reassembly::{InsertOutcome, ReassemblyQueue};
pub use receiver::{ArrivingData, Receiver};
pub use recovery_phase::{PhaseName, RecoveryPhase};
pub use rtt::RttEstimator;
pub use segment::{
    ArrivingAck, CumulativeAck, OutgoingAck, PacketToSend, SackBlock, SackBlocks, SendReason,
    Timestamps, timestamp_at,
};
pub use sender::{Sender, SenderCounters};
pub use socket_state::{SendBufferSize, SocketOptions, WriteFlags};
pub use stack::{
    AckDelayRule, ApplicationReading, LossDetection, PacingCondition, PacingRules, ReceiverRules,
    ReorderingThreshold, RttRule, Stack, WindowReduction,
};
pub use stack_options::ModernTcpConfig;
pub use tcp_info::TcpInfo;
pub use tick_clock::{TimerPurpose, TimerSpan};
pub(crate) use u128_division::divide_u128;
pub use window::{CongestionWindow, INFINITE_SSTHRESH};
pub use wire_segment::{Segment, SegmentFlags, SegmentOptions};
