//! Controlled delay: Nichols, Jacobson, McGregor and Iyengar, RFC 8289 (2018).
//!
//! CoDel measures the sojourn time of each packet on dequeue. If the sojourn time stays above
//! `target` for an `interval`, CoDel drops (or marks) packets at the head; the time between two
//! drops is `interval / sqrt(count)`. Dropping ends when a sojourn time is below `target`, or the
//! backlog is at most one full-sized packet.
//!
//! ```text
//!               above target for an interval: drop one, count = 1 (or close to the count
//!               of the last dropping state, if that ended less than 16 intervals ago)
//!   not dropping ------------------------------------------------> dropping -.
//!        ^                                                             |   ^ | now >= drop_next:
//!        '------------- below target, or at most one packet -----------'   '-' drop, count += 1
//! ```

use super::cobalt::newton_step;
use super::{
    BufferLimits, DropReason, EnqueueOutcome, QueueDiscipline, QueueProbe,
    buffer_occupancy::BufferOccupancy,
};
use crate::packet::{Ecn, Packet};
use crate::ring_buffer::RingBuffer;
use crate::time::{MILLISECOND, NEVER, Nanos};
use serde::Deserialize;

/// Implementation to follow in details in which the RFC and Linux differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodelRules {
    /// Linux's `codel_impl.h`. The inverse square root has 16 bits and one Newton step per drop,
    /// the interval must be exceeded rather than reached, and an empty queue does not restart the
    /// interval. In FQ-CoDel, the backlog that protects the last packet is the total over all
    /// queues, and an empty new queue is removed if there are no old queues.
    #[default]
    Linux,
    /// The pseudo-code of RFC 8289, section 5.
    Rfc8289,
}

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodelConfig {
    /// `TARGET`: acceptable sojourn time.
    #[serde(rename = "target_ns")]
    pub target: Nanos,
    /// `INTERVAL`: time for which sojourn times must exceed the target before a drop.
    #[serde(rename = "interval_ns")]
    pub interval: Nanos,
    /// `MAXPACKET`: length of a full-sized packet in bytes. There are no drops if the backlog is at
    /// most this length.
    pub mtu_bytes: u32,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Linux's `ce_threshold`: sojourn time above which all ECN-capable packets are marked.
    #[serde(rename = "ce_threshold_ns")]
    pub ce_threshold: Option<Nanos>,
    /// Linux's `ce_threshold_selector`: whether the threshold marks only ECT(1), the packets of L4S.
    pub ce_threshold_ect1: bool,
    /// Implementation whose details are followed.
    pub rules: CodelRules,
}

impl Default for CodelConfig {
    /// Linux's defaults: 5 ms, 100 ms, 1500 bytes, without ECN.
    fn default() -> Self {
        Self {
            target: 5 * MILLISECOND,
            interval: 100 * MILLISECOND,
            mtu_bytes: 1500,
            ecn: false,
            ce_threshold: None,
            ce_threshold_ect1: false,
            rules: CodelRules::Linux,
        }
    }
}

/// Access to a queue controlled by CoDel.
pub(super) trait CodelQueueAccess<T> {
    /// Removes the first packet from the queue and the backlog.
    fn take_first(&mut self) -> Option<Packet<T>>;
    /// Backlog in bytes.
    fn backlog(&self) -> u64;
}

/// State of CoDel for one queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodelState {
    /// Time at which sojourn times will have been above the target for an interval; [`NEVER`] while
    /// sojourn times are below the target.
    first_above: Nanos,
    drop_next: Nanos,
    /// Drops in the current dropping state.
    pub count: u32,
    last_count: u32,
    /// Linux's approximation of `1 / sqrt(count)`, times 2^16.
    inverse_root: u16,
    dropping: bool,
}

impl CodelState {
    pub const INITIAL: Self = Self {
        first_above: NEVER,
        drop_next: 0,
        count: 0,
        last_count: 0,
        inverse_root: 0,
        dropping: false,
    };

    /// Drops packets as required, and returns the next packet to transmit.
    #[inline]
    pub fn dequeue_with_drops<T: Copy>(
        &mut self,
        now: Nanos,
        config: &CodelConfig,
        queue: &mut impl CodelQueueAccess<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> Option<Packet<T>> {
        let Some(packet) = queue.take_first() else {
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
            self.continue_dropping(now, config, packet, queue, probe)?
        } else {
            self.enter_dropping_state(now, config, packet, queue, probe)?
        };
        if config.ce_threshold.is_some_and(|max_wait| now - packet.entered > max_wait)
            && (!config.ce_threshold_ect1 || packet.ecn == Ecn::Ect1)
        {
            packet.mark_if_ecn_capable();
        }
        Some(packet)
    }

    /// The `dodequeue` of RFC 8289, section 5.6, for a packet that was just removed.
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

    /// Removes the packet behind a dropped packet, and returns it with the result of `ok_to_drop`.
    fn take_next_after_drop<T>(
        &mut self,
        now: Nanos,
        config: &CodelConfig,
        queue: &mut impl CodelQueueAccess<T>,
    ) -> Option<(Packet<T>, bool)> {
        let Some(packet) = queue.take_first() else {
            self.first_above = NEVER;
            return None;
        };
        let drop = self.ok_to_drop(now, config, &packet, queue.backlog());
        Some((packet, drop))
    }

    /// Drops the packets that are due in the dropping state. A large backlog can make several drops
    /// due simultaneously.
    fn continue_dropping<T: Copy>(
        &mut self,
        now: Nanos,
        config: &CodelConfig,
        mut packet: Packet<T>,
        queue: &mut impl CodelQueueAccess<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> Option<Packet<T>> {
        while self.dropping && now >= self.drop_next {
            self.count = self.count.wrapping_add(1);
            self.newton_step();
            if config.ecn && packet.mark_if_ecn_capable() {
                self.drop_next = self.control_law(self.drop_next, config);
                break;
            }
            probe.on_drop(now, &packet, DropReason::Early);
            let next = self.take_next_after_drop(now, config, queue);
            self.dropping = next.is_some_and(|(_, drop)| drop);
            packet = next?.0;
            if self.dropping {
                self.drop_next = self.control_law(self.drop_next, config);
            }
        }
        Some(packet)
    }

    /// Enters the dropping state with the first drop.
    fn enter_dropping_state<T: Copy>(
        &mut self,
        now: Nanos,
        config: &CodelConfig,
        mut packet: Packet<T>,
        queue: &mut impl CodelQueueAccess<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> Option<Packet<T>> {
        let next = if config.ecn && packet.mark_if_ecn_capable() {
            Some(packet)
        } else {
            probe.on_drop(now, &packet, DropReason::Early);
            self.take_next_after_drop(now, config, queue).map(|(packet, _)| packet)
        };
        self.dropping = true;
        // If the last dropping state is recent, its drop rate is a good start value.
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

    /// Time of the drop after a drop at `from`: `from + interval / sqrt(count)`.
    fn control_law(&self, from: Nanos, config: &CodelConfig) -> Nanos {
        from + match config.rules {
            CodelRules::Linux => {
                ((u128::from(config.interval) * u128::from(self.inverse_root)) >> 16) as Nanos
            }
            CodelRules::Rfc8289 => (config.interval as f64 / f64::from(self.count).sqrt()) as Nanos,
        }
    }

    /// Linux's step, with the upper 16 bits stored. The result wraps if the previous value is
    /// inaccurate, as after many simultaneous drops.
    fn newton_step(&mut self) {
        let root = newton_step(u32::from(self.inverse_root) << 16, self.count);
        self.inverse_root = (root >> 16) as u16;
    }
}

/// A FIFO queue controlled by CoDel.
#[derive(Clone, Debug)]
pub struct Codel<T = u32> {
    config: CodelConfig,
    control: CodelState,
    line: CodelFifo<T>,
}

#[derive(Clone, Debug)]
struct CodelFifo<T> {
    packets: RingBuffer<Packet<T>>,
    occupancy: BufferOccupancy,
}

impl<T: Copy> CodelQueueAccess<T> for CodelFifo<T> {
    #[inline]
    fn take_first(&mut self) -> Option<Packet<T>> {
        let packet = self.packets.pop();
        if let Some(packet) = &packet {
            self.occupancy.waiting.remove_packet(packet.bytes);
        }
        packet
    }

    #[inline]
    fn backlog(&self) -> u64 {
        self.occupancy.waiting.bytes
    }
}

impl<T: Copy> Codel<T> {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(limits: BufferLimits, config: CodelConfig) -> Self {
        let line =
            CodelFifo { packets: RingBuffer::default(), occupancy: BufferOccupancy::new(limits) };
        Self { config, control: CodelState::INITIAL, line }
    }
}

impl<T: Copy> QueueDiscipline<T> for Codel<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> EnqueueOutcome {
        let packet = packet.with_arrival_time(now);
        if !self.line.occupancy.has_room(packet.bytes) {
            probe.on_drop(now, &packet, DropReason::Full);
            return EnqueueOutcome::Dropped(DropReason::Full);
        }
        self.line.occupancy.waiting.add_packet(packet.bytes);
        self.line.packets.push(packet);
        EnqueueOutcome::Accepted
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
        let packet = self.control.dequeue_with_drops(now, &self.config, &mut self.line, probe);
        match &packet {
            Some(packet) => self.line.occupancy.set_in_transmission(packet.bytes),
            None => self.line.occupancy.set_transmitter_idle(),
        }
        packet
    }

    fn occupancy(&self) -> &BufferOccupancy {
        &self.line.occupancy
    }

    fn reset_when_empty(&mut self, _now: Nanos) {
        self.control = CodelState::INITIAL;
    }
}

#[cfg(test)]
#[path = "codel_tests.rs"]
mod tests;
