//! The TCP of today as it is in Linux, and RFC 6675 beside it: both ends of a connection without
//! I/O or clock.
//!
//! A [`Stack`] says what the rules are; [`Preset`] has those that are in use. A network drives a
//! [`Sender`] and a [`Receiver`]; a [`Connection`] is both, with the handshake and the end of the
//! stream, as one socket has them.

mod ack;
mod answers;
mod carried;
pub mod cc;
mod chronograph;
mod connection;
mod delivery_rate;
mod ends;
mod event;
mod fetch;
mod flight;
mod handshake;
mod heard;
mod in_order;
mod info;
mod loss;
mod offload;
mod options;
mod pacing;
mod packet;
mod path;
mod phase;
mod plain;
mod prr;
mod rack;
mod reassembly;
mod receiver;
mod recovery;
mod rtt;
mod runs;
mod scoreboard;
mod segment;
mod sender;
mod stack;
mod ticks;
mod timers;
mod transmit;
mod wide;
mod window;

pub use answers::PacketReceiver;
pub use carried::{AckHeader, DataHeader};
pub use connection::{Connection, Flags, Options, Segment, State};
pub use delivery_rate::{DeliveryCounter, DeliveryRate, RateSample};
pub use ends::PacketSender;
pub use event::{Event, Probe, UndoReason};
pub use flight::Flight;
pub use handshake::Handshake;
pub use info::Info;
pub use packet::{Marks, Packet};
pub use path::{ModernTcp, PacketOut};
pub use phase::{Phase, PhaseName};
pub use receiver::{Data, Ecn, Receiver};
pub use rtt::RttEstimator;
pub use segment::{
    Ack, Cumulative, Outgoing, SackBlock, SackBlocks, Sending, Timestamps, Transmit, stamp,
};
pub use sender::{Counters, Sender};
pub use stack::{
    Control, Cubic, DelayedAcks, Detection, Growth, Pacing, Preset, Reading, Receiving, Reduction,
    Reordering, RttRule, Stack,
};
pub use ticks::Span;
pub use timers::Timer;
pub use window::{INFINITE_SSTHRESH, Window};
