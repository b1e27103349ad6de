//! What happens when a timer of a sender or of a receiver expires.

use super::Network;
use super::path::Path;
use super::source::Source;
use crate::agenda::Timer;
use crate::clock::{NEVER, Nanos};
use crate::packet::{Kind, Label, Packet};
use crate::probe::Listener;
use crate::queue::QueueDiscipline;
use crate::tcp::{AckHeaderOf, ReceivingEnd, SendingEnd, Transmission};

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    /// The agenda looks at a sender's timer.
    pub(crate) fn retransmission_timer<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        index: u32,
    ) {
        if source.timer != self.now {
            return;
        }
        source.timer = NEVER;
        // Mostly it has moved on since it was set.
        let expires = source.sender.cached_deadline() + self.sender_lookahead;
        if S::POLLS && expires > self.now {
            return self.look_at_timer(source, index, expires);
        }
        let now = self.sender_now();
        let deadline = source.sender.deadline();
        if deadline <= now {
            let listener = &mut Listener::new(&mut self.probes, &mut source.record, index);
            let sent = source.sender.on_timer(now, &path.tcp, listener);
            self.send(source, path, source.any_packet(index), sent);
        } else {
            self.look_at_timer(source, index, deadline + self.sender_lookahead);
        }
    }

    /// The agenda is to look at a sender's timer at `due`, if that ever comes.
    #[inline(always)]
    fn look_at_timer<S: SendingEnd>(&mut self, source: &mut Source<S>, index: u32, due: Nanos) {
        if due < NEVER {
            source.timer = due;
            self.agenda.timer(Timer::Retransmission, index, due);
        }
    }

    #[inline(always)]
    pub(super) fn set_sender_timer<S: SendingEnd>(&mut self, source: &mut Source<S>, index: u32) {
        if S::POLLS && source.sender.cache_deadline() + self.sender_lookahead >= source.timer {
            return;
        }
        let due = source.sender.deadline() + self.sender_lookahead;
        if due < source.timer {
            source.timer = due;
            self.agenda.timer(Timer::Retransmission, index, due);
        }
    }

    /// The agenda looks at a sender's pacing.
    pub(crate) fn pacing_timer<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        index: u32,
    ) {
        if *source.sender.scheduled_pacing() != self.now {
            return;
        }
        *source.sender.scheduled_pacing() = NEVER;
        if source.sender.pace_at() <= self.sender_now() {
            self.send(source, path, source.any_packet(index), Transmission::default());
        } else {
            self.set_pacing_timer(source, path, index);
        }
    }

    /// Sets the timer of a source's pacing; a host that is late sends late.
    #[inline(always)]
    pub(crate) fn set_pacing_timer<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        index: u32,
    ) {
        let at = source.sender.pace_at();
        if at == NEVER || at + self.sender_lookahead >= *source.sender.scheduled_pacing() {
            return;
        }
        let late = path.noise.map_or(0, |noise| noise.timer(index, at));
        let due = at + late + self.sender_lookahead;
        if due < *source.sender.scheduled_pacing() {
            *source.sender.scheduled_pacing() = due;
            self.agenda.timer(Timer::Pacing, index, due);
        }
    }

    /// The agenda looks at a receiver's timer.
    pub(crate) fn ack_timer<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
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
        let mut told = AckHeaderOf::<S>::default();
        if let Some(number) = source.receiver.on_timer(now, &path.tcp, &mut told) {
            let (connection, label) = (source.received, Label::new(Kind::Ack, 0));
            let ack = Packet::new(index, connection, number, label);
            self.acknowledge(source, path, ack, &told);
            if S::POLLS {
                // A SYN is retransmitted if it is not answered.
                self.set_ack_timer(source, path, index);
            }
        } else {
            // The application has read what is to be acknowledged later.
            self.set_ack_timer(source, path, index);
        }
    }

    pub(crate) fn set_ack_timer<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        index: u32,
    ) {
        let deadline = source.receiver.ack_deadline();
        if deadline == NEVER {
            return;
        }
        let due = deadline + path.answer_to_event;
        if due < source.ack_timer {
            source.ack_timer = due;
            self.agenda.timer(Timer::DelayedAck, index, due);
        }
    }
}
