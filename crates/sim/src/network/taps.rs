//! Taps, at which passing packets are reported to captures and to correlated loss.

use super::Network;
use super::source::Source;
use crate::clock::Nanos;
use crate::packet::{Kind, Packet};
use crate::probe::{CapturedHeader, SourceRecord, Tap};
use crate::queue::QueueDiscipline;
use crate::tcp::{ReceivingEnd, SendingEnd};

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    #[inline(always)]
    pub(crate) fn report_passage<S: SendingEnd>(
        &mut self,
        source: &Source<S>,
        tap: Tap,
        at: Nanos,
        packet: &Packet,
    ) {
        if HAS_TAPS && self.watched {
            self.watch(source, tap, at, packet);
        }
    }

    #[inline(never)]
    fn watch<S: SendingEnd>(&mut self, source: &Source<S>, tap: Tap, at: Nanos, packet: &Packet) {
        if let (Tap::Sender, Some(loss)) = (tap, &mut self.loss) {
            loss.observe(packet);
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
        shown: CapturedHeader,
    ) {
        let settled = self.now.saturating_sub(self.max_report_delay);
        self.probes.capture(tap, record.class(), at, packet, shown, settled);
    }
}
