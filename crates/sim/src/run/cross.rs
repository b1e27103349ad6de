//! Packets of others among the events of a run.

use crate::clock::Nanos;
use crate::network::Network;
use crate::queue::QueueDiscipline;
use crate::run::Simulation;
use crate::tcp::SendingEnd;

impl<S: SendingEnd, Q: QueueDiscipline, const TAPS: bool, const HOPS: bool>
    Simulation<S, Q, TAPS, HOPS>
{
    /// Whether a packet of others arrives before the next event, due at `due`, or with it.
    pub(crate) fn cross_is_first(&self, due: Nanos) -> bool {
        let comes = self.network.queue.cross_comes();
        comes <= due && comes <= self.network.limit
    }

    /// A packet of others arrives at the bottleneck.
    pub(crate) fn cross_arrives(&mut self) {
        let Network { queue, link, probes, now, pushed_out, .. } = &mut self.network;
        *now = queue.cross_comes();
        if let Some(packet) = queue.cross_arrives(link, probes) {
            pushed_out.push((*now, packet));
        }
        if Q::DROPS_HELD {
            self.network.take_dropped();
        }
        self.tell_of_losses();
    }
}
