//! Links: packets with a length, the queue in front of a transmitter, random loss and delay.
//!
//! Everything takes `now` in integer nanoseconds and returns what happens; there is no clock, no
//! I/O, and no knowledge of TCP or of where packets come from. So the same queue serves a
//! simulator in virtual time and an emulator under a real clock.
//!
//! ```text
//! packet -> loss / policer -> [ queue discipline | transmitter ] -> delay line -> packet
//!                             \______________ link ____________/
//! ```
//!
//! - [`queue`]: disciplines, which say who waits, who is dropped or marked, and who is next.
//! - [`transmit`]: how long a packet takes: a constant rate, a token bucket, a trace of packet
//!   opportunities.
//! - [`link`]: a discipline in front of a transmitter, of one of two kinds: the departure is known on
//!   arrival, or packets are held until the transmitter is free.
//! - [`loss`], [`delay`]: random loss, propagation and jitter.
//!
//! Whoever needs random numbers is handed a stream of [`random`].

pub mod delay;
pub mod link;
pub mod loss;
pub mod packet;
pub mod queue;
pub mod random;
pub mod ring;
pub mod time;
pub mod transmit;

pub use packet::{Ecn, Packet};
pub use time::{NEVER, Nanos};
