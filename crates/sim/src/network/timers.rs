//! Timers of senders and receivers.

use super::Network;
use super::path::ClassPath;
use super::source::SimulatedSource;
use crate::clock::{NEVER, Nanos};
use crate::event_queue::TimerKind;
use crate::packet::{Packet, PacketKind, PacketLabel};
use crate::probe::SenderListener;
use crate::queue::QueueDiscipline;
use tcpcast_tcp::modern::Segment;
use tcpcast_tcp::{PacketsToSend, ReceivingEnd, SendingEnd};

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Handles the event of a sender's retransmission timer.
    pub(crate) fn on_retransmission_timer<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        index: u32,
    ) {
        if source.timer != self.now {
            return;
        }
        source.timer = NEVER;
        // Usually the timer has been postponed since the event was scheduled.
        let expires = source.sender.cached_deadline_lower_bound() + self.sender_lookahead;
        if S::IS_POLLED && expires > self.now {
            return self.schedule_timer_check(source, index, expires);
        }
        let now = self.current_sender_time();
        let deadline = source.sender.timer_deadline();
        if deadline <= now {
            let listener = &mut SenderListener::new(&mut self.probes, &mut source.record, index);
            let sent = source.sender.on_timer(now, &path.tcp, listener);
            self.send_packets_and_set_timer(source, path, source.template_packet(index), sent);
        } else {
            self.schedule_timer_check(source, index, deadline + self.sender_lookahead);
        }
    }

    /// Schedules a check of a sender's timer at `due`, unless that is never.
    #[inline(always)]
    fn schedule_timer_check<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        index: u32,
        due: Nanos,
    ) {
        if due < NEVER {
            source.timer = due;
            self.events.set_timer(TimerKind::Retransmission, index, due);
        }
    }

    #[inline(always)]
    pub(super) fn set_sender_timer<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        index: u32,
    ) {
        if S::IS_POLLED
            && source.sender.cache_deadline_lower_bound() + self.sender_lookahead >= source.timer
        {
            return;
        }
        let due = source.sender.timer_deadline() + self.sender_lookahead;
        if due < source.timer {
            source.timer = due;
            self.events.set_timer(TimerKind::Retransmission, index, due);
        }
    }

    /// Handles the event of a sender's pacing timer.
    pub(crate) fn on_pacing_timer<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        index: u32,
    ) {
        if *source.sender.scheduled_pacing_time_mut() != self.now {
            return;
        }
        *source.sender.scheduled_pacing_time_mut() = NEVER;
        if source.sender.next_paced_time() <= self.current_sender_time() {
            self.send_packets_and_set_timer(
                source,
                path,
                source.template_packet(index),
                PacketsToSend::default(),
            );
        } else {
            self.set_pacing_timer(source, path, index);
        }
    }

    /// Sets the pacing timer of a source, including the processing delay of its host.
    #[inline(always)]
    pub(crate) fn set_pacing_timer<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        index: u32,
    ) {
        let at = source.sender.next_paced_time();
        if at == NEVER || at + self.sender_lookahead >= *source.sender.scheduled_pacing_time_mut() {
            return;
        }
        let late = path.noise.map_or(0, |noise| noise.timer_delay(index, at));
        let due = at + late + self.sender_lookahead;
        if due < *source.sender.scheduled_pacing_time_mut() {
            *source.sender.scheduled_pacing_time_mut() = due;
            self.events.set_timer(TimerKind::Pacing, index, due);
        }
    }

    /// Handles the event of a receiver's timer.
    pub(crate) fn on_ack_timer<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        index: u32,
    ) {
        if source.ack_timer != self.now {
            return;
        }
        source.ack_timer = NEVER;
        if source.receiver.ack_deadline() > self.now - path.answer_to_event {
            return self.set_ack_timer(source, path, index);
        }
        let now = self.now - path.answer_to_event;
        let mut answer = Segment::default();
        if let Some(number) = source.receiver.on_ack_timer(now, &path.tcp, &mut answer) {
            let (connection, label) = (source.received, PacketLabel::new(PacketKind::Ack, 0));
            let ack = Packet::new(index, connection, number, label);
            self.send_new_ack(source, path, ack, &answer);
            if S::IS_POLLED {
                // Timer for the retransmission of the SYN.
                self.set_ack_timer(source, path, index);
            }
        } else {
            // The application has read data that will be acknowledged later.
            self.set_ack_timer(source, path, index);
        }
    }

    pub(crate) fn set_ack_timer<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        index: u32,
    ) {
        let deadline = source.receiver.ack_deadline();
        if deadline == NEVER {
            return;
        }
        let due = deadline + path.answer_to_event;
        if due < source.ack_timer {
            source.ack_timer = due;
            self.events.set_timer(TimerKind::DelayedAck, index, due);
        }
    }
}
