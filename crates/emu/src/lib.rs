//! A user-space link for the kernel's TCP.
//!
//! ```text
//! near namespaces       path (crate `link`, by the link's clock)          far namespaces
//!  program -> device ==> loss -> [queue | transmitter] -> jitter -> delay ==> device -> program
//!             device <==    the same components in the other direction    <== device
//! ```
//!
//! - [`path`] is the link: packets in cells of a slab, times as arguments, no I/O.
//! - [`clock`] is the link's clock, which pauses with the host.
//! - [`device`] moves packets between a namespace and the slab: TAP or veth for sending, AF_PACKET
//!   for receiving.
//! - [`forwarding`] is the loop between devices and path, under the real clock.
//! - [`traffic`] sends a scenario's flows with the kernel's TCP and counts their packets.
//! - [`sandbox`] creates a process whose namespaces and children end with it, [`network`] its
//!   namespaces and devices, [`command`] runs programs at both ends, and [`nat`] connects the far
//!   end to the host's network.
//!
//! Supports only Linux; on other systems the crate is empty.
#![cfg(target_os = "linux")]

pub mod capture;
pub mod clock;
pub mod command;
pub mod device;
pub mod forwarding;
pub mod namespace;
pub mod nat;
pub mod network;
pub mod path;
pub mod sandbox;
mod scheduling;
mod summary;
pub mod traffic;
