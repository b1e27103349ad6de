//! Modern TCP as in Linux, and RFC 6675: both ends of a connection without I/O or clock.
//!
//! A [`Stack`] contains the rules, and [`Preset`] names common stacks. A network simulation drives
//! a [`Sender`] and a [`Receiver`]; a [`Connection`] combines both into a socket, with the
//! handshake and the end of the stream.

mod ack;
mod ack_context;
mod ack_fast_path;
pub mod cc;
mod chronograph;
mod connection;
mod delivery_rate;
mod event;
mod flight;
mod flight_fast_path;
mod handshake;
mod info;
mod loss;
mod offload;
mod options;
mod pacing;
mod packet;
mod packet_header;
mod packet_out;
mod packet_receiver;
mod packet_sender;
mod phase;
mod prefetch;
mod prr;
mod rack;
mod reassembly;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod stack;
mod ticks;
mod timers;
mod transmit;
mod transmit_fast_path;
mod u128_division;
mod window;

pub use connection::{Connection, Flags, Options, Segment, State};
pub use delivery_rate::{DeliveryCounter, DeliveryRate, RateSample};
pub use event::{Event, Probe, UndoReason};
pub use flight::Flight;
pub use handshake::Handshake;
pub use info::Info;
pub use options::ModernTcp;
pub use packet::{Marks, Packet};
pub use packet_header::{AckHeader, DataHeader};
pub use packet_out::PacketOut;
pub use packet_receiver::PacketReceiver;
pub use packet_sender::PacketSender;
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
