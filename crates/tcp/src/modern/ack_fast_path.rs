//! The fast path saves 13 % of the instructions in the row `linux-cubic` of the benchmark EVEN.
//!
//! Handles most acknowledgements: no packet is missing, and this acknowledgement reports no missing
//! packets. Each step also exists in [`super::ack`]; steps without effect in this case are omitted,
//! so fewer facts have to be collected.

use super::ack_context::AckContext;
use super::flight_fast_path::AckedPackets;
use super::recovery_phase::RecoveryPhase;
use super::segment::CumulativeAck;
use super::sender::{AllowedRetransmissions, Sender};
use super::stack::{LossDetection, Stack};
use crate::tcp_event::TcpProbe;
use tcpcast_link::time::Nanos;

impl Sender {
    /// Processes an acknowledgement without SACK blocks; returns false if the acknowledgement needs
    /// the slow path.
    #[inline(always)]
    pub(super) fn on_ack_fast_path(
        &mut self,
        now: Nanos,
        ack: &CumulativeAck,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) -> bool {
        if !self.can_use_fast_path(ack, stack) {
            return false;
        }
        let mut ctx = AckContext::from_in_order_sender(now, self);
        let Some(acked) = self.flight.take_acked_in_order(ack.ack) else { return false };
        ctx.echo = ack.echo;
        ctx.advanced = true;
        self.backoff = 0;
        self.update_peer_window(ack, &mut ctx);
        self.una = ack.ack;
        self.count_delivered_run(&acked, &mut ctx);
        let prior = Some(acked.delivered);
        ctx.maybe_delayed = self.may_be_delayed_ack(&ctx, prior, stack);
        self.update_rtt(&mut ctx, stack, probe);
        self.report_rtt(&ctx, stack);
        if matches!(stack.detection, LossDetection::Rack { static_window: false, .. }) {
            self.rack.adapt_reordering_window(self.delivery.delivered, prior);
        }
        self.repair = AllowedRetransmissions::Nothing;
        self.arm_timer_after_ack(now, stack);
        if self.control.sets_window_and_rate() {
            let newest = self.flight.last_removed_packet(&acked);
            self.run_congestion_control(&ctx, Some(&newest), stack);
        } else {
            self.finish_ack_without_rate_sample(&ctx, Some(acked.sent.1));
            self.grow_window(&ctx, stack);
            self.set_pacing_rate_from_window(&ctx, stack);
        }
        true
    }

    /// Whether the fast path applies, provided that `ack` acknowledges at least one packet and all
    /// acknowledged packets were sent once. One of these packets can be a tail loss probe.
    #[inline(always)]
    fn can_use_fast_path(&self, ack: &CumulativeAck, stack: &Stack) -> bool {
        matches!(self.phase, RecoveryPhase::Open)
            && !(ack.ece && stack.ecn)
            && self.tail_probe.is_none_or(|probe| ack.ack < probe.high)
            && stack.detection.uses_sack()
            && self.flight.is_in_order()
            && self.delivery.has_no_pending_delivery()
            && ack.ack <= self.flight.end_byte()
    }

    /// Updates counters for packets that were sent once and in order: the last packet suffices.
    #[inline(always)]
    fn count_delivered_run(&mut self, acked: &AckedPackets, ctx: &mut AckContext) {
        ctx.acked = acked.packets;
        ctx.acked_sent = Some(acked.sent);
        self.delivery.count_delivered(acked.packets, false);
        self.rack.on_in_order_delivery(ctx.now, acked.sent.1, acked.end);
    }
}

#[cfg(test)]
mod tests {
    use super::super::presets::Preset;
    use super::super::segment::{ArrivingAck, SackBlock, SackBlocks, Timestamps, timestamp_at};
    use super::super::transmit_fast_path::FullPacketRun;
    use super::*;
    use proptest::prelude::*;
    use tcpcast_link::time::MILLISECOND;

    const RTT: Nanos = 50 * MILLISECOND;

    fn sender(stack: &Stack) -> Sender {
        let mut sender = Sender::new(0, 1, 7, stack);
        sender.on_established(0, Some(RTT), 1 << 40, stack);
        sender.write_bytes(0, 900 * u64::from(stack.mss) - 100, stack, &mut ());
        sender
    }

    /// Sends all allowed packets and returns their numbers and first bytes.
    fn send(sender: &mut Sender, now: Nanos, in_runs: bool, stack: &Stack) -> Vec<(u32, u64)> {
        if sender.deadline() <= now {
            sender.on_deadline(now, stack, &mut ());
        }
        let mut sent = vec![];
        loop {
            let run = if in_runs {
                sender.transmit_full_packet_run(now, &mut false, stack)
            } else {
                None
            };
            if let Some(FullPacketRun { first, packets, ends, .. }) = run {
                let start = |n| first.start + u64::from(n) * u64::from(first.len);
                sent.extend((0..packets).map(|n| (first.number + n, start(n))));
                if ends {
                    return sent;
                }
                if packets > 0 {
                    continue;
                }
            }
            let Some(packet) = sender.poll_transmit(now, stack) else { return sent };
            sent.push((packet.number, packet.start));
        }
    }

    /// Acknowledges a number of packets, optionally part of the next one, and optionally a SACK
    /// block.
    fn ack(sender: &Sender, now: Nanos, step: (u64, bool, bool), stack: &Stack) -> ArrivingAck {
        let mss = u64::from(stack.mss);
        let (packets, partly, gap) = step;
        let more = packets * mss + if partly { 100 } else { 0 };
        let ack = (sender.una() + more).min(sender.next_byte());
        let (start, end) = (ack + mss, ack + 2 * mss);
        let block = (gap && end <= sender.next_byte()).then_some(SackBlock { start, end });
        let stamps = Timestamps { value: 1, echo: timestamp_at(now.saturating_sub(RTT)) };
        ArrivingAck {
            ack,
            window: 1 << 40,
            seq: 1,
            sacks: block.into_iter().collect::<SackBlocks>(),
            timestamps: stack.timestamps.then_some(stamps),
            ..ArrivingAck::default()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Fast path and slow path produce the same sender state, and so do sending in runs and
        /// sending packets one by one.
        #[test]
        fn fast_path_equals_slow_path(
            preset in 0..Preset::ALL.len(),
            steps in prop::collection::vec(
                (0_u64..60, 0_u64..4, prop::bool::weighted(0.1), prop::bool::weighted(0.2)),
                1..200,
            ),
        ) {
            let stack = Preset::ALL[preset].stack();
            let (mut fast, mut slow) = (sender(&stack), sender(&stack));
            let mut now = RTT;
            for (gap, packets, partly, sacks) in steps {
                let sent = send(&mut fast, now, true, &stack);
                prop_assert_eq!(sent, send(&mut slow, now, false, &stack));
                now += gap * MILLISECOND;
                let ack = ack(&fast, now, (packets, partly, sacks), &stack);
                fast.on_ack(now, &ack, &stack, &mut ());
                slow.on_ack_slow_path(now, &ack, &stack, &mut ());
                prop_assert_eq!(format!("{fast:?}"), format!("{slow:?}"));
            }
        }
    }
}
