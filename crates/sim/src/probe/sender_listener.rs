//! Adds the events of senders to the probes.

use super::{ClassCell, CounterTable, Probes, SequenceEvent, SizeCell, SourceRecord, TimeKind};
use crate::clock::Nanos;
use tcpcast_tcp::{TcpEvent, TcpProbe};

/// Receives the events of the sender of one source.
#[derive(Debug)]
pub struct SenderListener<'a> {
    probes: &'a mut Probes,
    record: &'a mut SourceRecord,
    source: u32,
}

impl<'a> SenderListener<'a> {
    /// Creates the listener for the sender of source `source`.
    #[inline(always)]
    pub fn new(probes: &'a mut Probes, record: &'a mut SourceRecord, source: u32) -> Self {
        Self { probes, record, source }
    }
}

impl TcpProbe for SenderListener<'_> {
    #[inline(always)]
    fn on_tcp_event(&mut self, now: Nanos, event: TcpEvent) {
        if let TcpEvent::Window { cwnd, ssthresh, flight, .. } = event {
            if self.record.traced {
                self.probes.trace.record_window(now, self.source, cwnd, ssthresh, flight);
            }
            return;
        }
        if let TcpEvent::RttSample { rtt } = event {
            let cells = self.probes.counters.class_cells_mut(self.record.class());
            let sum = &mut cells[ClassCell::RttSum as usize];
            *sum = sum.wrapping_add(rtt);
            cells[ClassCell::RttSamples as usize] += 1;
            if !self.probes.class_times.is_disabled() {
                self.probes.add_time(self.record.class(), TimeKind::Rtt, rtt);
            }
            return;
        }
        if let TcpEvent::Acked { packets } = event {
            self.record.count_leaving_flight(now, packets);
            return;
        }
        self.count_loss_event(now, event);
    }

    #[inline(always)]
    fn records_windows(&self) -> bool {
        self.record.traced
    }
}

impl SenderListener<'_> {
    #[inline(never)]
    fn count_loss_event(&mut self, now: Nanos, event: TcpEvent) {
        let Self { probes, record, source } = self;
        let (class, row) = (record.class as usize, record.row as usize);
        record.stage = record.stage.stage_after(&event);
        match event {
            TcpEvent::FastRetransmit { window } => {
                record.recovery_since = now;
                record.recovery_sent = 0;
                record.recovery_retransmitted = 1;
                probes.counters.add_to_class(class, ClassCell::FastRetransmits, 1);
                probes.counters.add_to_class(class, ClassCell::WindowAtLoss, u64::from(window));
                probes.indications.add_indication(now);
            }
            TcpEvent::PartialAck => record.recovery_retransmitted += 1,
            TcpEvent::IdleRestart => {
                probes.counters.add_to_class(class, ClassCell::IdleRestarts, 1)
            }
            TcpEvent::TailLossProbe { .. } | TcpEvent::Undone { .. } => {
                count_modern_event(&mut probes.counters, class, event);
            }
            TcpEvent::Recovered { burst } => {
                let repaired = u64::from(record.recovery_retransmitted);
                probes.counters.add_to_size(row, SizeCell::Recovered, repaired);
                let (span, sent) = (now - record.recovery_since, record.recovery_sent);
                probes.recovery.count_recovery(span, sent, record.recovery_retransmitted, burst);
            }
            TcpEvent::Timeout { number, left, state } => {
                let stalled = now - record.last_sent;
                probes.recovery.count_timeout(number, left, &state, stalled);
                probes.counters.add_to_class(class, ClassCell::Timeouts, 1);
                probes.counters.add_to_size(row, SizeCell::Timeouts, 1);
                probes.counters.add_to_size(row, SizeCell::Stalled, stalled);
                if state.repeated {
                    probes.counters.count_repeated_timeout(class, &mut record.depth);
                } else {
                    record.depth = 1;
                    probes.indications.add_indication(now);
                    probes.counters.add_to_class(class, ClassCell::TimeoutSequences, 1);
                    probes.counters.add_to_class(class, ClassCell::FirstTimeout, state.rto);
                    probes.counters.add_to_class(
                        class,
                        ClassCell::WindowAtLoss,
                        u64::from(state.window),
                    );
                }
                if record.traced {
                    probes.trace.record_event(now, *source, number, SequenceEvent::Timeout);
                }
            }
            TcpEvent::Opened { packets } => probes.record_file_start(now, record, packets),
            TcpEvent::RttSample { .. } | TcpEvent::Acked { .. } | TcpEvent::Window { .. } => {}
        }
    }
}

/// Counts events that only modern senders emit.
fn count_modern_event(counters: &mut CounterTable, class: usize, event: TcpEvent) {
    match event {
        TcpEvent::TailLossProbe { retransmits } => {
            counters.add_to_class(class, ClassCell::TailLossProbes, 1);
            counters.add_to_class(class, ClassCell::TailRetransmissions, u64::from(retransmits));
        }
        TcpEvent::Undone { after_timeout: true } => {
            counters.add_to_class(class, ClassCell::SpuriousTimeouts, 1);
        }
        TcpEvent::Undone { after_timeout: false } => {
            counters.add_to_class(class, ClassCell::SpuriousRecoveries, 1);
        }
        _ => (),
    }
}
