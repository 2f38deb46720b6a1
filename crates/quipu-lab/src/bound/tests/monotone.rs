//! Better networks have no higher bounds.

use quipu_base::{Bytes, Duration, Instant, Random, Rate, Seed};
use quipu_web::page::{Blocking, Discovery as Found, Object, ObjectId, ObjectKind, Page};
use rand::RngExt;

use super::super::{Level, Links, PageBound, Situation};
use quipu_scenario::{LinkSpec, Network, PathSpec, Scenario};

fn page(random: &mut Random) -> Page {
    let object = |id: u32, random: &mut Random| {
        let bytes = Bytes(1 << random.random_range(0..19));
        let kind = if id == 0 { ObjectKind::Document } else { ObjectKind::Image };
        let mut object = Object::new(ObjectId(id), format!("https://a.test/{id}"), kind, bytes);
        object.think_time = Duration::from_micros(random.random_range(0..20_000));
        object.request.body = Bytes(1 << random.random_range(0..12));
        if random.random_range(0..2) == 0 {
            object.blocking = Blocking::Render;
        }
        let parent = ObjectId(random.random_range(0..id.max(1)));
        object.discovery = match random.random_range(0..3) {
            _ if id == 0 => Found::Root,
            0 => Found::AfterCompletion { parent },
            _ => Found::ParserOffset { parent, offset: Bytes(random.random_range(0..5_000)) },
        };
        if id > 0 {
            object.gap.computing = Duration::from_millis(random.random_range(0..4));
            object.waits_for = vec![ObjectId(random.random_range(0..id))];
        }
        object
    };
    Page::new("p", (0..8).map(|id| object(id, random)).collect()).unwrap()
}

fn network(random: &mut Random) -> Network {
    let mut link = |prefix: &str| {
        let rate = random.random_range(200..50_000);
        let delay = random.random_range(1..80_000);
        let (from, step) = (random.random_range(0..300), random.random_range(100..50_000));
        format!(
            "{prefix}rate={rate}kbit,{prefix}delay={delay}us,{prefix}steps={}ms:{step}kbit,\
             {prefix}outage={from}ms..{}ms",
            from + 50,
            from + 20,
        )
    };
    let first = format!("name=a,{},{}", link(""), link("up."));
    let second = format!("name=b,bottleneck=a,{}", link("access."));
    let third = format!("name=c,{}", link(""));
    let paths = [first, second, third];
    let paths = paths.iter().map(|text| text.parse::<PathSpec>().unwrap());
    Network::from_links(paths.collect())
}

/// Bounds on both levels, `windows` known or not.
fn bounds(network: &Network, page: &Page) -> Vec<PageBound> {
    let scenario = Scenario::default();
    let links = Links::new(network, &scenario).unwrap();
    let situation = |windows| Situation {
        scenario: &scenario,
        page,
        start: Instant::ZERO,
        first: true,
        windows,
    };
    [(Level::Fluid, false), (Level::Tight, false), (Level::Tight, true)]
        .map(|(level, windows)| links.bound(level, &situation(windows)))
        .to_vec()
}

fn assert_not_above(better: &[PageBound], worse: &[PageBound], what: &str) {
    for (better, worse) in better.iter().zip(worse) {
        assert!(better.page_time <= worse.page_time, "{what}: {better:?} above {worse:?}");
        assert!(better.critical_time <= worse.critical_time, "{what}");
        let mut objects = better.objects.iter().zip(&worse.objects);
        assert!(objects.all(|(better, worse)| better <= worse), "{what}: {better:?}, {worse:?}");
    }
}

fn change(network: &Network, mut change: impl FnMut(&mut LinkSpec)) -> Network {
    let mut network = network.clone();
    for path in &mut network.paths {
        if let Some(links) = path.own_links_mut() {
            change(&mut links.up);
            change(&mut links.down);
        }
        path.access.iter_mut().for_each(&mut change);
    }
    network
}

#[test]
fn what_makes_a_network_better_raises_no_bound() {
    for case in 0..300 {
        let random = &mut Seed::new(case).stream("monotone", 0);
        let (network, page) = (network(random), page(random));
        let all = bounds(&network, &page);
        assert_not_above(&all, &all[1..], "what is known less of");

        let faster = |rate: Rate| Rate::from_bits_per_sec(rate.bits_per_sec() / 7 * 8 + 13);
        let more_rate = change(&network, |link| {
            link.rate = link.rate.map(faster);
            link.steps
                .iter_mut()
                .for_each(|step| step.rate = step.rate.map(|rate| rate.map(faster)));
        });
        assert_not_above(&bounds(&more_rate, &page), &all, "more rate");
        let less_delay = change(&network, |link| link.delay = link.delay.scaled(2, 3));
        assert_not_above(&bounds(&less_delay, &page), &all, "less delay");
        let up = change(&network, |link| link.outages.clear());
        assert_not_above(&bounds(&up, &page), &all, "no outages");
        for paths in 1..network.paths.len() {
            let mut fewer = network.clone();
            fewer.paths.truncate(paths);
            assert_not_above(&all, &bounds(&fewer, &page), "a path more");
        }
    }
}
