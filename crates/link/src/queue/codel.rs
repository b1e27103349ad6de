//! Controlled delay: Nichols, Jacobson, McGregor and Iyengar, RFC 8289 (2018).
//!
//! The queue is judged by how long packets have waited when they leave. Once that has been above
//! `target` for a whole `interval`, packets are dropped at the head (or marked), the next one
//! `interval / sqrt(count)` after the last, until a packet has waited for less than `target` or no
//! more than one packet of full size is left.
//!
//! ```text
//!               above target for an interval: drop one, count = 1
//!               (or nearly the last cycle's count, if that is less than 16 intervals ago)
//!   not dropping ------------------------------------------------> dropping -.
//!        ^                                                             |   ^ | now >= drop_next:
//!        '------------- below target, or one packet left --------------'   '-' drop, count += 1
//! ```

use super::{Backlog, Limits, QueueDiscipline, QueueProbe, Reason, Verdict, occupancy::Occupancy};
use crate::packet::Packet;
use crate::ring::Ring;
use crate::time::{MILLISECOND, NEVER, Nanos};
use serde::Deserialize;

/// Whose details are followed, where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodelRules {
    /// Linux's `codel_impl.h`: the inverse square root has 16 bits and takes one Newton step a drop,
    /// an interval has to be exceeded rather than reached, an empty queue does not begin it anew, and
    /// in FQ-CoDel the backlog that keeps the last packet is that of all queues, and a new queue that is
    /// empty is forgotten if there are no old ones.
    #[default]
    Linux,
    /// The pseudo-code of RFC 8289, section 5.
    Rfc8289,
}

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodelConfig {
    /// How long a packet may wait: `TARGET`.
    #[serde(rename = "target_ns")]
    pub target: Nanos,
    /// How long packets have to wait longer before one is dropped: `INTERVAL`.
    #[serde(rename = "interval_ns")]
    pub interval: Nanos,
    /// Bytes of a packet of full size, `MAXPACKET`: nothing is dropped when no more is left.
    pub mtu_bytes: u32,
    /// Whether packets that are ECN-capable are marked instead of dropped.
    pub ecn: bool,
    /// A wait above which ECN-capable packets are marked anyway: Linux's `ce_threshold`.
    #[serde(rename = "ce_threshold_ns")]
    pub ce_threshold: Option<Nanos>,
    /// Whose details.
    pub rules: CodelRules,
}

impl Default for CodelConfig {
    /// 5 ms, 100 ms, 1500 bytes, without ECN, as Linux has it.
    fn default() -> Self {
        Self {
            target: 5 * MILLISECOND,
            interval: 100 * MILLISECOND,
            mtu_bytes: 1500,
            ecn: false,
            ce_threshold: None,
            rules: CodelRules::Linux,
        }
    }
}

/// A queue whose head CoDel controls.
pub(super) trait Head<T> {
    /// Takes the packet that came first, which no longer counts as waiting.
    fn take(&mut self) -> Option<Packet<T>>;
    /// Bytes that wait.
    fn backlog(&self) -> u64;
}

/// What CoDel remembers of one queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    /// When packets will have waited for more than the target for an interval; [`NEVER`] while they
    /// do not.
    first_above: Nanos,
    drop_next: Nanos,
    /// Drops since the dropping state was entered.
    pub count: u32,
    last_count: u32,
    /// Linux's approximation of `1 / sqrt(count)`, times 2^16.
    inverse_root: u16,
    dropping: bool,
}

impl Control {
    pub const START: Self = Self {
        first_above: NEVER,
        drop_next: 0,
        count: 0,
        last_count: 0,
        inverse_root: 0,
        dropping: false,
    };

    /// Takes the next packet that is not dropped.
    #[inline]
    pub fn dequeue<T: Copy>(
        &mut self,
        now: Nanos,
        config: &CodelConfig,
        queue: &mut impl Head<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> Option<Packet<T>> {
        let Some(packet) = queue.take() else {
            self.dropping = false;
            if config.rules == CodelRules::Rfc8289 {
                self.first_above = NEVER;
            }
            return None;
        };
        let drop = self.ok_to_drop(now, config, &packet, queue.backlog());
        let mut packet = if !drop {
            self.dropping = false;
            packet
        } else if self.dropping {
            self.go_on(now, config, packet, queue, probe)?
        } else {
            self.enter(now, config, packet, queue, probe)?
        };
        if config.ce_threshold.is_some_and(|most| now - packet.entered > most) {
            packet.mark();
        }
        Some(packet)
    }

    /// The `dodequeue` of RFC 8289, section 5.6, for a packet that was just taken.
    #[inline]
    fn ok_to_drop<T>(
        &mut self,
        now: Nanos,
        config: &CodelConfig,
        packet: &Packet<T>,
        backlog: u64,
    ) -> bool {
        let sojourn = now - packet.entered;
        if sojourn < config.target || backlog <= u64::from(config.mtu_bytes) {
            self.first_above = NEVER;
            return false;
        }
        if self.first_above == NEVER {
            self.first_above = now + config.interval;
            return false;
        }
        match config.rules {
            CodelRules::Linux => now > self.first_above,
            CodelRules::Rfc8289 => now >= self.first_above,
        }
    }

    /// Likewise for the packet behind one that was dropped; `None` if there is none.
    fn take_next<T>(
        &mut self,
        now: Nanos,
        config: &CodelConfig,
        queue: &mut impl Head<T>,
    ) -> Option<(Packet<T>, bool)> {
        let Some(packet) = queue.take() else {
            self.first_above = NEVER;
            return None;
        };
        let drop = self.ok_to_drop(now, config, &packet, queue.backlog());
        Some((packet, drop))
    }

    /// In the dropping state: drops what is due. A large backlog can make several drops due at once.
    fn go_on<T: Copy>(
        &mut self,
        now: Nanos,
        config: &CodelConfig,
        mut packet: Packet<T>,
        queue: &mut impl Head<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> Option<Packet<T>> {
        while self.dropping && now >= self.drop_next {
            self.count = self.count.wrapping_add(1);
            self.newton_step();
            if config.ecn && packet.mark() {
                self.drop_next = self.control_law(self.drop_next, config);
                break;
            }
            probe.dropped(now, &packet, Reason::Early);
            let next = self.take_next(now, config, queue);
            self.dropping = next.is_some_and(|(_, drop)| drop);
            packet = next?.0;
            if self.dropping {
                self.drop_next = self.control_law(self.drop_next, config);
            }
        }
        Some(packet)
    }

    /// Enters the dropping state with a first drop.
    fn enter<T: Copy>(
        &mut self,
        now: Nanos,
        config: &CodelConfig,
        mut packet: Packet<T>,
        queue: &mut impl Head<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> Option<Packet<T>> {
        let next = if config.ecn && packet.mark() {
            Some(packet)
        } else {
            probe.dropped(now, &packet, Reason::Early);
            self.take_next(now, config, queue).map(|(packet, _)| packet)
        };
        self.dropping = true;
        // If the queue was controlled not long ago, the rate that did it is a good one to begin with.
        let delta = self.count.wrapping_sub(self.last_count);
        if delta > 1 && now.saturating_sub(self.drop_next) < 16 * config.interval {
            self.count = delta;
            self.newton_step();
        } else {
            self.count = 1;
            self.inverse_root = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.control_law(now, config);
        next
    }

    /// When the drop after one at `from` is due: `from + interval / sqrt(count)`.
    fn control_law(&self, from: Nanos, config: &CodelConfig) -> Nanos {
        from + match config.rules {
            CodelRules::Linux => {
                ((u128::from(config.interval) * u128::from(self.inverse_root)) >> 16) as Nanos
            }
            CodelRules::Rfc8289 => (config.interval as f64 / f64::from(self.count).sqrt()) as Nanos,
        }
    }

    /// `x <- x (3 - count x^2) / 2`, in Linux's arithmetic: of 32 bits, the upper 16 kept, and modulo
    /// 2^64 where the last value was far off, as it is after many drops at once.
    fn newton_step(&mut self) {
        let root = u64::from(self.inverse_root) << 16;
        let square = (root * root) >> 32;
        let rest = (3_u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.inverse_root = ((rest.wrapping_mul(root) >> 31) as u32 >> 16) as u16;
    }
}

/// One queue controlled by CoDel.
#[derive(Clone, Debug)]
pub struct Codel<T = u32> {
    config: CodelConfig,
    control: Control,
    line: Line<T>,
}

#[derive(Clone, Debug)]
struct Line<T> {
    packets: Ring<Packet<T>>,
    occupancy: Occupancy,
}

impl<T: Copy> Head<T> for Line<T> {
    #[inline]
    fn take(&mut self) -> Option<Packet<T>> {
        let packet = self.packets.pop();
        if let Some(packet) = &packet {
            self.occupancy.waiting.remove(packet.bytes);
        }
        packet
    }

    #[inline]
    fn backlog(&self) -> u64 {
        self.occupancy.waiting.bytes
    }
}

impl<T: Copy> Codel<T> {
    /// An empty queue.
    #[must_use]
    pub fn new(limits: Limits, config: CodelConfig) -> Self {
        let line = Line { packets: Ring::default(), occupancy: Occupancy::new(limits) };
        Self { config, control: Control::START, line }
    }
}

impl<T: Copy> QueueDiscipline<T> for Codel<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> Verdict {
        let packet = packet.enter(now);
        if !self.line.occupancy.has_room(packet.bytes) {
            probe.dropped(now, &packet, Reason::Full);
            return Verdict::Dropped(Reason::Full);
        }
        self.line.occupancy.waiting.add(packet.bytes);
        self.line.packets.push(packet);
        Verdict::Accepted
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
        let packet = self.control.dequeue(now, &self.config, &mut self.line, probe);
        match &packet {
            Some(packet) => self.line.occupancy.transmit(packet.bytes),
            None => self.line.occupancy.idle(),
        }
        packet
    }

    fn waiting(&self) -> Backlog {
        self.line.occupancy.waiting
    }

    fn held(&self) -> Backlog {
        self.line.occupancy.held()
    }

    fn restart(&mut self, _now: Nanos) {
        self.control = Control::START;
    }
}

#[cfg(test)]
#[path = "codel_tests.rs"]
mod tests;
