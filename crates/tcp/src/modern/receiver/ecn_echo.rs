//! ECN echo of the receiver.

use super::super::stack::Stack;
use super::Receiver;
use super::delayed_ack::AckDueTime;
use tcpcast_link::Ecn;

impl Receiver {
    /// RFC 3168, section 6.1.3; with DCTCP each mark is echoed (RFC 8257, section 3.2), and accurate
    /// ECN counts them.
    #[inline(never)]
    pub(super) fn update_ecn_echo(&mut self, len: u32, ecn: Ecn, cwr: bool, stack: &Stack) {
        if let Some(marks) = &mut self.marks {
            if marks.on_packets(len.div_ceil(stack.mss).max(1), len, ecn) {
                self.due = AckDueTime::NOW;
            }
            return;
        }
        let marked = ecn == Ecn::Ce;
        if len == 0 {
            return;
        }
        if stack.echoes_each_mark() {
            if self.marked != marked {
                if self.due.time_if_in_future().is_some() {
                    // The delayed acknowledgement reports the state of the earlier packets.
                    self.earlier_ack = Some(Box::new(self.outgoing_ack(stack)));
                }
                self.due = AckDueTime::NOW;
            }
            self.marked = marked;
            self.echoes = marked;
            return;
        }
        if cwr {
            self.echoes = false;
            self.due = AckDueTime::NOW;
        }
        match ecn {
            Ecn::Ce => {
                if !self.echoes {
                    self.enter_quick_ack_mode(stack.kernel.quick_acks_at_mark);
                }
                self.echoes = true;
                self.seen_ect = true;
            }
            // Probably a retransmission, which is not ECN-capable.
            Ecn::NotEct if self.seen_ect => {
                self.enter_quick_ack_mode(stack.kernel.quick_acks_at_mark)
            }
            Ecn::NotEct => (),
            Ecn::Ect0 | Ecn::Ect1 => self.seen_ect = true,
        }
    }
}
