//! A queue of any discipline, selected at run time. The selection costs one branch per call, but
//! avoids a copy of the caller's code per discipline.

use super::{
    AdmitAll, Backlog, BufferLimits, Codel, CodelConfig, DropTail, Drr, DrrConfig, EnqueueOutcome,
    Fifo, FqCodel, FqCodelConfig, HeadDrop, Pie, PieConfig, QueueDiscipline, QueueProbe, Red,
    RedConfig,
};
use crate::packet::Packet;
use crate::random::RandomStream;
use crate::time::Nanos;
use serde::Deserialize;

/// A queue discipline with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueConfig {
    /// FIFO that drops arriving packets when full.
    DropTail,
    /// FIFO that drops the oldest packets when full.
    HeadDrop,
    /// Random early detection.
    Red(RedConfig),
    /// Fair queueing.
    Drr(DrrConfig),
    /// Controlled delay.
    Codel(CodelConfig),
    /// Fair queueing with controlled delay.
    FqCodel(FqCodelConfig),
    /// Proportional integral controller enhanced.
    Pie(PieConfig),
}

/// A queue of any discipline.
#[derive(Clone, Debug)]
pub enum AnyQueue<T = u32> {
    /// FIFO that drops arriving packets when full.
    DropTail(DropTail<T>),
    /// FIFO that drops the oldest packets when full.
    HeadDrop(HeadDrop<T>),
    /// Random early detection.
    Red(Box<Fifo<T, Red>>),
    /// Fair queueing.
    Drr(Box<Drr<T>>),
    /// Controlled delay.
    Codel(Box<Codel<T>>),
    /// Fair queueing with controlled delay.
    FqCodel(Box<FqCodel<T>>),
    /// Proportional integral controller enhanced.
    Pie(Box<Fifo<T, Pie>>),
}

macro_rules! each {
    ($discipline:expr, $queue:ident => $do:expr) => {
        match $discipline {
            AnyQueue::DropTail($queue) => $do,
            AnyQueue::HeadDrop($queue) => $do,
            AnyQueue::Red($queue) => $do,
            AnyQueue::Drr($queue) => $do,
            AnyQueue::Codel($queue) => $do,
            AnyQueue::FqCodel($queue) => $do,
            AnyQueue::Pie($queue) => $do,
        }
    };
}

impl<T: Copy> AnyQueue<T> {
    /// Creates an empty queue. `draws` is used for early drops of RED and PIE, and for ties of fair
    /// queueing.
    #[must_use]
    pub fn new(config: QueueConfig, limits: BufferLimits, draws: RandomStream) -> Self {
        match config {
            QueueConfig::DropTail => Self::DropTail(Fifo::new(limits, AdmitAll)),
            QueueConfig::HeadDrop => Self::HeadDrop(HeadDrop::new(limits)),
            QueueConfig::Red(red) => Self::Red(Box::new(Fifo::new(limits, Red::new(red, draws)))),
            QueueConfig::Drr(drr) => Self::Drr(Box::new(Drr::new(limits, drr, draws))),
            QueueConfig::Codel(codel) => Self::Codel(Box::new(Codel::new(limits, codel))),
            QueueConfig::FqCodel(fq_codel) => {
                Self::FqCodel(Box::new(FqCodel::new(limits, fq_codel)))
            }
            QueueConfig::Pie(pie) => Self::Pie(Box::new(Fifo::new(limits, Pie::new(pie, draws)))),
        }
    }
}

impl<T: Copy> QueueDiscipline<T> for AnyQueue<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> EnqueueOutcome {
        each!(self, queue => queue.enqueue(now, packet, probe))
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
        each!(self, queue => queue.dequeue(now, probe))
    }

    fn prefetch_ahead(&self, turns: usize, report: impl FnMut(u32)) {
        each!(self, queue => queue.prefetch_ahead(turns, report));
    }

    fn waiting_backlog(&self) -> Backlog {
        each!(self, queue => queue.waiting_backlog())
    }

    fn held_backlog(&self) -> Backlog {
        each!(self, queue => queue.held_backlog())
    }

    fn deadline(&self) -> Nanos {
        each!(self, queue => queue.deadline())
    }

    fn on_deadline(&mut self, now: Nanos) {
        each!(self, queue => queue.on_deadline(now));
    }

    fn reset_when_empty(&mut self, now: Nanos) {
        each!(self, queue => queue.reset_when_empty(now));
    }
}
