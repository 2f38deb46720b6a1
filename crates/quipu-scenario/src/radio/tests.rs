use super::super::{Network, Scenario, builtin_networks, find_network};
use super::*;

const OFFICE: &str = r#"
name = "office"
links = [{ name = "server", down = { rate = "300mbit", delay = "1ms" } }]
paths = [
    { name = "one", radio = "east", via = ["server"], down = { rate = "35mbit", delay = "10ms" } },
    { name = "two", radio = "west", via = ["server"], down = { rate = "60mbit", delay = "15ms" } },
]
[radio]
timing = "wmediumd"
queue = "100p"
propagation = { fading = 3, shadowing = { deviation = 4.5, distance = 10, time = "5s" } }
access_points = [
    { name = "east", position = [45, 50], channel = 36 },
    { name = "west", position = [55, 50], channel = 40, power = 20 },
]
stations = [
    { position = [50, 70] },
    { position = [50, 70], walk = [{ to = [0, 70], speed = 1.5 }] },
    { waypoints = [{ at = "5s", position = [1, 2] }, { at = "9s", position = [3, 4] }], gain = 0 },
    { wander = { area = [100, 100], speed = [2, 4] } },
]
"#;

fn refused(from: &str, to: &str) -> String {
    let text = OFFICE.replace(from, to);
    assert_ne!(text, OFFICE, "{from}");
    match toml::from_str::<Network>(&text) {
        Err(error) => error.to_string(),
        Ok(network) => {
            let scenario = Scenario { networks: vec![network], ..Scenario::default() };
            scenario.validate().unwrap_err().findings()[0].to_string()
        }
    }
}

#[test]
fn a_radio_survives_a_file() {
    let network: Network = toml::from_str(OFFICE).unwrap();
    let scenario = Scenario { networks: vec![network.clone()], ..Scenario::default() };
    scenario.validate().unwrap();
    let text = scenario.to_toml().unwrap();
    assert_eq!(Scenario::from_toml(&text, "scenario.toml").unwrap(), scenario);
    assert!(network.is_random());
    // Both directions of the own and the server's link.
    let round_trips = [0, 1].map(|path| network.round_trip(path).unwrap().as_millis());
    assert_eq!(round_trips, [22, 32]);
    assert_eq!(network.paths[1].summary(), "two 60mbit 15ms via server radio west");
}

#[test]
fn a_network_without_radio_writes_nothing_of_it() {
    let lte = find_network("lte").unwrap();
    let text = toml::to_string(&lte).unwrap();
    for word in ["radio", "via", "links"] {
        assert!(!text.contains(word), "{text}");
    }
}

#[test]
fn mistakes_name_the_place_the_value_and_the_nearest_name() {
    for (from, to, expected) in [
        (
            "radio = \"west\"",
            "radio = \"wset\"",
            "networks[0].paths[1].radio: radio is wset; expected the name of an access point; did you mean `west`?; there are: east, west",
        ),
        (
            "via = [\"server\"], down = { rate = \"60",
            "via = [\"sever\"], down = { rate = \"60",
            "via has sever; expected names of the network's `links`; did you mean `server`?",
        ),
        (
            "via = [\"server\"], down = { rate = \"60",
            "via = [\"server\", \"server\"], down = { rate = \"60",
            "via has server twice",
        ),
        (
            "rate = \"60mbit\", delay = \"15ms\" }",
            "rate = \"60mbit\", delay = \"15ms\" }, access = { rate = \"1mbit\", delay = \"1ms\" }",
            "radio is west; expected no access links",
        ),
        (
            "channel = 40",
            "channel = 41",
            "networks[0].radio.access_points[1].channel: 41; expected one of 36, 40, 44",
        ),
        (
            "name = \"west\"",
            "name = \"east\"",
            "access_points[1].name: east; expected a name of its own",
        ),
        ("power = 20", "power = 200", "access_points[1].power: 200; expected -30 to 60"),
        ("fading = 3", "fading = -3", "propagation.fading: -3; expected 0 to 30"),
        ("fading = 3", "fadng = 3", "unknown field `fadng`, expected one of `exponent`, `fading`"),
        (
            "distance = 10",
            "distance = 0",
            "propagation.shadowing.distance: 0; expected 0.1 to 10000",
        ),
        ("speed = 1.5", "speed = 0", "stations[1].walk[0].speed: 0; expected 0.01 to 1000"),
        ("at = \"9s\"", "at = \"4s\"", "stations[2].waypoints: 4000.000 ms; expected later"),
        (
            "{ position = [50, 70] },",
            "{ },",
            "position or waypoints or wander is missing; expected a list",
        ),
        (
            "speed = [2, 4]",
            "speed = [4, 2]",
            "stations[3].wander.speed: 2; expected not less than the slowest",
        ),
        ("timing = \"wmediumd\"", "timing = \"wmedium\"", "did you mean `wmediumd`?"),
        ("queue = \"100p\"", "queue = \"100\"", "expected a queue such as default"),
        (
            "rate = \"300mbit\", delay = \"1ms\"",
            "rate = \"300mbit\", delay = \"1ms\", jitter = \"2ms\"",
            "networks[0].links[0].down.jitter: 2.000 ms",
        ),
    ] {
        let error = refused(from, to);
        assert!(error.contains(expected), "{to}: {error}");
    }
    let without = OFFICE.split("[radio]").next().unwrap_or_default();
    let network: Network = toml::from_str(without).unwrap();
    let error = network.validate_hops(0).unwrap_err().1.to_string();
    assert!(error.starts_with("radio is east; expected a table `radio`"), "{error}");
}

#[test]
fn hosts_beyond_the_list_are_where_the_last_station_is() {
    let radio = toml::from_str::<Network>(OFFICE).unwrap().radio.unwrap();
    let station = |pair| radio.station(pair, Seed::new(1)).unwrap();
    assert_eq!(station(0).motion, Motion::Fixed(Position::new(50.0, 70.0)));
    assert_eq!(station(2).gain, 0.0);
    assert_eq!(station(3), station(40));
    assert_ne!(station(2).seed, station(3).seed);
    let media = radio.media().unwrap();
    assert_eq!(
        media.iter().map(|(medium, _)| medium.channel().number()).collect::<Vec<_>>(),
        [36, 40]
    );
    assert_eq!(media[1].1.power, 20.0);
}

#[test]
fn the_scenes_of_the_framework_paper_ship() {
    let names: Vec<_> = builtin_networks().into_iter().map(|network| network.name).collect();
    for level in ["low-a", "low-b", "medium", "high", "walk"] {
        let name = format!("framework-scene-{level}");
        assert!(names.contains(&name), "{name}");
        let network = find_network(&name).unwrap();
        let round_trips = [0, 1].map(|path| network.round_trip(path).unwrap().as_millis());
        assert_eq!(round_trips, [20, 30]);
    }
}

#[test]
fn a_sender_that_never_rests_stays_below_the_bound_of_the_air() {
    use quipu_link::{Link, Verdict, ecn};

    let network: Network = find_network("framework-scene-walk").unwrap();
    let radio = RadioSpec { timing: RadioTiming::Standard, ..network.radio.unwrap() };
    let largest = Bytes(1_500);
    let most = radio.rate_bound(largest);
    // 12,000 bits in 326 us.
    assert_eq!(most.bits_per_sec() / 10_000, 3_681);
    let mut nearest: f64 = 0.0;
    for seed in (0..6).map(Seed::new) {
        let (medium, point) = radio.media().unwrap().pop().unwrap();
        let station = radio.station(0, seed).unwrap();
        let [down, _] = medium.join(&point, &station, RadioSpec::pair_seed(0, 1, seed)).unwrap();
        let config = LinkConfig { queue: QueueLimit::Unlimited, ..LinkConfig::default() };
        let mut link = Link::over_radio(&config, seed.child("link", 0), down).unwrap();
        let (mut now, mut moved) = (Instant::ZERO, Bytes::ZERO);
        while now < Instant::ZERO + Duration::from_secs(60) {
            let Verdict::Deliver { at, .. } = link.offer(now, Bytes(1_472), ecn::NOT_ECT) else {
                now += Duration::from_millis(1);
                continue;
            };
            moved += largest;
            now = at;
            let bound = most.bytes_in(now - Instant::ZERO);
            assert!(moved <= bound, "{moved:?} above {bound:?} at {at}");
            nearest = nearest.max(moved.0 as f64 / bound.0 as f64);
        }
    }
    // And not far below it while the station is near.
    assert!(nearest > 0.5, "{nearest}");
}
