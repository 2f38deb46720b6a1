use quipu_base::{Bytes, Rate};
use quipu_link::{GilbertElliott, Loss};

use super::*;

fn own(path: &PathSpec) -> &OwnLinks {
    path.own_links().unwrap()
}

fn refused(text: &str) -> String {
    text.parse::<PathSpec>().unwrap_err().to_string()
}

#[test]
fn a_link_option_gives_both_directions() {
    let path: PathSpec = "name=lte,rate=30mbit,delay=10ms,loss=1.5%,up.rate=5mbit".parse().unwrap();
    assert_eq!(own(&path).down.rate, Some(Rate::from_mbit_per_sec(30)));
    assert_eq!(own(&path).up.rate, Some(Rate::from_mbit_per_sec(5)));
    assert_eq!(own(&path).up.delay, Duration::from_millis(10));
    assert_eq!(own(&path).up.loss, own(&path).down.loss);
    assert_eq!(path.summary(), "lte 30mbit 10ms loss 1.5% (up 5mbit 10ms loss 1.5%)");
}

#[test]
fn all_parts_of_a_link_reach_its_configuration() {
    let text = "rate=10mbit,delay=20ms,jitter=2ms,queue=1bdp,reorder=2%+5ms,duplicate=1%,\
                outage=1s..2s,outage=5s";
    let path = text.parse().unwrap();
    let config = own(&path).down.config(Bytes(28));
    assert_eq!(config.validate(), Ok(()));
    assert_eq!(config.jitter, Duration::from_millis(2));
    // 10 Mbit/s × 40 ms, and with 60 ms more on other links.
    assert_eq!(config.queue_bytes(), Bytes(50_000));
    let longer = own(&path).down.config_on(Bytes(28), Duration::from_millis(100));
    assert_eq!(longer.queue_bytes(), Bytes(125_000));
    assert_eq!(config.reorder.unwrap().extra, Duration::from_millis(5));
    assert_eq!(config.duplicate.unwrap().share, 0.01);
    assert_eq!(config.outages.len(), 2);
    assert_eq!(config.outages[1].until, None);
}

#[test]
fn models_of_loss_and_jitter_reach_the_configuration_and_survive_a_file() {
    let text = "name=x,rate=30mbit,delay=10ms,jitter=0.8ms,jitter_correlation=75%,\
                loss=gemodel 1% 30% 80% 0.1%,up.loss=bursts 1.5% 50%,up.jitter_correlation=0%";
    let path: PathSpec = text.parse().unwrap();
    let OwnLinks { down, up } = own(&path);
    let config = down.config(Bytes(28));
    assert_eq!(config.validate(), Ok(()));
    assert_eq!(config.jitter_correlation, 0.75);
    assert!(matches!(config.loss, Loss::GilbertElliott(model) if model.loss_in_bad == 0.8));
    let bursts = GilbertElliott::with_share(0.015, 0.5);
    assert_eq!(up.config(Bytes(28)).loss, bursts.into());
    assert_eq!(up.config(Bytes(28)).jitter_correlation, 0.0);
    assert_eq!(
        path.summary(),
        "x 30mbit 10ms ±800us correlation 75% loss gemodel 1% 30% 80% 0.1% \
         (up 30mbit 10ms ±800us loss bursts 1.5% 50%)"
    );
    let again: PathSpec = toml::from_str(&toml::to_string(&path).unwrap()).unwrap();
    assert_eq!(again, path);
    let file = "name = \"x\"\ndown = { rate = \"30mbit\", delay = \"10ms\", jitter = \"0.8ms\", \
                jitter_correlation = \"75%\", loss = \"gemodel 1% 30% 80% 0.1%\" }\n\
                up = { loss = \"bursts 1.5% 50%\", jitter_correlation = \"0%\" }";
    assert_eq!(toml::from_str::<PathSpec>(file).unwrap(), path);
}

#[test]
fn models_of_loss_and_jitter_that_are_none_are_refused_by_field_and_value() {
    let error = refused("rate=3mbit,delay=10ms,loss=gemdel 1%");
    assert!(error.starts_with("loss is `gemdel 1%`: expected a share from 0% to 100%"), "{error}");
    assert!(refused("rate=3mbit,delay=10ms,loss=bursts 1% 100%").contains("below 100%"));
    assert!(refused("rate=3mbit,delay=1ms,jiter_correlation=1%").contains("`jitter_correlation`?"));
    let whole: PathSpec = "rate=3mbit,delay=1ms,jitter_correlation=100%".parse().unwrap();
    let error = whole.validate().unwrap_err().to_string();
    assert!(error.starts_with("down: link: jitter_correlation is 1, expected"), "{error}");
}

#[test]
fn steps_and_marks_reach_the_configuration_and_survive_a_file() {
    let text = "name=x,rate=2mbit,delay=20ms,mark=0.5bdp,steps=20s:4mbit+45s:0+50s:1mbit,\
                up.mark=never,up.steps=1s:3mbit";
    let path: PathSpec = text.parse().unwrap();
    assert_eq!(
        path.summary(),
        "x 2mbit 20ms steps 20s:4mbit+45s:0+50s:1mbit mark 0.5bdp (up 2mbit 20ms steps 1s:3mbit)"
    );
    let OwnLinks { down, up } = own(&path);
    let config = down.config(Bytes(28));
    assert_eq!(config.validate(), Ok(()));
    let rates: Vec<_> = config.steps.iter().map(|step| step.rate.bits_per_sec()).collect();
    assert_eq!(rates, [4_000_000, 0, 1_000_000]);
    assert_eq!(config.steps[1].at.as_nanos(), 45_000_000_000);
    // 2 Mbit/s × 40 ms / 2, whatever the steps.
    assert_eq!(config.mark_bytes(), Bytes(5_000));
    let longer = down.config_on(Bytes(28), Duration::from_millis(100));
    assert_eq!(longer.mark_bytes(), Bytes(12_500));
    assert_eq!((up.mark, up.steps.len()), (None, 1));
    let again: PathSpec = toml::from_str(&toml::to_string(&path).unwrap()).unwrap();
    assert_eq!(again, path);
    let many = "rate=2mbit,delay=20ms,steps=1s:1mbit+2s:2mbit+3s:3mbit+4s:4mbit,name=y";
    assert_eq!(many.parse::<PathSpec>().unwrap().summary(), "y 2mbit 20ms 4 steps");
}

#[test]
fn steps_that_are_none_are_refused_by_field_and_value() {
    let with_steps = |steps: &str| format!("rate=2mbit,delay=1ms,steps={steps}");
    let error = refused(&with_steps("20s"));
    assert_eq!(error, "steps is `20s`: expected an instant and a rate, such as 20s:4mbit");
    assert!(refused(&with_steps("20:4mbit")).starts_with("steps is `20`: expected a time"));
    assert!(refused(&with_steps("20s:fast")).starts_with("steps is `fast`: expected a rate"));
    assert!(refused(&with_steps("1s:1mbit,steps=2s:1mbit")).ends_with("steps is given twice"));
    assert!(refused("rate=2mbit,delay=1ms,mark=0p").starts_with("mark is `0p`: expected never"));
    let invalid = |steps: &str| {
        let path: PathSpec = with_steps(steps).parse().unwrap();
        path.validate().unwrap_err().to_string()
    };
    assert!(invalid("2s:1mbit+2s:3mbit").contains("steps.at is 2000.000 ms, expected later"));
    assert!(invalid("2s:1mbit+3s:0").contains("steps.rate is 0"));
}

#[test]
fn bad_links_are_refused_by_field_and_value() {
    assert!(refused("rate=-3mbit,delay=10ms").starts_with("rate is `-3mbit`: expected a rate"));
    assert!(refused("rate=NaN,delay=10ms").contains("`NaN`"));
    assert!(refused("rate=3mbit,delay=10ms,loss=101%").starts_with("loss is `101%`"));
    assert!(refused("rate=3mbit,dlay=10ms").ends_with("did you mean `delay`?"));
    assert!(refused("rate=3mbit,rate=4mbit,delay=1ms").ends_with("given twice"));
    assert!(refused("rate=3mbit").starts_with("delay is missing"));
    assert!(refused("30mbit").contains("expected field=value"));
    let path: PathSpec = "rate=3mbit,delay=1ms,jitter=2ms".parse().unwrap();
    let error = path.validate().unwrap_err().to_string();
    assert!(error.starts_with("down: link: jitter is 2.000 ms"), "{error}");
}

#[test]
fn an_uplink_in_a_file_overrides_only_what_it_names() {
    let text = "name = \"dsl\"\ndown = { rate = \"16mbit\", delay = \"12ms\" }\n\
                up = { rate = \"1mbit\" }";
    let path: PathSpec = toml::from_str(text).unwrap();
    assert_eq!(own(&path).up.delay, own(&path).down.delay);
    let again: PathSpec = toml::from_str(&toml::to_string(&path).unwrap()).unwrap();
    assert_eq!(again, path);
    assert!(!toml::to_string(&path).unwrap().contains("access"));
    let unknown = toml::from_str::<PathSpec>(&text.replace("delay", "dealy"));
    assert!(unknown.unwrap_err().to_string().contains("unknown field `dealy`"));
}

#[test]
fn a_real_path_has_an_uplink_and_nothing_else() {
    let text = "name = \"wifi\"\nuplink = \"wlan0\"";
    let path: PathSpec = toml::from_str(text).unwrap();
    assert_eq!((path.uplink(), path.summary().as_str()), (Some("wlan0"), "wifi by wlan0"));
    assert_eq!(PathSpec::over("wlan0".to_owned()).summary(), "wlan0");
    assert_eq!(toml::from_str::<PathSpec>(&toml::to_string(&path).unwrap()).unwrap(), path);
    let both = format!("{text}\ndown = {{ rate = \"1mbit\", delay = \"1ms\" }}");
    let error = toml::from_str::<PathSpec>(&both).unwrap_err().to_string();
    assert!(error.contains("uplink is wlan0; expected no down beside it"), "{error}");
}

#[test]
fn a_path_has_links_or_shares_them() {
    let both = refused("bottleneck=near,rate=4mbit,delay=2ms");
    assert!(both.starts_with("bottleneck is near; expected either that or links"), "{both}");
    assert!(refused("bottleneck=near,up.rate=4mbit").starts_with("bottleneck is near"));
    let access = "bottleneck=near,access.rate=4mbit";
    assert!(refused(access).starts_with("access.delay is missing; expected a time"));
    assert!(refused("botleneck=near").ends_with("did you mean `bottleneck`?"));
    let none = toml::from_str::<PathSpec>("name = \"x\"").unwrap_err().to_string();
    assert!(
        none.contains("down or bottleneck or uplink is missing; expected a table of rate"),
        "{none}"
    );
    let path: PathSpec =
        "rate=4mbit,delay=2ms,access.rate=4mbit,access.delay=1ms,access.jitter=2ms"
            .parse()
            .unwrap();
    let error = path.validate().unwrap_err().to_string();
    assert!(error.starts_with("access: link: jitter is 2.000 ms"), "{error}");
}

#[test]
fn ramps_change_rate_delay_and_loss_in_stairs() {
    let text =
        "name=x,rate=10mbit,delay=20ms,steps=1s:20mbit:40ms:10%~40ms+2s:0+3s:1mbit:bursts 1% 50%";
    let path: PathSpec = text.parse().unwrap();
    path.validate().unwrap();
    let summary = "x 10mbit 20ms steps 1s:20mbit:40ms:10%~40ms+2s:0+3s:1mbit:bursts 1% 50%";
    assert_eq!(path.summary(), summary);
    let config = own(&path).down.config(Bytes(28));
    let at = |millis: u64| quipu_base::Instant::ZERO + Duration::from_millis(millis);
    // Four stairs of 10 ms, each at the middle of the line, and then the end.
    let rates: Vec<_> =
        config.steps.iter().map(|step| (step.at, step.rate.bits_per_sec() / 1_000)).collect();
    let expected = [
        (at(1_000), 11_250),
        (at(1_010), 13_750),
        (at(1_020), 16_250),
        (at(1_030), 18_750),
        (at(1_040), 20_000),
        (at(2_000), 0),
        (at(3_000), 1_000),
    ];
    assert_eq!(rates, expected);
    let delays = config.delays.as_ref().unwrap();
    let micros =
        [0, 999, 1_000, 1_039, 1_040, 9_000].map(|time| delays.value_at(at(time)).as_micros());
    assert_eq!(micros, [20_000, 20_000, 22_500, 37_500, 40_000, 40_000]);
    let losses = config.losses.as_ref().unwrap();
    let shares = [0, 1_000, 1_040, 3_000].map(|time| losses.value_at(at(time)));
    let bursts = Loss::GilbertElliott(GilbertElliott::with_share(0.01, 0.5));
    let plain = [0.0, 0.0125, 0.1].map(Loss::Independent);
    assert_eq!(shares, [plain[0], plain[1], plain[2], bursts]);
    assert!(own(&path).down.is_random());
    let again: PathSpec = toml::from_str(&toml::to_string(&path).unwrap()).unwrap();
    assert_eq!(again, path);
    // 10 Mbit in the first second, 0.6 Mbit in the ramp, 19.2 Mbit, nothing, 1 Mbit.
    assert_eq!(own(&path).down.capacity(at(0), at(4_000)), Bytes(30_800_000 / 8));
}

#[test]
fn an_mtu_and_its_steps_reach_the_configuration_and_survive_a_file() {
    let text = "name=x,rate=10mbit,delay=20ms,mtu=1500B,steps=1s:1280B+2s:5mbit:1400B";
    let path: PathSpec = text.parse().unwrap();
    path.validate().unwrap();
    assert_eq!(path.summary(), "x 10mbit 20ms steps 1s:1280B+2s:5mbit:1400B mtu 1500B");
    let config = own(&path).down.config(Bytes(28));
    let mtus = config.mtus.as_ref().unwrap();
    let at = |millis: u64| quipu_base::Instant::ZERO + Duration::from_millis(millis);
    assert_eq!(config.mtu, Some(Bytes(1_500)));
    let over_time = [0, 999, 1_000, 2_000].map(|time| mtus.value_at(at(time)).0);
    assert_eq!(over_time, [1_500, 1_500, 1_280, 1_400]);
    assert_eq!(own(&path).up.mtu, Some(Bytes(1_500)), "the uplink is as the downlink");
    let again: PathSpec = toml::from_str(&toml::to_string(&path).unwrap()).unwrap();
    assert_eq!(again, path);
    let plain: PathSpec = "rate=10mbit,delay=20ms".parse().unwrap();
    assert_eq!(own(&plain).down.config(Bytes(28)).mtu, None);
    let mut problems = Vec::new();
    let small: PathSpec = "rate=10mbit,delay=20ms,mtu=1000B".parse().unwrap();
    own(&small).down.check_fields("down", &mut problems);
    assert!(problems[0].to_string().contains("1228B to 65535B"), "{problems:?}");
}

#[test]
fn ramps_that_are_none_are_refused() {
    let invalid = |steps: &str| {
        let text = format!("rate=2mbit,delay=1ms,steps={steps}");
        let read = text.parse::<PathSpec>().and_then(|path| path.validate());
        read.unwrap_err().to_string()
    };
    assert!(invalid("1s:1mbit~5s+3s:2mbit").contains("steps.at is 3s, expected not before 6s"));
    assert!(invalid("1s:1ms:2ms").contains("`2ms`: expected one rate, one delay, one loss"));
    assert!(invalid("1s:1mbit~long").contains("`long`: expected a time"));
    assert!(invalid("2s:9ms+1s:8ms").contains("steps.at is 1000.000 ms, expected later"));
    let none = toml::from_str::<PathSpec>(
        "name = \"x\"\ndown = { rate = \"1mbit\", delay = \"1ms\", steps = [{ at = \"1s\" }] }",
    );
    let none = none.unwrap_err().to_string();
    assert!(
        none.contains("rate or delay or loss or mtu is missing; expected a rate with its unit"),
        "{none}"
    );
    let jitter = "rate=2mbit,delay=9ms,jitter=5ms,steps=1s:4ms".parse::<PathSpec>().unwrap();
    assert!(jitter.validate().unwrap_err().to_string().contains("jitter is 5.000 ms"));
}

#[test]
fn a_path_names_a_model_of_energy_and_a_price() {
    let read = |fields: &str| {
        let text =
            format!("name = \"x\"\ndown = {{ rate = \"1mbit\", delay = \"1ms\" }}\n{fields}");
        toml::from_str::<PathSpec>(&text).map_err(|error| error.message().to_owned())
    };
    let path = read("energy = \"lte\"\nprice = 2.5").unwrap();
    assert_eq!(path.energy, Some(crate::choice::EnergyModel::Lte));
    assert_eq!(path.price_millionths(), Some(2_500_000));
    let again: PathSpec = toml::from_str(&toml::to_string(&path).unwrap()).unwrap();
    assert_eq!(again, path);
    let plain = read("").unwrap();
    assert_eq!((plain.energy, plain.price_millionths()), (None, None));
    assert!(!toml::to_string(&plain).unwrap().contains("energy"));
    assert!(read("energy = \"lt\"").unwrap_err().contains("did you mean `lte`?"));
}
