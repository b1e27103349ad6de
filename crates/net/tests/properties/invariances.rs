//! Conservation, Little's law, and changes of a network that must not change its results.

use crate::random_network::{LinkPlan, Plan, Run, plans};
use proptest::prelude::*;
use tcpcast_link::queue::{BufferLimits, QueueConfig};
use tcpcast_net::Network;

/// Asserts that each link accounts for all packets of each class.
fn assert_conservation(run: &Run, plan: &Plan) {
    for (index, link) in run.links.iter().enumerate() {
        let inside = run.record.inside.get(link);
        let mut on_link = 0;
        for (class, counters) in (0..).zip(run.counters(index)) {
            let of_class =
                |payload: &u32| plan.routes[plan.packets[*payload as usize].route].class == class;
            let here = inside.map_or(0, |packets| packets.keys().filter(|p| of_class(p)).count());
            let accounted = counters.left.packets + counters.dropped_packets() + here as u64;
            assert_eq!(counters.entered.packets, accounted, "class {class} of link {index}");
            on_link += here as u64;
        }
        assert_eq!(run.network.packets_on_links()[link.index()], on_link, "link {index}");
    }
}

/// Asserts that two runs had the same outcome for all packets.
fn assert_same(run: &Run, other: &Run) {
    let both = run.record.delivered.iter().zip(&other.record.delivered);
    for (delivered, other) in both {
        assert_eq!(delivered, other);
    }
    assert_eq!(run.record.delivered.len(), other.record.delivered.len());
    let drops = |run: &Run| {
        let index = |link| run.links.iter().position(|other| *other == link);
        let dropped = run.record.dropped.iter();
        let mut dropped: Vec<_> =
            dropped.map(|(time, link, payload, _)| (*time, *payload, index(*link))).collect();
        dropped.sort_unstable();
        dropped
    };
    assert_eq!(drops(run), drops(other));
    for link in 0..run.links.len() {
        // Only links without events count the time on them.
        let counters = |run: &Run| {
            run.counters(link).map(|mut counters| {
                counters.held = 0;
                counters
            })
        };
        assert_eq!(counters(run), counters(other));
    }
}

/// A network whose results depend on the order of arrivals at every link.
fn with_all_events() -> Network<u32> {
    Network::default().with_events_on_all_links()
}

proptest! {
    #[test]
    fn links_account_for_all_packets(plan in plans()) {
        let mut run = Run::new(&plan, Network::default());
        for (payload, packet) in plan.packets.iter().enumerate() {
            run.send(payload, packet, run.routes[packet.route]);
            assert_conservation(&run, &plan);
        }
        let run = run.send_all(&Plan { packets: Vec::new(), ..plan.clone() });
        assert_conservation(&run, &plan);
        prop_assert_eq!(run.record.delivered.len() + run.record.dropped.len(), plan.packets.len());
        prop_assert!(run.record.inside.values().all(|packets| packets.is_empty()));
    }

    #[test]
    fn queues_follow_littles_law(plan in plans()) {
        let mut run = Run::new(&plan, Network::default());
        for (payload, packet) in plan.packets.iter().enumerate() {
            run.send(payload, packet, run.routes[packet.route]);
            for link in run.links.clone() {
                let both = run.network.littles_law(link, packet.time, &mut run.record);
                prop_assert!(both.is_none_or(|(held, waited)| held == waited), "{both:?}");
            }
        }
        let mut run = run.send_all(&Plan { packets: Vec::new(), ..plan.clone() });
        let end = run.record.now;
        for link in run.links.clone() {
            let in_queue = run.record.in_queue.get(&link).copied().unwrap_or(0);
            let occupancy = run.network.update_occupancy(link, end, &mut run.record);
            let classes = (0..3).map(|class| run.network.counters(link, class).held);
            let held: u64 = classes.sum();
            prop_assert_eq!(u128::from(occupancy.packet_nanos + held), in_queue);
        }
    }

    #[test]
    fn events_on_private_links_change_nothing(plan in plans()) {
        let with = Run::new(&plan, with_all_events()).send_all(&plan);
        let without = Run::new(&plan, Network::default()).send_all(&plan);
        assert_same(&with, &without);
    }

    #[test]
    fn order_of_links_changes_nothing(plan in plans()) {
        let run = Run::new(&plan, Network::default()).send_all(&plan);
        let mut renamed = plan.clone();
        renamed.links.reverse();
        let last = plan.links.len() - 1;
        renamed.routes.iter_mut().for_each(|route| {
            route.links.iter_mut().for_each(|link| *link = last - *link);
        });
        let mut other = Run::new(&renamed, Network::default()).send_all(&renamed);
        other.links.reverse();
        assert_same(&run, &other);
    }

    #[test]
    fn infinitely_fast_link_changes_nothing(plan in plans(), held: bool) {
        let run = Run::new(&plan, Network::default()).send_all(&plan);
        let fast = LinkPlan {
            rate_bps: if held { Some(u64::MAX) } else { None },
            queue: if held { QueueConfig::HeadDrop } else { QueueConfig::DropTail },
            limits: BufferLimits::default(),
            tokens: false,
            policed: false,
            remark: None,
        loss: None,
            jitter: None,
            delay: 0,
            changes: Vec::new(),
            seed: 0,
        };
        let mut longer = plan.clone();
        longer.links.push(fast);
        // Behind the same link on all routes: packets that leave it at one time keep their order.
        let fast = plan.links.len();
        longer.routes.iter_mut().for_each(|route| {
            let links = route.links.iter().flat_map(|link| [Some(*link), (*link == 0).then_some(fast)]);
            route.links = links.flatten().collect();
        });
        let mut other = Run::new(&longer, Network::default()).send_all(&longer);
        other.links.pop();
        assert_same(&run, &other);
    }

    #[test]
    fn disjoint_networks_do_not_affect_each_other(first in plans(), second in plans()) {
        let alone = [&first, &second].map(|plan| Run::new(plan, Network::default()).send_all(plan));
        let mut both = Run::new(&first, Network::default());
        let links = std::mem::take(&mut both.links);
        let routes = std::mem::take(&mut both.routes);
        both.add_links(&second);
        both.add_routes(&second);
        let tagged = |plan: &Plan, routes: &[tcpcast_net::RouteId], begin: usize| {
            let packets = plan.packets.iter().enumerate();
            let sent: Vec<_> = packets
                .map(|(number, packet)| (packet.clone(), routes[packet.route], begin + number))
                .collect();
            sent
        };
        let mut packets = tagged(&first, &routes, 0);
        packets.extend(tagged(&second, &both.routes, first.packets.len()));
        packets.sort_by_key(|(packet, ..)| packet.time);
        for (packet, route, payload) in packets {
            both.send(payload, &packet, route);
        }
        both.network.advance_to(tcpcast_link::NEVER - 1, &mut both.record);
        let begin = first.packets.len() as u32;
        let mut expected = alone[0].record.delivered.clone();
        let second_delivered = alone[1].record.delivered.iter();
        expected.extend(second_delivered.map(|(time, payload, ecn)| (*time, payload + begin, *ecn)));
        expected.sort_by_key(|(time, payload, _)| (*time, *payload));
        let mut delivered = both.record.delivered.clone();
        delivered.sort_by_key(|(time, payload, _)| (*time, *payload));
        prop_assert_eq!(delivered, expected);
        for (ids, alone) in [(&links, &alone[0]), (&both.links, &alone[1])] {
            for (index, link) in ids.iter().enumerate() {
                let counters = [0, 1, 2].map(|class| both.network.counters(*link, class));
                prop_assert_eq!(counters, alone.counters(index));
            }
        }
    }
}
