//! Taps, at which passing packets are reported to captures and to correlated loss.

use super::Network;
use super::source::SimulatedSource;
use crate::clock::Nanos;
use crate::packet::Packet;
use crate::probe::{CapturedHeader, SourceRecord, TapPlace};
use crate::queue::QueueDiscipline;
use tcpcast_tcp::SendingEnd;

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    #[inline(always)]
    pub(crate) fn report_packet_at_tap<S: SendingEnd>(
        &mut self,
        source: &SimulatedSource<S>,
        tap: TapPlace,
        at: Nanos,
        packet: &Packet,
    ) {
        if HAS_TAPS && self.watched {
            self.report_packet_to_tap_observers(source, tap, at, packet);
        }
    }

    #[inline(never)]
    fn report_packet_to_tap_observers<S: SendingEnd>(
        &mut self,
        source: &SimulatedSource<S>,
        tap: TapPlace,
        at: Nanos,
        packet: &Packet,
    ) {
        if let (TapPlace::Sender, Some(loss)) = (tap, &mut self.loss) {
            loss.record_sent_packet_or_ack(packet);
        }
        if self.capturing {
            let shown = self.captured_header::<S>(packet);
            self.pass_to_captures(tap, &source.record, at, packet, shown);
        }
    }

    /// Header of a packet in flight, as captures show it.
    pub(crate) fn captured_header<S: SendingEnd>(&self, packet: &Packet) -> CapturedHeader {
        if S::IS_POLLED {
            self.segments.captured_header(packet)
        } else {
            CapturedHeader::of_serial(packet.label().serial())
        }
    }

    pub(crate) fn pass_to_captures(
        &mut self,
        tap: TapPlace,
        record: &SourceRecord,
        at: Nanos,
        packet: &Packet,
        shown: CapturedHeader,
    ) {
        let settled = self.now.saturating_sub(self.max_report_delay);
        self.probes.pass_to_captures(tap, record.class(), at, packet, shown, settled);
    }
}
