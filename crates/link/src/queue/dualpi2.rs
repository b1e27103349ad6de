//! Dual-queue coupled AQM with PI2: RFC 9332 (2023), appendix A, with the details of Linux's
//! `sch_dualpi2.c` (6.17).
//!
//! ```text
//!              ECT(1), CE   .---------.  mark with max(ramp or step, k p)
//!           .-------------->| L queue |------------.
//!  packets -|               '---------'            |- weighted round robin ->
//!           '-------------->| C queue |------------'
//!                 others    '---------'  drop or mark with p^2
//!
//!  p: PI controller of the longer delay at the head of the two queues
//! ```
//!
//! The controller updates p every `update`: `p += alpha (delay - target) + beta (delay - previous)`.
//! Coupled marking and dropping pause while less than two full packets wait. If `k p` exceeds 1, the
//! link is overloaded: C packets are dropped even if they are ECN-capable, and with `drop_overload`
//! L packets are dropped with `p^2` as well; the others are marked.

use super::{
    BufferLimits, DropReason, EnqueueOutcome, QueueDiscipline, QueueProbe,
    buffer_occupancy::BufferOccupancy,
};
use crate::packet::{Ecn, Packet};
use crate::random::{RandomSource, RandomStream};
use crate::ring_buffer::RingBuffer;
use crate::time::{MILLISECOND, Nanos};
use serde::Deserialize;

/// The parameters of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DualPi2Config {
    /// `target`: delay of the C queue to which the controller steers.
    #[serde(rename = "target_ns")]
    pub target: Nanos,
    /// `tupdate`: interval between updates of the probability; above 0. The work while a packet
    /// waits is proportional to the number of updates.
    #[serde(rename = "update_ns")]
    pub update: Nanos,
    /// Change of the probability per second of delay above the target.
    pub alpha: f64,
    /// Change of the probability per second of increase in delay.
    pub beta: f64,
    /// `coupling_factor` k: coupled probability of the L queue by the probability p.
    pub coupling: f64,
    /// `step_thresh`: sojourn time above which the L queue marks every packet.
    #[serde(rename = "step_ns")]
    pub step: Nanos,
    /// Range of sojourn times above the threshold in which the marking probability of the L queue
    /// rises from 0 to 1 (RFC 9332, appendix A.1); 0 for a step.
    #[serde(rename = "ramp_ns")]
    pub ramp: Nanos,
    /// `min_qlen_step`: packets that an arriving L packet must find in the L queue to be marked by
    /// the threshold.
    pub min_step_packets: u64,
    /// `classic_protection`: share of the C queue in per cent if both queues hold packets; at most
    /// 100.
    pub classic_protection: u8,
    /// Whether L packets are dropped in overload.
    pub drop_overload: bool,
    /// Whether packets are dropped or marked by p on arrival instead of on departure.
    pub drop_early: bool,
    /// `any_ect`: whether all ECN-capable packets use the L queue, ECT(0) included.
    pub any_ect: bool,
    /// `split_gso`: whether bursts of segmentation offload are split before they are enqueued. The
    /// owner of the link splits them, because only the owner knows their packets.
    pub split_gso: bool,
    /// Length of a full-sized packet in bytes.
    pub mtu_bytes: u32,
}

impl Default for DualPi2Config {
    /// Linux's defaults.
    fn default() -> Self {
        Self {
            target: 15 * MILLISECOND,
            update: 16 * MILLISECOND,
            alpha: 41.0 / 256.0,
            beta: 819.0 / 256.0,
            coupling: 2.0,
            step: MILLISECOND,
            ramp: 0,
            min_step_packets: 0,
            classic_protection: 10,
            drop_overload: true,
            drop_early: false,
            any_ect: false,
            split_gso: true,
            mtu_bytes: 1500,
        }
    }
}

/// A packet of the L queue.
#[derive(Clone, Copy, Debug)]
struct LowLatencyPacket<T> {
    packet: Packet<T>,
    /// Whether the threshold applies.
    steps: bool,
}

/// What the probability p decides about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    None,
    Mark,
    Drop,
}

/// The DualPI2 discipline.
#[derive(Clone, Debug)]
pub struct DualPi2<T = u32, D = RandomStream> {
    config: DualPi2Config,
    draws: D,
    classic: RingBuffer<Packet<T>>,
    low_latency: RingBuffer<LowLatencyPacket<T>>,
    occupancy: BufferOccupancy,
    /// p: the probability of the controller.
    probability: f64,
    previous_delay: Nanos,
    update_at: Nanos,
    /// Credit of the scheduler in bytes times per cent; the C queue is next if it is above 0.
    credit: i64,
}

impl<T: Copy, D: RandomSource> DualPi2<T, D> {
    /// Creates an empty queue with p = 0 and the first update at `config.update`.
    #[must_use]
    pub fn new(limits: BufferLimits, config: DualPi2Config, draws: D) -> Self {
        let mut queue = Self {
            config,
            draws,
            classic: RingBuffer::default(),
            low_latency: RingBuffer::default(),
            occupancy: BufferOccupancy::new(limits),
            probability: 0.0,
            previous_delay: 0,
            update_at: config.update.max(1),
            credit: 0,
        };
        queue.reset_credit();
        queue
    }

    /// Probability p of the controller: `p^2` for the C queue, `k p` for the L queue.
    #[must_use]
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// Weights of the C queue and of the L queue.
    fn weights(&self) -> (i64, i64) {
        let classic = i64::from(self.config.classic_protection.min(100));
        (classic, 100 - classic)
    }

    fn reset_credit(&mut self) {
        let (classic, low_latency) = self.weights();
        self.credit = i64::from(self.config.mtu_bytes) * (classic - low_latency);
    }

    fn uses_low_latency(&self, ecn: Ecn) -> bool {
        matches!(ecn, Ecn::Ect1 | Ecn::Ce) || self.config.any_ect && ecn == Ecn::Ect0
    }

    /// Decides by p whether to drop or mark a packet.
    fn draw_signal(&mut self, ecn: Ecn, is_low_latency: bool) -> Signal {
        let p = self.probability;
        if self.occupancy.waiting.bytes < 2 * u64::from(self.config.mtu_bytes) || p == 0.0 {
            return Signal::None;
        }
        let coupled = self.config.coupling * p;
        let overload = coupled > 1.0;
        if is_low_latency && !overload {
            return if self.draws.draw_chance(coupled) { Signal::Mark } else { Signal::None };
        }
        let is_drawn = (!is_low_latency || self.config.drop_overload)
            && self.draws.draw_chance(p)
            && self.draws.draw_chance(p);
        match is_drawn {
            true if overload || !ecn.is_ecn_capable() => Signal::Drop,
            true => Signal::Mark,
            false if is_low_latency => Signal::Mark, // overload
            false => Signal::None,
        }
    }

    /// Whether the threshold of the L queue marks a departing packet.
    fn marks_by_threshold(&mut self, now: Nanos, entry: &LowLatencyPacket<T>) -> bool {
        let above = (now - entry.packet.entered).saturating_sub(self.config.step);
        let ramp = self.config.ramp;
        entry.steps
            && above > 0
            && (above >= ramp || self.draws.draw_chance(above as f64 / ramp as f64))
    }

    /// Removes the next packet. Returns it with its queue and the change of the credit if it leaves.
    fn take_next(&mut self) -> Option<(LowLatencyPacket<T>, bool, i64)> {
        let both = !self.classic.is_empty() && !self.low_latency.is_empty();
        let (classic, low_latency) = self.weights();
        let is_low_latency = self.classic.is_empty() || both && self.credit <= 0;
        let (entry, weight) = if is_low_latency {
            (self.low_latency.pop()?, classic)
        } else {
            (LowLatencyPacket { packet: self.classic.pop()?, steps: false }, -low_latency)
        };
        self.occupancy.waiting.remove_packet(entry.packet.bytes);
        let change = if both { weight * i64::from(entry.packet.bytes) } else { 0 };
        Some((entry, is_low_latency, change))
    }

    /// The longer of the sojourn times at the heads of the two queues.
    fn head_delay(&self, now: Nanos) -> Nanos {
        let heads = [self.classic.first(), self.low_latency.first().map(|entry| &entry.packet)];
        heads.iter().flatten().map(|packet| now - packet.entered).max().unwrap_or(0)
    }

    /// Updates p `count` times by the same step, computed at `now`.
    fn update_probability(&mut self, now: Nanos, count: u64) {
        let delay = self.head_delay(now);
        let seconds = |late: Nanos, early: Nanos| (late as f64 - early as f64) / 1e9;
        let step = self.config.alpha * seconds(delay, self.config.target)
            + self.config.beta * seconds(delay, self.previous_delay);
        // Without drops in overload, the L queue marks all packets, and only a full buffer drops
        // packets.
        let max = if self.config.drop_overload { 1.0 } else { 1.0 / self.config.coupling.max(1.0) };
        self.probability = (self.probability + count as f64 * step).clamp(0.0, max);
        self.previous_delay = delay;
    }
}

impl<T: Copy, D: RandomSource> QueueDiscipline<T> for DualPi2<T, D> {
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> EnqueueOutcome {
        let mut packet = packet.with_arrival_time(now);
        if !self.occupancy.has_room(packet.bytes) {
            probe.on_drop(now, &packet, DropReason::Full);
            return EnqueueOutcome::Dropped(DropReason::Full);
        }
        // The queue is chosen by the codepoint on arrival, before a mark.
        let is_low_latency = self.uses_low_latency(packet.ecn);
        let signal = match self.config.drop_early {
            true => self.draw_signal(packet.ecn, is_low_latency),
            false => Signal::None,
        };
        if signal == Signal::Drop {
            probe.on_drop(now, &packet, DropReason::Early);
            return EnqueueOutcome::Dropped(DropReason::Early);
        }
        let marked = signal == Signal::Mark && packet.mark_if_ecn_capable();
        self.occupancy.waiting.add_packet(packet.bytes);
        if is_low_latency {
            let steps = self.low_latency.len() as u64 >= self.config.min_step_packets;
            self.low_latency.push(LowLatencyPacket { packet, steps });
        } else {
            self.classic.push(packet);
        }
        if marked { EnqueueOutcome::Marked } else { EnqueueOutcome::Accepted }
    }

    fn dequeue(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
        while let Some((entry, is_low_latency, credit_change)) = self.take_next() {
            let mut packet = entry.packet;
            let signal = match self.config.drop_early {
                true => Signal::None,
                false => self.draw_signal(packet.ecn, is_low_latency),
            };
            if signal == Signal::Drop {
                probe.on_drop(now, &packet, DropReason::Early);
                continue;
            }
            if self.marks_by_threshold(now, &entry) || signal == Signal::Mark {
                packet.mark_if_ecn_capable();
            }
            self.credit += credit_change;
            self.occupancy.set_in_transmission(packet.bytes);
            return Some(packet);
        }
        self.reset_credit();
        self.occupancy.set_transmitter_idle();
        None
    }

    fn occupancy(&self) -> &BufferOccupancy {
        &self.occupancy
    }

    fn deadline(&self) -> Nanos {
        self.update_at
    }

    fn on_deadline(&mut self, now: Nanos) {
        let every = self.config.update.max(1);
        while self.update_at <= now {
            // All further updates of an empty queue take the same step; there may be many.
            let is_idle = self.occupancy.waiting.packets == 0 && self.previous_delay == 0;
            let count = if is_idle { (now - self.update_at) / every + 1 } else { 1 };
            self.update_probability(self.update_at, count);
            self.update_at = self.update_at.saturating_add(count.saturating_mul(every));
        }
    }

    fn reset_when_empty(&mut self, now: Nanos) {
        self.probability = 0.0;
        self.previous_delay = 0;
        self.reset_credit();
        self.update_at = now + self.config.update.max(1);
    }
}

#[cfg(test)]
#[path = "dualpi2_tests.rs"]
mod tests;
