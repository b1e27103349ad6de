//! Bursts that are known at once: full packets of new data, or nothing at all. Most bursts are; the
//! others are asked for packet by packet, in `transmit.rs`.

use super::packet::{Marks, Packet};
use super::segment::{Sending, Transmit};
use super::sender::{Repair, Sender};
use super::stack::Stack;
use super::timers::Timer;
use super::transmit::speculates;
use crate::clock::Nanos;

/// Full packets of new data that are sent one right after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The first one.
    pub first: Transmit,
    /// How many there are.
    pub packets: u32,
    /// Whether the last one is pushed.
    pub push: bool,
    /// Whether the burst ends with them.
    pub ends: bool,
}

impl Sender {
    /// What [`Sender::poll_transmit`] would say first so many times in a row, perhaps none, where all
    /// of it is new and nothing is paced, so that most of what is asked for each packet is asked once.
    /// [`None`] says nothing; unless the burst ends with it, it is to be asked next. A burst in which
    /// more `follows` does not end.
    #[inline(always)]
    pub(super) fn transmit_run(&mut self, now: Nanos, follows: bool, stack: &Stack) -> Option<Run> {
        if self.forced.is_some() {
            return None;
        }
        self.pacer.wait(false);
        let room = self.window.cwnd.saturating_sub(self.flight.in_flight());
        let (number, start) = (self.flight.next(), self.flight.end());
        let (packets, all) = match room {
            0 => (0, true),
            _ if self.pacer.unpaced() == 0 => (0, self.waits_for_pace(now, stack)?),
            _ if self.sends_runs(stack) => self.push_run(now, room, stack),
            _ => return None,
        };
        let push = packets > 0 && self.is_pushed(packets);
        let ends = all && !follows;
        if ends {
            self.end_burst(now, stack);
        }
        let (sending, len, ect) = (Sending::New, stack.mss, stack.ecn);
        let (fin, cwr) = (false, false);
        let first = Transmit { number, start, len, sending, fin, ect, cwr, push: false };
        Some(Run { first, packets, push, ends })
    }

    /// Whether there is nothing to send, and no timer to set for it.
    #[inline(always)]
    pub(super) fn rests(&mut self, stack: &Stack) -> bool {
        let rests = self.is_all_sent()
            && self.forced.is_none()
            && !self.burst_open
            && self.flight.out() > 0
            && self.flight.in_flight() < self.window.cwnd
            && !self.repairs_first(stack)
            && !speculates(stack)
            && self.chronograph.is_none();
        if rests {
            self.pacer.wait(false);
        }
        rests
    }

    /// Whether all that was written, and FIN after a close, has been sent.
    #[inline(always)]
    fn is_all_sent(&self) -> bool {
        self.unsent() == 0 && (self.fin_sent || !self.closed)
    }

    /// Whether something is retransmitted before anything else, or if there is nothing else.
    #[inline(always)]
    fn repairs_first(&self, stack: &Stack) -> bool {
        match self.repair {
            Repair::Nothing => false,
            Repair::Lost => self.is_repair_due(stack),
            Repair::UnlessNew => true,
        }
    }

    /// Whether new data is all that can be sent, and a full packet differs from the one before it in
    /// its number alone.
    #[inline(always)]
    fn sends_runs(&self, stack: &Stack) -> bool {
        let says_more = stack.ecn && self.cwr_due;
        self.flight.out() > 0 && !self.repairs_first(stack) && !says_more
    }

    /// Nothing can be sent before the pace allows it; [`None`] if it does.
    #[inline(always)]
    fn waits_for_pace(&mut self, now: Nanos, stack: &Stack) -> Option<bool> {
        if !self.pacer.blocks(now) {
            return None;
        }
        let repairs = self.repair == Repair::Lost && self.is_repair_due(stack);
        let waits = repairs || self.fresh(stack).is_ok();
        self.pacer.wait(waits);
        Some(true)
    }

    /// Sends full packets of the current chunk for which there is room: how many, and whether nothing
    /// else can be sent.
    #[inline(always)]
    fn push_run(&mut self, now: Nanos, room: u32, stack: &Stack) -> (u32, bool) {
        let mss = u64::from(stack.mss);
        // The last packet of a stream has FIN.
        let end = (self.written - u64::from(self.closed)).min(self.allowed);
        let full = self.flight.end() + mss <= end;
        let chunk = if full { self.chunk(now, stack) } else { 0 };
        if full && chunk == 0 {
            return (0, true);
        }
        let mut packet = Packet::sent(now, Marks::default());
        self.delivery.on_sent(now, false, &mut packet);
        let mut packets = 0;
        let most = chunk.min(self.pacer.unpaced());
        while packets < most && self.flight.end() + mss <= end && self.may_send_new(stack) {
            let number = self.flight.push(packet, stack.mss);
            self.note_flight(number);
            packets += 1;
        }
        if packets > 0 {
            if matches!(self.timer, Timer::LossProbe(_)) {
                self.arm_retransmission(now);
            }
            if let Some(prr) = self.phase.prr_mut() {
                prr.out += packets;
            }
            self.last_sent = now;
            self.counters.sent += packets;
            self.pacer.on_sent_unpaced(packets);
            self.burst_open = true;
        }
        (packets, packets == room || (self.is_all_sent() && !speculates(stack)))
    }
}
