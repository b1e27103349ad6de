//! ECN echo of the receiver.

use super::super::stack::Stack;
use super::delay::Due;
use super::{Ecn, Receiver};

impl Receiver {
    /// RFC 3168, section 6.1.3; with DCTCP each mark is echoed: RFC 8257, section 3.2.
    #[inline(never)]
    pub(super) fn on_ecn(&mut self, len: u32, ecn: Ecn, cwr: bool, stack: &Stack) {
        let marked = ecn == Ecn::Marked;
        if len == 0 {
            return;
        }
        if stack.echoes_each_mark() {
            if self.marked != marked {
                if self.due.later().is_some() {
                    // The delayed acknowledgement reports the state of the earlier packets.
                    self.earlier_ack = Some(Box::new(self.outgoing(stack)));
                }
                self.due = Due::NOW;
            }
            self.marked = marked;
            self.echoes = marked;
            return;
        }
        if cwr {
            self.echoes = false;
            self.due = Due::NOW;
        }
        match ecn {
            Ecn::Marked => {
                if !self.echoes {
                    self.enter_quick_mode(2);
                }
                self.echoes = true;
                self.seen_ect = true;
            }
            // Probably a retransmission, which is not ECN-capable.
            Ecn::NotCapable if self.seen_ect => self.enter_quick_mode(2),
            Ecn::NotCapable => (),
            Ecn::Capable => self.seen_ect = true,
        }
    }
}
