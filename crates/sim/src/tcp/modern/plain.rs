//! The way of most acknowledgements: nothing is missing, and this one says of nothing that is. Each
//! step is one of [`super::ack`]; those that would find nothing to do are left out, so that what
//! was heard need not be kept together for them.

use super::event::Probe;
use super::heard::Heard;
use super::phase::Phase;
use super::segment::Ack;
use super::sender::{Repair, Sender};
use super::stack::{Detection, Stack};
use crate::clock::Nanos;

impl Sender {
    /// Whether an acknowledgement takes this way: it acknowledges a packet or more, and packets in
    /// flight have been sent once and all in their order.
    #[inline(always)]
    pub(super) fn is_plain(&self, ack: &Ack, stack: &Stack) -> bool {
        self.phase == Phase::Open
            && ack.sacks.is_empty()
            && !(ack.ece && stack.ecn)
            && self.tail_probe.is_none()
            && stack.detection.uses_sack()
            && self.flight.is_in_order()
            && self.flight.acknowledges_first(ack.ack)
    }

    /// Such an acknowledgement arrives.
    #[inline(always)]
    pub(super) fn on_plain_ack(
        &mut self,
        now: Nanos,
        ack: &Ack,
        stack: &Stack,
        probe: &mut impl Probe,
    ) {
        let mut heard = Heard::begin(now, self);
        heard.echo = ack.timestamps.map(|stamps| stamps.echo);
        heard.advanced = true;
        self.backoff = 0;
        self.hear_window(ack, &mut heard);
        self.una = ack.ack;
        self.take_in_order(&mut heard);
        heard.maybe_delayed = self.may_be_delayed(&heard, stack);
        self.hear_rtt(&mut heard, stack, probe);
        self.tell_control(&heard, stack, probe);
        if matches!(stack.detection, Detection::Rack { static_window: false, .. }) {
            self.rack.adapt(self.delivery.delivered, self.delivery.prior_delivered());
        }
        self.repair = Repair::Nothing;
        self.arm_after_ack(now, stack);
        self.control_window(&heard, stack);
    }

    /// Of packets that were sent once and in their order the last one says it all.
    #[inline(always)]
    fn take_in_order(&mut self, heard: &mut Heard) {
        let taken = self.flight.take_in_order(self.una);
        heard.acked = taken.packets;
        heard.acked_sent = Some((taken.first_sent, taken.last.sent_at));
        self.delivery.count(taken.packets, false);
        self.delivery.on_delivered(&taken.last, taken.end);
        self.rack.on_delivered_once(heard.now, taken.last.sent_at, taken.end);
    }
}
