//! A link in user space, through which the kernel's own TCP sends.
//!
//! ```text
//! near namespaces          path (crate `link`, by the link's clock)           far namespaces
//!  program -> device ==> loss -> [queue | transmitter] -> jitter -> delay ==> device -> program
//!             device <==                 the same the other way           <== device
//! ```
//!
//! - [`path`] is the link itself: packets in cells of a slab, times as arguments, no I/O.
//! - [`clock`] is the link's time, which stands still while the host is away.
//! - [`device`] moves packets between a namespace and the slab: TAP, or veth; packets are heard by
//!   AF_PACKET at both.
//! - [`forwarding`] is the loop between devices and path under the real clock.
//! - [`traffic`] drives the kernel's TCP with a scenario's flows and counts what they did.
//! - [`sandbox`] makes a process whose namespaces and children die with it, [`network`] what is in
//!   them, [`command`] runs programs at both ends, and [`outside`] is the host behind the far one.
//!
//! Everything here is for Linux; elsewhere the crate is empty.
#![cfg(target_os = "linux")]

pub mod capture;
pub mod clock;
pub mod command;
pub mod device;
pub mod forwarding;
pub mod namespace;
pub mod network;
pub mod nat;
pub mod path;
pub mod sandbox;
mod scheduling;
mod summary;
pub mod traffic;
