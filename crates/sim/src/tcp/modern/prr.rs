//! Proportional rate reduction: RFC 9937, as Linux computes it.

use super::window::Window;

/// A reduction, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prr {
    /// Delivered since it began.
    pub delivered: u32,
    /// Sent since it began.
    pub out: u32,
}

/// What an acknowledgement in a reduction says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Packets that it delivered.
    pub delivered: u32,
    /// Packets that were found lost.
    pub lost: u32,
    /// Packets in flight after it.
    pub in_flight: u32,
    /// Whether it acknowledged new data cumulatively.
    pub advanced: bool,
}

impl Prr {
    /// Sets the window to what may be in flight now. RFC 9937, section 6: above the threshold the
    /// window falls in proportion to what is delivered; below it, it is filled up by slow start
    /// while acknowledgements advance and nothing more is lost, else by what is delivered.
    pub fn on_ack(&mut self, window: &mut Window, ack: Progress) {
        if ack.delivered == 0 || window.before_reduction == 0 {
            return;
        }
        self.delivered += ack.delivered;
        let count = if ack.in_flight > window.ssthresh {
            let delivered = u64::from(self.delivered) * u64::from(window.ssthresh);
            let due = delivered.div_ceil(u64::from(window.before_reduction)) as i64;
            due - i64::from(self.out)
        } else {
            let banked = i64::from(self.delivered) - i64::from(self.out);
            let slow_start = i64::from(ack.advanced && ack.lost == 0);
            (banked.max(i64::from(ack.delivered)) + slow_start)
                .min(i64::from(window.ssthresh - ack.in_flight))
        };
        // The first packet of a recovery is sent whatever the window.
        let count = count.max(i64::from(self.out == 0));
        window.cwnd = (i64::from(ack.in_flight) + count).max(0) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(delivered: u32, in_flight: u32) -> Progress {
        Progress { delivered, lost: 0, in_flight, advanced: false }
    }

    #[test]
    fn rfc_9937_above_the_threshold_two_are_sent_for_three_delivered() {
        // ssthresh 7 of 10: after ten deliveries seven are sent.
        let mut window = Window { ssthresh: 7, before_reduction: 10, ..Window::new(10) };
        let mut prr = Prr::default();
        let mut in_flight = 19;
        let mut sent = 0;
        for _ in 0..10 {
            in_flight -= 1;
            prr.on_ack(&mut window, ack(1, in_flight));
            let count = window.cwnd - in_flight;
            prr.out += count;
            sent += count;
            in_flight += count;
        }
        assert_eq!(sent, 7);
    }

    #[test]
    fn rfc_9937_below_the_threshold_it_conserves_packets_or_slow_starts() {
        let mut window = Window { ssthresh: 7, before_reduction: 10, ..Window::new(10) };
        let mut prr = Prr { delivered: 3, out: 3 };
        prr.on_ack(&mut window, ack(1, 3));
        assert_eq!(window.cwnd, 4, "one for one");
        prr.out += 1;
        prr.on_ack(&mut window, Progress { advanced: true, ..ack(1, 3) });
        assert_eq!(window.cwnd, 5, "and one more");
        prr.out += 2;
        prr.on_ack(&mut window, Progress { advanced: true, lost: 1, ..ack(1, 3) });
        assert_eq!(window.cwnd, 4, "unless more is lost");
    }

    #[test]
    fn rfc_9937_at_the_threshold_the_window_is_the_threshold() {
        let mut window = Window { ssthresh: 7, before_reduction: 10, ..Window::new(10) };
        let mut prr = Prr { delivered: 8, out: 3 };
        prr.on_ack(&mut window, Progress { advanced: true, ..ack(1, 7) });
        assert_eq!(window.cwnd, 7);
    }

    #[test]
    fn the_first_packet_is_sent_whatever_the_window() {
        let mut window = Window { ssthresh: 20, before_reduction: 30, ..Window::new(30) };
        let mut prr = Prr::default();
        prr.on_ack(&mut window, ack(1, 20));
        assert_eq!(window.cwnd, 21);
        prr.out = 1;
        prr.on_ack(&mut window, ack(1, 20));
        assert_eq!(window.cwnd, 20, "the second waits for room");
    }
}
