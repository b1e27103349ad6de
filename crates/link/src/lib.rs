//! Links: packets with a length, the queue in front of a transmitter, and random loss.
//!
//! Each function takes the current time as `now`, in integer nanoseconds, and returns the outcome.
//! The crate has no clock, performs no I/O, and is independent of TCP and of the packet source.
//! Therefore a simulator in virtual time and an emulator in real time can use the same queues.
//!
//! ```text
//! packet -> loss / policer -> [ queue discipline | transmitter ] -> packet
//!                             \______________ link ____________/
//! ```
//!
//! - [`queue`]: queue disciplines, which enqueue, drop, mark and schedule packets.
//! - [`transmit`]: transmitters: a constant rate, a token bucket, or a trace of transmission
//!   opportunities.
//! - [`link`]: a discipline in front of a transmitter. [`link::FifoLink`] computes the departure
//!   time on arrival; [`link::QueueingLink`] holds packets until the transmitter is free.
//! - [`loss`]: random loss.
//! - [`remark`]: changes of the ECN field.
//!
//! The caller passes a stream of [`random`] to each component that needs random numbers.

pub mod link;
pub mod loss;
pub mod packet;
pub mod queue;
pub mod random;
pub mod remark;
pub mod request_grant;
pub mod ring_buffer;
pub mod time;
pub mod timing_wheel;
pub mod transmit;

pub use packet::{Ecn, Packet};
pub use time::{NEVER, Nanos};
