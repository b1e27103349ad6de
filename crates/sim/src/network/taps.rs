//! Places where packets are looked at as they pass, for captures and for losses that follow a flow.

use super::Network;
use super::source::Source;
use crate::clock::Nanos;
use crate::packet::{Kind, Packet};
use crate::probe::{Shown, SourceRecord, Tap};
use crate::queue::QueueDiscipline;
use crate::tcp::{ReceivingEnd, SendingEnd};

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    #[inline(always)]
    pub(crate) fn pass<S: SendingEnd>(
        &mut self,
        source: &Source<S>,
        tap: Tap,
        at: Nanos,
        packet: &Packet,
    ) {
        if TAPS && self.watched {
            self.watch(source, tap, at, packet);
        }
    }

    #[inline(never)]
    fn watch<S: SendingEnd>(&mut self, source: &Source<S>, tap: Tap, at: Nanos, packet: &Packet) {
        if let (Tap::Sender, Some(loss)) = (tap, &mut self.loss) {
            loss.at_sender(packet);
        }
        if self.capturing {
            let shown = match packet.kind() {
                Kind::Ack => source.receiver.captured_header(packet.label()),
                _ => source.sender.captured_header(packet.label()),
            };
            self.capture(tap, &source.record, at, packet, shown);
        }
    }

    pub(crate) fn capture(
        &mut self,
        tap: Tap,
        record: &SourceRecord,
        at: Nanos,
        packet: &Packet,
        shown: Shown,
    ) {
        let settled = self.now.saturating_sub(self.latest);
        self.probes.capture(tap, record.class(), at, packet, shown, settled);
    }
}
