//! What decides on arrival, in front of a first-in first-out queue, whether a packet is dropped or
//! marked early.

use super::{Backlog, QueueProbe};
use crate::packet::{Ecn, Packet};
use crate::time::{NEVER, Nanos};

/// What a packet finds when it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    /// Its length.
    pub bytes: u32,
    /// Its codepoint.
    pub ecn: Ecn,
    /// What waits, without the packet in transmission.
    pub waiting: Backlog,
    /// Since when the transmitter has had nothing to do; `None` if it is busy.
    pub idle_since: Option<Nanos>,
    /// Whether there is room in the buffer.
    pub has_room: bool,
}

/// Whether a packet may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admit {
    /// It may.
    Accept,
    /// It may, and is to be marked: it is ECN-capable.
    Mark,
    /// It is to be dropped.
    Drop,
}

/// A rule that decides on arrival.
pub trait Admission {
    /// Whether it has to hear when packets go into transmission, or has deadlines. One that does not
    /// can decide where departures are known on arrival.
    const FOLLOWS: bool;

    /// A packet arrives. Where there is no room it is dropped whatever the answer.
    fn admit<T>(&mut self, now: Nanos, sight: &Sight, probe: &mut impl QueueProbe<T>) -> Admit;

    /// The packet that was just decided on is dropped because there is no room.
    fn overflows(&mut self) {}

    /// A packet goes into transmission, and leaves so much waiting.
    fn serves<T>(&mut self, _now: Nanos, _packet: &Packet<T>, _waiting: Backlog) {}

    /// When the rule wants [`Admission::on_deadline`] called; [`NEVER`] if it does not.
    fn deadline(&self) -> Nanos {
        NEVER
    }

    /// The deadline has come.
    fn on_deadline(&mut self, _now: Nanos, _waiting: Backlog) {}

    /// Forgets the past.
    fn restart(&mut self, _now: Nanos) {}
}

/// Drops nothing early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open;

impl Admission for Open {
    const FOLLOWS: bool = false;

    #[inline]
    fn admit<T>(&mut self, _now: Nanos, _sight: &Sight, _probe: &mut impl QueueProbe<T>) -> Admit {
        Admit::Accept
    }
}
