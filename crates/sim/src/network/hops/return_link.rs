//! An acknowledgement's path over the return link, where it waits behind those of other sources.

use super::{Kind, PushedOut, Stage};
use crate::agenda::Place;
use crate::clock::Nanos;
use crate::loss::LossPlace;
use crate::network::{Network, Path, Source};
use crate::packet::Packet;
use crate::probe::Tap;
use crate::queue::{QueueDiscipline, Verdict};
use crate::tcp::{ReceivingEnd, SendingEnd};
use tcpcast_wire::Options;

/// IPv4 and TCP headers without options.
const HEADER_BYTES: u32 = 40;
/// The timestamp option with what fills its words (RFC 7323, appendix A), and the SACK option
/// likewise, without its blocks (RFC 2018, section 3).
const TIMESTAMP_BYTES: u32 = 12;
const SACK_BYTES: u32 = 4;
const BLOCK_BYTES: u32 = 8;

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    /// An acknowledgement got to the return link `return_lookahead` ago; `waited` says whether its
    /// receiver's own link was busy.
    #[inline(never)]
    pub(crate) fn enter_return<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        ack: Packet,
        waited: bool,
    ) {
        let (now, stage) = (self.now - self.return_lookahead, self.tandem.forward);
        let shown = source.receiver.captured_header(ack.label());
        let bytes = self.tandem.acks.least_bytes.max(length(&shown.options));
        if TAPS && self.capturing {
            if !waited {
                self.capture(Tap::Receiver, &source.record, now - path.to_return, &ack, shown);
            }
            self.capture(Tap::BottleneckOut, &source.record, now, &ack, shown);
        }
        let Stage { kind: Kind::Shared(hop), .. } = &mut self.tandem.stages[stage] else { return };
        let (acks, counters) = (&mut self.tandem.acks, &mut self.probes.hops[stage]);
        acks.entered += 1;
        counters.arrived += 1;
        if hop.loses(LossPlace::Before) {
            acks.dropped += 1;
            counters.random_drops += 1;
            return;
        }
        match hop.offer_of(bytes, now, &ack, counters) {
            Verdict::Departs { leaves, .. } => {
                acks.left += 1;
                acks.sojourns = acks.sojourns.wrapping_add(leaves - now);
                counters.passed((leaves - now).saturating_sub(hop.time_of(bytes)));
                self.left_return(source, path, leaves, ack);
            }
            Verdict::Held { pushed_out, .. } => {
                acks.sojourns = acks.sojourns.wrapping_sub(now);
                let feedback = pushed_out.map(|packet| PushedOut { stage, at: now, packet });
                self.tandem.pushed_out.extend(feedback);
            }
            Verdict::Dropped => {
                acks.dropped += 1;
                counters.queue_drops += 1;
            }
        }
        self.take_dropped_at_hop(stage);
    }

    /// The return link takes an acknowledgement that it held; it will have left at `leaves`.
    pub(super) fn served_on_return<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        leaves: Nanos,
        waited: Option<Nanos>,
        ack: Packet,
    ) {
        let acks = &mut self.tandem.acks;
        acks.left += 1;
        acks.sojourns = acks.sojourns.wrapping_add(leaves);
        self.probes.hops[self.tandem.forward].passed(waited.unwrap_or(0));
        self.left_return(source, path, leaves, ack);
    }

    /// The return link's queue dropped an acknowledgement at `at` that it held. Its sender hears of
    /// it by what the next one says.
    pub(super) fn dropped_on_return(&mut self, at: Nanos) {
        let acks = &mut self.tandem.acks;
        acks.dropped += 1;
        acks.sojourns = acks.sojourns.wrapping_add(at);
        self.probes.hops[self.tandem.forward].queue_drops += 1;
    }

    /// On to its sender.
    fn left_return<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        leaves: Nanos,
        ack: Packet,
    ) {
        if TAPS && self.capturing {
            let shown = source.receiver.captured_header(ack.label());
            self.capture(Tap::BottleneckIn, &source.record, leaves, &ack, shown);
        }
        source.ack_free = source.ack_free.max(leaves + path.back) + path.ingress.ack_time;
        let due = source.ack_free + self.sender_lookahead;
        self.agenda.packet(Place::Sender, source.record.class(), due, ack);
    }
}

/// Bytes of an acknowledgement with these options.
fn length(options: &Options) -> u32 {
    let stamps = if options.timestamps.is_some() { TIMESTAMP_BYTES } else { 0 };
    let blocks = u32::from(options.blocks);
    let sacks = if blocks > 0 { SACK_BYTES + BLOCK_BYTES * blocks } else { 0 };
    HEADER_BYTES + stamps + sacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_lengthen_an_acknowledgement() {
        let stamped = Options { timestamps: Some((1, 2)), ..Options::default() };
        assert_eq!(length(&Options::default()), 40);
        assert_eq!(length(&stamped), 52);
        assert_eq!(length(&Options { blocks: 3, ..stamped }), 80);
    }
}
