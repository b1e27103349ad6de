//! What senders publish, brought into the probes' sums.

use super::{
    ClassCell, Ledger, Mark, Probes, SizeCell, SourceRecord, TcpEvent, TcpProbe, TimeoutKind,
};
use crate::clock::Nanos;

/// The probes, listening to one source's sender.
#[derive(Debug)]
pub struct Listener<'a> {
    probes: &'a mut Probes,
    record: &'a mut SourceRecord,
    source: u32,
}

impl<'a> Listener<'a> {
    /// Listens to the sender of source `source`.
    #[inline(always)]
    pub fn new(probes: &'a mut Probes, record: &'a mut SourceRecord, source: u32) -> Self {
        Self { probes, record, source }
    }
}

impl TcpProbe for Listener<'_> {
    #[inline(always)]
    fn tcp(&mut self, now: Nanos, event: TcpEvent) {
        if let TcpEvent::Window { cwnd, ssthresh, flight, .. } = event {
            if self.record.traced {
                self.probes.trace.window(now, self.source, cwnd, ssthresh, flight);
            }
            return;
        }
        if let TcpEvent::RttSample { rtt } = event {
            let cells = self.probes.ledger.class_mut(self.record.class());
            cells[ClassCell::RttSum as usize] += rtt;
            cells[ClassCell::RttSamples as usize] += 1;
            return;
        }
        if let TcpEvent::Acked { packets } = event {
            self.record.leave_flight(now, packets);
            return;
        }
        self.loss_event(now, event);
    }
}

impl Listener<'_> {
    #[inline(never)]
    fn loss_event(&mut self, now: Nanos, event: TcpEvent) {
        let Self { probes, record, source } = self;
        let (class, row) = (record.class as usize, record.row as usize);
        record.stage = record.stage.after(&event);
        match event {
            TcpEvent::FastRetransmit { window } => {
                record.recovery_since = now;
                record.recovery_sent = 0;
                record.recovery_retransmitted = 1;
                probes.ledger.add(class, ClassCell::FastRetransmits, 1);
                probes.ledger.add(class, ClassCell::WindowAtLoss, u64::from(window));
                probes.indications.add(now);
            }
            TcpEvent::PartialAck => record.recovery_retransmitted += 1,
            TcpEvent::IdleRestart => probes.ledger.add(class, ClassCell::IdleRestarts, 1),
            TcpEvent::TailLossProbe { .. } | TcpEvent::Undone { .. } => {
                count_todays(&mut probes.ledger, class, event);
            }
            TcpEvent::Recovered { burst } => {
                let repaired = u64::from(record.recovery_retransmitted);
                probes.ledger.add_size(row, SizeCell::Recovered, repaired);
                let (span, sent) = (now - record.recovery_since, record.recovery_sent);
                probes.recovery.recovered(span, sent, record.recovery_retransmitted, burst);
            }
            TcpEvent::Timeout {
                number,
                left,
                all_sent,
                window,
                slow_start,
                repeated,
                in_recovery,
                rto,
            } => {
                let stalled = now - record.last_sent;
                let kind = TimeoutKind::of(number, left, all_sent, repeated, in_recovery);
                probes.recovery.timeout(kind, stalled, slow_start.then_some(window));
                probes.ledger.add(class, ClassCell::Timeouts, 1);
                probes.ledger.add_size(row, SizeCell::Timeouts, 1);
                probes.ledger.add_size(row, SizeCell::Stalled, stalled);
                if repeated {
                    probes.ledger.deeper(class, &mut record.depth);
                } else {
                    record.depth = 1;
                    probes.indications.add(now);
                    probes.ledger.add(class, ClassCell::TimeoutSequences, 1);
                    probes.ledger.add(class, ClassCell::FirstTimeout, rto);
                    probes.ledger.add(class, ClassCell::WindowAtLoss, u64::from(window));
                }
                if record.traced {
                    probes.trace.mark(now, *source, number, Mark::Timeout);
                }
            }
            TcpEvent::Opened { packets } => probes.file_begins(now, record, packets),
            TcpEvent::RttSample { .. } | TcpEvent::Acked { .. } | TcpEvent::Window { .. } => {}
        }
    }
}

/// Counts what only today's senders publish.
fn count_todays(ledger: &mut Ledger, class: usize, event: TcpEvent) {
    match event {
        TcpEvent::TailLossProbe { retransmits } => {
            ledger.add(class, ClassCell::TailLossProbes, 1);
            ledger.add(class, ClassCell::TailRetransmissions, u64::from(retransmits));
        }
        TcpEvent::Undone { after_timeout: true } => {
            ledger.add(class, ClassCell::SpuriousTimeouts, 1);
        }
        TcpEvent::Undone { after_timeout: false } => {
            ledger.add(class, ClassCell::SpuriousRecoveries, 1);
        }
        _ => (),
    }
}
