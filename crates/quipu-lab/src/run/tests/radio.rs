//! Paths over the radio: pages of the framework paper's scene, shared airtime, and stations that walk.

use super::*;
use quipu_record::FlowRecord;

fn scene(level: &str) -> Plan {
    plan(|scenario| {
        scenario.pages = vec!["framework-youtube".to_owned()];
        scenario.networks = vec![find_network(&format!("framework-scene-{level}")).unwrap()];
    })
}

/// A plan of `text` over radios alone, for the links behind them are faster than they are.
fn radio(stations: &str, paths: &[&str], text: &str) -> Plan {
    let paths: Vec<_> = paths
        .iter()
        .map(|name| {
            format!(
                "{{ name = \"{name}\", radio = \"{name}\", down = {{ rate = \"1gbit\", \
                 delay = \"5ms\", queue = \"4000p\" }} }}"
            )
        })
        .collect();
    let text = format!(
        "pages = []\nduration = \"10s\"\n{text}\n[[networks]]\nname = \"n\"\npaths = [{}]\n\
         [networks.radio]\nstations = {stations}\naccess_points = [\n\
         {{ name = \"a\", position = [0, 0], channel = 36 }},\n\
         {{ name = \"b\", position = [0, 0], channel = 36 }},\n\
         {{ name = \"c\", position = [0, 0], channel = 40 }},\n]",
        paths.join(", ")
    );
    Plan::new(Scenario::from_toml(&text, "a.toml").unwrap()).unwrap()
}

fn goodputs(plan: &Plan) -> Vec<f64> {
    let mbit = |flow: &FlowRecord| flow.goodput().bits_per_sec() as f64 / 1e6;
    first(plan).traffic.flows.iter().map(mbit).collect()
}

#[test]
fn a_page_loads_in_the_framework_papers_scene_over_both_paths() {
    let times = ["low-b", "low-a", "medium", "high", "walk"].map(|level| {
        let plan = scene(level);
        let record = first(&plan);
        assert_eq!(record, first(&plan), "{level}");
        let sent: Vec<_> = record.paths_of(End::Server).map(|path| path.bytes_sent.0).collect();
        assert!(sent.len() == 2 && sent.iter().all(|&bytes| bytes > 50_000), "{level}: {sent:?}");
        record.page_time
    });
    // 1.6 MB over about 60 Mb/s take 0.2 s.
    assert!(times.iter().all(|time| *time > Duration::from_millis(200)), "{times:?}");
    assert!(times.iter().all(|time| *time < Duration::from_secs(5)), "{times:?}");
    assert!(times[0] < times[3], "clean paths are faster than lossy ones: {times:?}");
}

#[test]
fn directions_and_access_points_on_a_channel_share_it() {
    let near = "[{ position = [3, 4] }]";
    let down = "[[flows]]\nname = \"down\"\npaths = [\"a\"]\n";
    let alone = goodputs(&radio(near, &["a"], down))[0];
    // 29.9 Mb/s of UDP, less headers and what acknowledgements take.
    assert!((20.0..28.0).contains(&alone), "{alone}");
    let up = "[[flows]]\nname = \"up\"\npaths = [\"a\"]\ndirection = \"up\"\n";
    let both = goodputs(&radio(near, &["a"], &format!("{down}{up}")));
    assert!(both.iter().all(|rate| *rate > 2.0), "{both:?}");
    assert!(both[0] + both[1] < alone * 1.1, "{both:?}");
    let second = |path: &str| format!("[[flows]]\nname = \"second\"\npaths = [\"{path}\"]\n");
    let same = goodputs(&radio(near, &["a", "b"], &format!("{down}{}", second("b"))));
    assert!(same[0] + same[1] < alone * 1.1, "{same:?}");
    let other = goodputs(&radio(near, &["a", "c"], &format!("{down}{}", second("c"))));
    assert!(other.iter().all(|rate| *rate > alone * 0.9), "{other:?}");
}

#[test]
fn a_flow_slows_down_as_its_station_walks_away_and_ends_out_of_reach() {
    let away =
        "[{ position = [0, 0] }, { position = [5, 0], walk = [{ to = [185, 0], speed = 7.5 }] }]";
    let rate = |from: u32| {
        let window = format!("measure = {{ from = \"{from}s\", until = \"{}s\" }}", from + 2);
        let text = format!("{window}\n[[flows]]\nname = \"x\"\n");
        let plan = radio(away, &["a"], &text);
        let mut scenario = plan.scenario;
        scenario.duration = Duration::from_secs(20);
        goodputs(&plan_of(scenario))[0]
    };
    let rates = [1, 4, 8, 14].map(rate);
    assert!(rates.is_sorted_by(|before, after| before > after), "{rates:?}");
    assert!(rates[0] > 18.0 && rates[2] < 10.0 && rates[3] < 0.1, "{rates:?}");
}
