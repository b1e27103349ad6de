//! What both ends need of memory when a packet comes. Where connections are many it is far away, and
//! whoever looks at that of several at once waits hardly longer than for one.

use super::answers::PacketReceiver;
use super::ends::PacketSender;
use super::phase::Phase;
use super::sender::Sender;

impl Sender {
    /// A word of each line that most acknowledgements need: see the order of its fields. No choice is
    /// made by a word, since that would wait for it.
    fn fetch(&self) -> u64 {
        let Self { rtt, delivery, pacer, control, flight, .. } = self;
        let bytes = self.una ^ flight.end() ^ rtt.rto() ^ rtt.deviation();
        let counts = flight.lost ^ self.window.cwnd ^ self.rack.reorderings ^ delivery.delivered;
        let answers = u64::from(rtt.min().is_some() ^ pacer.is_on());
        bytes ^ u64::from(counts) ^ answers ^ control.fetch()
    }

    /// A word of each line that a repair needs beside those, if there is one.
    fn fetch_repair(&self) -> u64 {
        if self.phase == Phase::Open {
            return 0;
        }
        let repaired = self.retransmitted_at.is_some() ^ self.undo.is_some();
        u64::from(self.judged) ^ u64::from(repaired ^ self.last_sacks.is_empty())
    }
}

impl PacketSender {
    /// A word of each line that most acknowledgements need, so that they are there when one comes.
    #[must_use]
    pub fn fetch(&self) -> u64 {
        self.sender.fetch() ^ u64::from(self.accepting.is_some())
    }

    /// A word of the first packet that is out, and of the place of the next one, and of what a repair
    /// needs.
    #[must_use]
    pub fn fetch_more(&self) -> u64 {
        self.sender.flight().fetch()
            ^ self.sender.fetch_repair()
            ^ self.sender.control().fetch_more()
    }
}

impl PacketReceiver {
    /// A word of each line that most packets need, so that they are there when one comes.
    #[must_use]
    pub fn fetch(&self) -> u64 {
        self.receiver.fetch() ^ u64::from(self.messages)
    }

    /// A word of what it holds out of order.
    #[must_use]
    pub fn fetch_more(&self) -> u64 {
        self.receiver.held().first().map_or(0, |block| block.start)
    }
}
