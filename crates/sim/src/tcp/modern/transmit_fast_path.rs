//! Fast path: saves 11 % of the instructions of the bench row of a path of 10 Gbit/s.
//!
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
    /// of it is new, so that most of what is asked for each packet is asked once. [`None`] says
    /// nothing; unless the burst ends with it, it is to be asked next. An application that is
    /// `closing` does so when nothing more can be sent.
    #[inline(always)]
    pub(super) fn transmit_run(
        &mut self,
        now: Nanos,
        closing: &mut bool,
        stack: &Stack,
    ) -> Option<Run> {
        if self.forced.is_some() {
            return None;
        }
        self.pacer.set_waiting(false);
        let full = self.flight.in_flight() >= self.window.cwnd;
        let (number, start) = (self.flight.next(), self.flight.end());
        let (packets, all) = if full {
            (0, true)
        } else if self.pacer.blocks(now) {
            let repairs = self.repair == Repair::Lost && self.is_repair_due(stack);
            self.wait_for_pace(repairs, stack);
            (0, true)
        } else if self.sends_runs(stack) {
            self.push_run(now, stack)
        } else {
            return None;
        };
        let push = packets > 0 && self.is_pushed(packets);
        if all {
            self.end_burst(now, stack);
        }
        let closes = all && std::mem::take(closing);
        if closes {
            self.close();
        }
        // FIN may follow where there is room for it.
        let ends = all && (!closes || self.flight.in_flight() >= self.window.cwnd);
        let (sending, len, ect) = (Sending::New, stack.mss, stack.ecn);
        let (fin, cwr) = (false, false);
        let first = Transmit { number, start, len, sending, fin, ect, cwr, push: false };
        Some(Run { first, packets, push, ends })
    }

    /// Whether there is nothing to send, and no timer to set for it.
    #[inline(always)]
    pub(super) fn is_idle(&mut self, stack: &Stack) -> bool {
        let is_idle = self.is_all_sent()
            && self.forced.is_none()
            && !self.burst_open
            && self.flight.out() > 0
            && self.flight.in_flight() < self.window.cwnd
            && !self.repairs_first(stack)
            && !speculates(stack)
            && self.chronograph.is_none();
        if is_idle {
            self.pacer.set_waiting(false);
        }
        is_idle
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
        !self.repairs_first(stack) && !says_more
    }

    /// Nothing can be sent before the pace allows it.
    #[inline(always)]
    fn wait_for_pace(&mut self, repairs: bool, stack: &Stack) {
        let waits = repairs || self.new_data(stack).is_ok();
        self.pacer.set_waiting(waits);
    }

    /// Sends full packets of the current chunk for which there is room: how many, and whether nothing
    /// else can be sent.
    #[inline(always)]
    fn push_run(&mut self, now: Nanos, stack: &Stack) -> (u32, bool) {
        let mss = u64::from(stack.mss);
        // The last packet of a stream has FIN.
        let end = (self.written - u64::from(self.closed)).min(self.allowed);
        let full = self.flight.end() + mss <= end;
        let chunk = if full { self.chunk(now, stack) } else { 0 };
        if full && chunk == 0 {
            return (0, true);
        }
        let begins = full && self.flight.out() == 0;
        if begins {
            self.begin_flight(now);
        }
        let unpaced = self.pacer.unpaced(stack.mss);
        let paced = unpaced == 0;
        let max = if paced { chunk } else { chunk.min(unpaced) };
        let mut packet = Packet::sent(now, Marks::default());
        self.delivery.on_sent(now, begins, &mut packet);
        let fits = self.flight.end() + u64::from(max) * mss <= end
            && self.flight.out() + max <= self.window.cwnd;
        let packets = if fits && !paced && !self.control.has_loss_feedback() {
            self.flight.push_run(max, packet, stack.mss);
            max
        } else {
            self.push_each(now, max, packet, end, stack)
        };
        if packets > 0 {
            self.record_run(now, packets, begins, paced);
        }
        // One that governs may have changed the window as the flight began.
        if self.flight.in_flight() >= self.window.cwnd {
            return (packets, true);
        }
        if paced && packets > 0 && self.pacer.blocks(now) {
            self.wait_for_pace(false, stack);
            return (packets, true);
        }
        (packets, self.is_all_sent() && !speculates(stack))
    }

    /// Sends up to `max` packets before byte `end`, one by one: each of them may be the last that is
    /// allowed.
    fn push_each(&mut self, now: Nanos, max: u32, packet: Packet, end: u64, stack: &Stack) -> u32 {
        let (mss, paced) = (stack.mss, self.pacer.unpaced(stack.mss) == 0);
        let mut packets = 0;
        while packets < max && self.flight.end() + u64::from(mss) <= end && self.may_send_new(stack)
        {
            let number = self.flight.push(packet, mss);
            self.record_flight(number);
            packets += 1;
            if paced {
                self.pacer.on_sent(now, mss, mss);
                if self.pacer.blocks(now) {
                    break;
                }
            }
        }
        packets
    }

    /// What follows from packets that are sent, once for all of a run.
    #[inline(always)]
    fn record_run(&mut self, now: Nanos, packets: u32, begins: bool, paced: bool) {
        if begins || matches!(self.timer, Timer::LossProbe(_)) {
            self.arm_retransmission(now);
        }
        if let Some(prr) = self.phase.prr_mut() {
            prr.out += packets;
        }
        self.last_sent = now;
        self.counters.sent += packets;
        if !paced {
            self.pacer.on_sent_unpaced(packets);
        }
        self.burst_open = true;
    }
}
