//! What both ends need of memory when a packet comes. Where connections are many it is far away, and
//! whoever looks at that of several at once waits hardly longer than for one.

use super::answers::PacketReceiver;
use super::ends::PacketSender;
use super::sender::Sender;

impl Sender {
    /// A word of each line that most acknowledgements need.
    fn fetch(&self) -> u64 {
        let Self { rtt, delivery, pacer, control, flight, .. } = self;
        let times = rtt.rto() ^ rtt.deviation() ^ pacer.next_at() ^ self.usage.since;
        let bytes = self.una ^ self.written ^ flight.end();
        let counts = delivery.delivered ^ flight.lost ^ self.rack.reorderings ^ self.judged;
        let measured = rtt.min().is_some() ^ delivery.prior_delivered().is_some();
        let governed =
            pacer.is_on() ^ control.governs() ^ control.wants_sample(&self.window, Some(0));
        let armed = self.timer.span().is_some() ^ self.last_sacks.is_empty() ^ self.burst_open;
        let undoes = self.prior_ssthresh.is_some() ^ self.tail_probe.is_some();
        let answers = u64::from(measured ^ governed ^ armed ^ undoes);
        times ^ bytes ^ u64::from(counts) ^ answers
    }
}

impl PacketSender {
    /// A word of each line that most acknowledgements need, so that they are there when one comes.
    #[must_use]
    pub fn fetch(&self) -> u64 {
        self.sender.fetch() ^ u64::from(self.accepting.is_some())
    }

    /// A word of the first packet that is out, and of the place of the next one.
    #[must_use]
    pub fn fetch_more(&self) -> u64 {
        self.sender.flight().fetch()
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
