//! The way of a class of sources: links of their own on both sides of the bottleneck.

use crate::access::AccessLink;
use crate::clock::{Nanos, transmission_time};
use crate::config::{AccessConfig, ClassConfig, RunConfig};
use crate::loss::LossProcess;
use crate::random::{Purpose, Stream};
use crate::traffic::Traffic;

/// What is the same for all sources of a class.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub ingress: AccessLink,
    pub egress: AccessLink,
    /// From the bottleneck to the egress link.
    pub forward: Nanos,
    /// From a receiver's answer to the return bottleneck.
    pub to_return: Nanos,
    /// From a receiver's answer to the event in which it is looked at.
    pub answer_to_event: Nanos,
    /// From the end of the transmission on the egress link to that event.
    pub egress_to_event: Nanos,
    /// From the return bottleneck to the source's own link.
    pub back: Nanos,
    /// No own link can overflow or lose at random.
    pub plain: bool,
    /// Its flows never end.
    pub endless: bool,
}

impl Way {
    pub(crate) fn new(class: &ClassConfig, config: &RunConfig) -> Self {
        let link = |access: &AccessConfig| AccessLink {
            data_time: transmission_time(config.packet_bytes, access.rate_bps),
            ack_time: transmission_time(config.ack_bytes, access.rate_bps),
            delay: access.delay,
            limit: access.limit,
        };
        let plain = |access: &AccessConfig| access.limit == u64::MAX && access.loss.is_none();
        let (ingress, egress) = (link(&class.ingress), link(&class.egress));
        Self {
            ingress,
            egress,
            forward: class.forward,
            to_return: egress.ack_time + egress.delay,
            answer_to_event: 0,
            egress_to_event: 0,
            back: class.back + ingress.delay,
            plain: plain(&class.ingress) && plain(&class.egress),
            endless: matches!(class.traffic, Traffic::Bulk { .. }),
        }
    }

    /// Events are `lead` after the return bottleneck.
    pub(crate) fn set_lead(&mut self, lead: Nanos) {
        self.answer_to_event = self.to_return + lead;
        self.egress_to_event = self.egress.delay + self.answer_to_event;
    }

    /// From the sender to the bottleneck.
    pub(crate) fn to_bottleneck(&self) -> Nanos {
        self.ingress.data_time + self.ingress.delay
    }

    /// From the return bottleneck to the sender, apart from the bottleneck itself.
    pub(crate) fn return_to_sender(&self) -> Nanos {
        self.back + self.ingress.ack_time
    }
}

/// The class of each source: the sources of a class stand together.
pub(crate) fn class_of(classes: &[ClassConfig]) -> Vec<u16> {
    let of =
        |(at, class): (usize, &ClassConfig)| std::iter::repeat_n(at as u16, class.sources as usize);
    classes.iter().enumerate().flat_map(of).collect()
}

/// Random loss on the sources' and the receivers' own links.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessLoss {
    ingress: Vec<Option<LossProcess>>,
    egress: Vec<Option<LossProcess>>,
}

impl AccessLoss {
    pub(crate) fn new(config: &RunConfig, class_of: &[u16], replication: u32) -> Self {
        let side = |purpose: Purpose, link: fn(&ClassConfig) -> &AccessConfig| {
            if config.classes.iter().all(|class| link(class).loss.is_none()) {
                return Vec::new();
            }
            let process = |(source, class): (usize, &u16)| {
                let law = link(&config.classes[*class as usize]).loss?;
                let stream = Stream::named(config.seed, replication, source as u32, purpose);
                Some(LossProcess::new(law, stream))
            };
            class_of.iter().enumerate().map(process).collect()
        };
        Self {
            ingress: side(Purpose::IngressLoss, |class| &class.ingress),
            egress: side(Purpose::EgressLoss, |class| &class.egress),
        }
    }

    pub(crate) fn ingress_loses(&mut self, source: u32) -> bool {
        loses(&mut self.ingress, source)
    }

    pub(crate) fn egress_loses(&mut self, source: u32) -> bool {
        loses(&mut self.egress, source)
    }
}

fn loses(processes: &mut [Option<LossProcess>], source: u32) -> bool {
    let process = processes.get_mut(source as usize).and_then(Option::as_mut);
    process.is_some_and(LossProcess::loses)
}
