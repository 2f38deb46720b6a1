use super::*;

/// Three paths over one pair of links: the second and, through it, the third.
const DUMBBELL: &str = r#"
name = "dumbbell"
paths = [
    { name = "near", down = { rate = "4mbit", delay = "2ms" }, up = { delay = "3ms" } },
    { name = "far", bottleneck = "near", access = { rate = "10mbit", delay = "45ms", loss = "1%" } },
    { name = "there", bottleneck = "far", access = { rate = "20mbit", delay = "10ms" } },
]
"#;

#[test]
fn paths_lead_over_the_links_of_an_earlier_one() {
    let network: Network = toml::from_str(DUMBBELL).unwrap();
    assert_eq!([0, 1, 2].map(|path| network.bottleneck(path).unwrap()), [0; 3]);
    let round_trip = |path| network.round_trip(path).unwrap();
    assert_eq!([0, 1, 2].map(round_trip), [5, 185, 45].map(Duration::from_millis));
    let summaries: Vec<_> = network.paths.iter().map(PathSpec::summary).collect();
    let expected = [
        "near 4mbit 2ms (up 4mbit 3ms)",
        "far over near access 10mbit 45ms loss 1%",
        "there over far access 20mbit 10ms",
    ];
    assert_eq!(summaries, expected);
    assert!(network.is_random(), "access links lose packets");
    let again: Network = toml::from_str(&toml::to_string(&network).unwrap()).unwrap();
    assert_eq!(again, network);
}

#[test]
fn options_say_the_same_as_a_file() {
    let paths = [
        "name=near,rate=4mbit,delay=2ms,up.delay=3ms",
        "name=far,bottleneck=near,access.rate=10mbit,access.delay=45ms,access.loss=1%",
        "bottleneck=far,access.rate=20mbit,access.delay=10ms",
    ];
    let network = Network::from_links(paths.map(|text| text.parse().unwrap()).into());
    assert_eq!(network.name, "4mbit+over-near+over-far");
    let file: Network = toml::from_str(&DUMBBELL.replace("there", "path2")).unwrap();
    assert_eq!(network.paths, file.paths);
}

#[test]
fn bottlenecks_that_are_none_are_refused() {
    let refused = |from: &str, to: &str| {
        let network: Network = toml::from_str(&DUMBBELL.replace(from, to)).unwrap();
        network.bottleneck(2).unwrap_err().to_string()
    };
    assert_eq!(
        refused("bottleneck = \"far\"", "bottleneck = \"nearr\""),
        "bottleneck is nearr; expected the name of an earlier path; did you mean `near`?; \
         there are: near, far"
    );
    let itself = refused("bottleneck = \"far\"", "bottleneck = \"there\"");
    assert!(itself.contains("expected the name of an earlier path"), "{itself}");
    let cycle = refused("bottleneck = \"near\"", "bottleneck = \"there\"");
    assert!(cycle.ends_with("there are: near"), "{cycle}");
    let twice = DUMBBELL.replace("name = \"far\"", "name = \"near\"");
    let twice = twice.replace("bottleneck = \"far\"", "bottleneck = \"near\"");
    let network: Network = toml::from_str(&twice).unwrap();
    assert!(network.bottleneck(2).unwrap_err().to_string().contains("there are several"));
}

#[test]
fn a_real_network_has_a_server_and_uplinks_and_its_paths_alone_too() {
    let url = "https://server.example:8443";
    let network = Network::real(url.to_owned(), ["wlan0", "wwan0"].map(str::to_owned));
    assert!(network.is_random() && crate::networks::problems(&network, "networks[0]").is_empty());
    assert!(network.round_trip(0).is_err(), "nobody knows it");
    let text = toml::to_string(&network).unwrap();
    assert!(text.contains(url) && !text.contains("rate") && !text.contains("delay"), "{text}");
    assert_eq!(toml::from_str::<Network>(&text).unwrap(), network);
    let alone = network.alone(1).unwrap();
    assert_eq!((alone.server.as_deref(), alone.paths[0].uplink()), (Some(url), Some("wwan0")));
    let told = |network: &Network| {
        let problems = crate::networks::problems(network, "networks[0]");
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let modelled = Network { server: None, ..network.clone() };
    assert_eq!(told(&modelled).len(), 2, "a path by an uplink has no links to model");
    let paths = vec!["rate=1mbit,delay=1ms".parse().unwrap()];
    let links = Network { paths: Network::from_links(paths).paths, ..network };
    assert!(told(&links)[0].starts_with("networks[0].paths[0].uplink is missing"), "{links:?}");
}
