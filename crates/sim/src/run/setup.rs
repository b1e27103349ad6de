//! How a run begins: its sources, its network, and the first events.

use super::Simulation;
use crate::access::Waiting;
use crate::agenda::{Agenda, Timer};
use crate::bursts::nanoseconds;
use crate::clock::Transmitter;
use crate::config::RunConfig;
use crate::hops::{self, Tandem};
use crate::loss::BottleneckLosses;
use crate::mean_field::crowds;
use crate::network::{Lifetime, Network};
use crate::probe::{Probes, SourceRecord};
use crate::queue::QueueDiscipline;
use crate::random::{Purpose, Stream};
use crate::source::Source;
use crate::tcp::SendingEnd;
use crate::traffic::{Coupling, Traffic};
use crate::transfers::{GAP, MOST_UNDER_WAY, Transfers};
use crate::way::{AccessLoss, Way, class_of};

impl<S: SendingEnd, Q: QueueDiscipline, const TAPS: bool, const HOPS: bool>
    Simulation<S, Q, TAPS, HOPS>
{
    /// Sets a run up; replication `replication` of the configuration's seed.
    #[must_use]
    pub fn new(config: &RunConfig, queue: Q, replication: u32) -> Self {
        debug_assert!(TAPS || !config.is_watched(), "made without taps");
        debug_assert!(HOPS || !config.has_hops(), "made without hops");
        let class_of = class_of(&config.classes);
        let mut ways: Vec<Way> =
            config.classes.iter().map(|class| Way::new(class, config)).collect();
        let network = network(config, queue, &ways, &class_of, replication);
        ways.iter_mut().for_each(|way| way.set_lead(network.lead));
        let mut run = Self {
            network,
            sources: Vec::with_capacity(class_of.len()),
            ways,
            boundary: config.warmup,
            measuring: false,
            crowded: false,
            until_fetch: 0,
            until_fetch_for_link: 0,
            most_sources: class_of.len() + MOST_UNDER_WAY,
            seed: config.seed,
            replication,
            traced: config.probes.traced.clone(),
        };
        class_of.iter().for_each(|class| run.add_source(*class));
        run.schedule_starts();
        run.schedule_transfers();
        run
    }

    pub(super) fn add_source(&mut self, class: u16) {
        let index = self.sources.len() as u32;
        let record = SourceRecord::new(class, self.traced.contains(&index));
        self.sources.push(Source::new(record, self.seed, self.replication, index));
    }

    fn schedule_starts(&mut self) {
        let network = &mut self.network;
        let mut of_class = vec![0_usize; self.ways.len()];
        for (index, source) in self.sources.iter_mut().enumerate() {
            let place = &mut of_class[source.record.class()];
            let due = network.first_start(source, *place, index as u32);
            *place += 1;
            if let Some(due) = due {
                network.agenda.timer(Timer::Start, index as u32, due);
            }
        }
        network.begin_crowds();
    }

    fn schedule_transfers(&mut self) {
        let Network { agenda, traffic, transfers, lead_in, .. } = &mut self.network;
        for (class, (traffic, transfers)) in traffic.iter().zip(transfers).enumerate() {
            let gap = match traffic {
                Traffic::Transfers { .. } => GAP,
                Traffic::Arrivals { gap, .. } => nanoseconds(gap.draw(&mut transfers.gaps)),
                Traffic::OnOff { .. } | Traffic::Bulk { .. } => continue,
            };
            agenda.timer(Timer::Transfer, class as u32, gap + *lead_in);
        }
    }
}

fn network<Q, const TAPS: bool, const HOPS: bool>(
    config: &RunConfig,
    queue: Q,
    ways: &[Way],
    class_of: &[u16],
    replication: u32,
) -> Network<Q, TAPS, HOPS> {
    let lead_in = ways.iter().map(Way::to_hops).min().unwrap_or(0) + hops::time_to_meeting(config);
    let from_return = ways.iter().map(Way::return_to_sender).min().unwrap_or(0);
    let return_link = Transmitter::new(config.bottleneck_bps, config.ack_bytes);
    let lead = return_link.time_when_idle() + from_return + lead_in;
    let loss = config.loss.map(|law| {
        let stream = Stream::named(config.seed, replication, 0, Purpose::BottleneckLoss);
        BottleneckLosses::new(law, class_of.len(), stream)
    });
    Network {
        agenda: Agenda::new(ways.len()),
        now: 0,
        lead_in,
        lead,
        limit: 0,
        wanted: u64::MAX,
        ingress_waiting: Waiting::default(),
        egress_waiting: Waiting::default(),
        queue,
        pushed_out: Vec::new(),
        link: Transmitter::new(config.bottleneck_bps, config.packet_bytes),
        return_link,
        tandem: Box::new(Tandem::new(config, replication)),
        loss,
        access_loss: AccessLoss::new(config, class_of, replication),
        probes: Probes::new(
            &config.probes,
            config.classes.len(),
            config.packet_bytes,
            Tandem::stages_of(config),
        ),
        watched: config.is_watched(),
        capturing: !config.probes.captures.is_empty(),
        lifetime: Lifetime::default(),
        traffic: config.classes.iter().map(|class| class.traffic.clone()).collect(),
        crowds: crowds(config, replication),
        coupling: Coupling::default(),
        transfers: (0..config.classes.len())
            .map(|class| Transfers::new(config.seed, replication, class))
            .collect(),
    }
}
