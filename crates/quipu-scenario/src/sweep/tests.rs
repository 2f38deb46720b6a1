use super::*;

fn read(text: &str) -> SweepSpec {
    SweepSpec::read(&Document::new(text, "a.toml")).unwrap().unwrap()
}

fn told(text: &str) -> String {
    let findings = SweepSpec::read(&Document::new(text, "a.toml")).unwrap_err();
    findings.iter().map(Finding::to_string).collect::<Vec<_>>().join("\n")
}

fn texts(spec: &SweepSpec) -> Vec<String> {
    let text = |point: &PointValues| {
        point.iter().map(|value| value.to_string().replace('"', "")).collect::<Vec<_>>().join(" ")
    };
    spec.points().iter().map(text).collect()
}

#[test]
fn a_grid_is_the_product_of_its_lists_in_the_order_of_the_file() {
    let spec = read(
        "runs = 3\n[sweep]\ninitial-window = [10, 32]\nbrowser = [\"firefox\", \"chrome\"]\n\
         \"networks.*.paths.1.*.rate\" = [\"1mbit\"]\n",
    );
    let names: Vec<&str> = spec.fields().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["transport.initial_window", "browser", "networks.*.paths.1.*.rate"]);
    assert_eq!(
        texts(&spec),
        ["10 firefox 1mbit", "10 chrome 1mbit", "32 firefox 1mbit", "32 chrome 1mbit"]
    );
    assert_eq!(spec.count(), Some(4));
    assert!(SweepSpec::read(&Document::new("runs = 3", "a.toml")).unwrap().is_none());
}

#[test]
fn fields_of_a_zip_move_together() {
    let spec = read(
        "[sweep]\nseed = [1, 2]\n[[sweep.zip]]\nbrowser = [\"chrome\", \"firefox\"]\n\
         priorities = [\"tree\", \"urgency\"]\n",
    );
    assert_eq!(
        texts(&spec),
        ["1 chrome tree", "1 firefox urgency", "2 chrome tree", "2 firefox urgency"]
    );
    let error = told("[[sweep.zip]]\nbrowser = [\"chrome\", \"firefox\"]\nseed = [1]\n");
    assert_eq!(error, "a.toml:3:8: sweep.zip[0].seed: 1 values; expected 2, as before it");
}

#[test]
fn steps_lie_between_two_amounts() {
    let spec = read(
        "[sweep.\"networks.0.paths.0.*.rate\"]\nfrom = \"1mbit\"\nto = \"100mbit\"\nsteps = 3\nscale = \"log\"\n",
    );
    assert_eq!(texts(&spec), ["1mbit", "10mbit", "100mbit"]);
    // A name of its own may begin as the part that is drawn.
    let spec = read("[sweep.random_seed]\nfields = [\"seed\"]\nfrom = 1\nto = 3\nsteps = 3\n");
    assert_eq!(texts(&spec), ["1", "2", "3"]);
    let spec = read("[sweep]\ninitial_window = { from = 10, to = 12, steps = 9 }\n");
    assert_eq!(texts(&spec), ["10", "11", "12"]);
}

#[test]
fn samples_keep_their_values_whatever_else_is_drawn() {
    let random = |more: &str, count: u32| {
        let rate = "\"networks.0.paths.0.*.rate\" = { from = \"1mbit\", to = \"50mbit\", scale = \"log\" }";
        read(&format!("[sweep.random]\ncount = {count}\nseed = 7\n{more}{rate}\n"))
    };
    let few = texts(&random("", 3));
    let many = texts(&random("browser = [\"chrome\", \"firefox\"]\n", 200));
    let rates: Vec<&str> = many.iter().filter_map(|text| text.split(' ').nth(1)).collect();
    assert_eq!(few, rates[..3]);
    assert!(many.iter().any(|text| text.starts_with("chrome")));
    assert!(many.iter().any(|text| text.starts_with("firefox")));
    // Half of the draws lie below the geometric mean of the ends.
    let bits = |text: &&str| {
        <quipu_base::Rate as super::super::units::Unit>::read(text).unwrap().bits_per_sec()
    };
    let low = rates.iter().filter(|rate| bits(rate) < 7_071_000).count();
    assert!((70..130).contains(&low), "{low} of 200");
    assert!(rates.iter().all(|rate| (1_000_000..=50_000_000).contains(&bits(rate))));
}

#[test]
fn what_is_written_out_reads_as_the_same() {
    let spec = read(
        "[sweep]\nbrowser = [\"chrome\"]\n\
         ratio = { values = [0.5, 1.0], fields = [\"networks.*.paths.1.*.rate\"], times = \"networks.*.paths.0.down.rate\" }\n\
         \"policies.stream\" = [[\"rr\"], [\"dwrr\", \"wrr\"]]\n\
         [[sweep.zip]]\nseed = [1, 2]\ndiscovery = [\"recorded\", \"all-at-once\"]\n\
         [sweep.random]\ncount = 3\nseed = 9\ninitial_window = { from = 5, to = 40 }\nhost_jitter = [\"0\", \"1ms\"]\n",
    );
    let text = spec.to_toml();
    let again = read(&text);
    assert_eq!(again.to_toml(), text);
    assert_eq!(texts(&again), texts(&spec));
    let names = |spec: &SweepSpec| spec.fields().map(|it| it.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&again), names(&spec));
}

#[test]
fn each_mistake_is_told_with_its_place_and_the_nearest_name() {
    for (text, expected) in [
        (
            "[sweep]\n",
            "a.toml:1:1: sweep: empty; expected a field with a list of values, such as browser = [\"chrome\", \"firefox\"]",
        ),
        ("sweep = 3\n", "a.toml:1:9: sweep: 3; expected a table of fields with lists of values"),
        (
            "[sweep]\nbrowser = \"chrome\"\n",
            "a.toml:2:11: sweep.browser: \"chrome\"; expected a list of values",
        ),
        (
            "[sweep]\nbrowser = []\n",
            "a.toml:2:11: sweep.browser: 0 in the list; expected 1 to 10000 values",
        ),
        (
            "[sweep]\nseed = [1, 2, 1]\n",
            "a.toml:2:15: sweep.seed[2]: 1 twice; expected different values",
        ),
        (
            "[sweep]\nruns = [1]\n",
            "a.toml:2:1: sweep.runs: no field to sweep over; expected the scenario's own `runs`, which every point has",
        ),
        (
            "[sweep]\nseed = { value = [1] }\n",
            "a.toml:2:10: sweep.seed.value: no such field; expected one of values, from, to, steps, scale, fields, times; did you mean `values`?",
        ),
        (
            "[sweep]\nseed = { from = 1, to = 9 }\n",
            "a.toml:2:8: sweep.seed.steps: missing; expected how many values",
        ),
        (
            "[sweep.random]\ncount = 0\nseed = 1\n",
            "a.toml:2:9: sweep.random.count: 0; expected a whole number, 1 to 10000",
        ),
        (
            "[sweep.random]\ncount = 3\n",
            "a.toml:1:1: sweep.random: no field; expected a field with `from` and `to`, or with a list of values",
        ),
        (
            "[sweep.random]\ncount = 3\nhost_jitter = { from = \"1ms\", to = \"1mbit\" }\n",
            "a.toml:3:15: sweep.random.host_jitter: { from = \"1ms\", to = \"1mbit\" }; expected two amounts of one kind",
        ),
        (
            "[sweep.random]\ncount = 3\ninitial_window = { from = 0, to = 9, scale = \"log\" }\n",
            "a.toml:3:18: sweep.random.initial_window: { from = 0, to = 9, scale = \"log\" }; expected two amounts of one kind, above zero on a logarithmic scale",
        ),
    ] {
        assert_eq!(told(text), expected);
    }
    let unknown = told("[sweep]\nbrowsr = [\"chrome\"]\n");
    assert!(
        unknown.starts_with("a.toml:2:1: sweep.browsr: `browsr`; expected a scenario field:"),
        "{unknown}"
    );
    assert!(unknown.ends_with("did you mean `browser`?"), "{unknown}");
    let twice = told("[sweep]\ninitial_window = [1]\n\"transport.initial_window\" = [2]\n");
    assert!(twice.contains("`transport.initial_window` twice"), "{twice}");
}
