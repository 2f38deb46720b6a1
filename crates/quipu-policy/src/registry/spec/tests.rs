use super::*;
use crate::registry::{AddError, Confidence, Entry, Param};

fn registry() -> Registry {
    Registry::builtin()
}

fn parse(text: &str) -> Result<PolicySpec, SpecError> {
    PolicySpec::parse(&registry(), text)
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn nothing_given_is_the_default_choice() {
    assert_eq!(parse("").unwrap().to_string(), "stream=rr path=minrtt ack=own congestion=newreno");
    assert_eq!(parse("").unwrap(), PolicySpec::default_of(&registry()).unwrap());
}

#[test]
fn canonical_text_reads_as_the_same() {
    for text in [
        "stream=wrr:mode=quantum path=single:id=3",
        "path=minrtt:probe=1500ms stream=swrr:most=10,mode=smooth",
        "stream=fifo:retx_first=false resend=rank:avoid_after=2",
        "pack=many stream=dwrr:slots=20",
    ] {
        let spec = parse(text).unwrap();
        assert_eq!(parse(&spec.to_string()).unwrap(), spec, "{spec}");
        assert_eq!(parse(&spec.full_text()).unwrap(), spec, "{}", spec.full_text());
    }
    let spec = parse("stream=wrr:mode=fluid").unwrap();
    assert!(spec.to_string().starts_with("stream=wrr path"));
    assert!(spec.full_text().starts_with("stream=wrr:mode=fluid path=minrtt:probe="));
}

#[test]
fn every_builtin_policy_builds_with_each_of_its_choices() {
    let registry = registry();
    let base = PolicySpec::default_of(&registry).unwrap();
    for entry in registry.iter() {
        base.with(&registry, entry.layer, entry.name).unwrap();
        for param in &entry.params {
            if let crate::registry::Domain::Choice(names) = param.domain {
                for name in names {
                    let text = format!("{}:{}={name}", entry.name, param.name);
                    base.with(&registry, entry.layer, &text).unwrap();
                }
            }
        }
    }
}

#[test]
fn builtin_entries_could_have_been_added_by_anyone() {
    let mut registry = Registry::new();
    for entry in Registry::builtin().iter() {
        registry.add(entry.clone()).unwrap();
        assert!(registry.add(entry.clone()).is_err());
    }
}

#[test]
fn an_entry_may_take_the_place_of_an_added_one_but_of_no_builtin_one() {
    let mut registry = registry();
    registry.put(entry("silent", Layer::Joint)).unwrap();
    let again = Entry { about: "once more", ..entry("silent", Layer::Joint) };
    registry.put(again).unwrap();
    assert_eq!(registry.get(Layer::Joint, "silent").unwrap().about, "once more");
    assert_eq!(registry.of(Layer::Joint).filter(|entry| entry.name == "silent").count(), 1);
    let layer = Layer::Path;
    assert_eq!(registry.put(entry("ecf", layer)), Err(AddError::Exists { layer, name: "ecf" }));
    assert!(registry.put(entry("Odd", Layer::Path)).is_err());
}

#[test]
fn errors_name_what_was_meant() {
    assert_eq!(
        error("stream=fiffo"),
        "no stream policy is called `fiffo`; did you mean `fifo`? \
         Known: rr, fifo, pfifo, edf, rfc9218, strict, srpt, sjf, fsp, wrr, swrr, dwrr"
    );
    assert!(
        error("steam=rr")
            .starts_with("no part of a policy is called `steam`; did you mean `stream`")
    );
    assert_eq!(error("stream=minrtt"), "`minrtt` is no stream policy but a path policy");
    assert_eq!(error("stream=wrr:mode=fast"), "wrr: mode=fast: expected one of fluid, quantum");
    assert_eq!(error("stream=rr stream=fifo"), "stream is given twice");
    assert_eq!(error("wrr"), "`wrr`: expected layer=policy");
    assert_eq!(error("stream=wrr:"), "``: expected parameter=value");
    assert!(error("stream=").starts_with("no stream policy is called ``. Known: "));
}

#[test]
fn parts_that_contradict_each_other_are_refused() {
    assert_eq!(
        error("stream=fifo resend=rank"),
        "stream=fifo and resend=rank exclude each other: the stream policy sends lost bytes first"
    );
    assert!(error("stream=rr:unit=frame pack=one").contains("says how packets are filled"));
    assert!(parse("stream=fifo:retx_first=false resend=rank").is_ok());
    assert!(parse("stream=rr:unit=frame pack=many").is_ok());
}

#[test]
fn a_stream_policy_brings_its_rule_for_lost_bytes() {
    let rules =
        |text: &str| parse(text).unwrap().build(&BuildContext::new(Seed::new(1))).unwrap().resend;
    assert!(rules("stream=fifo").first);
    assert!(!rules("stream=rr").first);
    assert_eq!(rules("resend=first:avoid_after=3").avoid_origin_after_pto, 3);
}

/// A joint policy that sends nothing.
struct Silent;

impl Joint for Silent {
    fn decide(
        &mut self,
        _ask: crate::Ask,
        _view: &crate::View<'_>,
        _notes: &mut crate::Notes,
    ) -> crate::Decision {
        crate::Decision::Idle
    }

    fn on_event(&mut self, _event: &crate::Event<'_>, _view: &crate::View<'_>) {}
}

fn entry(name: &'static str, layer: Layer) -> Entry {
    Entry {
        name,
        layer,
        about: "for this test",
        formula: "none: it is silent",
        params: vec![Param::integer("n", 1, (1, 5), "a number")],
        source: "our choice",
        confidence: Confidence::High,
        build: &|_, _| Ok(Built::joint(Silent)),
    }
}

#[test]
fn no_joint_policy_goes_with_a_stream_path_or_pack_policy() {
    let registry = Registry::builtin();
    let joints: Vec<&str> = registry.of(Layer::Joint).map(|entry| entry.name).collect();
    assert!(!joints.is_empty());
    for joint in joints {
        let text = format!("joint={joint} resend=first reinject=redundant");
        assert!(PolicySpec::parse(&registry, &text).is_ok(), "{text}");
        for other in ["stream=rr", "path=ecf", "pack=many"] {
            let error = PolicySpec::parse(&registry, &format!("joint={joint} {other}"));
            assert!(matches!(error, Err(SpecError::Conflict { .. })), "{joint} {other}");
        }
    }
}

#[test]
fn a_joint_policy_takes_the_place_of_stream_and_path() {
    let mut registry = registry();
    registry.add(entry("silent", Layer::Joint)).unwrap();
    let spec = PolicySpec::parse(&registry, "joint=silent:n=2").unwrap();
    assert_eq!(spec.to_string(), "joint=silent:n=2 ack=own congestion=newreno");
    let error = PolicySpec::parse(&registry, "joint=silent stream=rr").unwrap_err();
    assert!(error.to_string().contains("orders streams and picks paths itself"), "{error}");
    let pair = spec.with(&registry, Layer::Stream, "wrr").unwrap();
    assert_eq!(pair.to_string(), "stream=wrr path=minrtt ack=own congestion=newreno");
    assert_eq!(pair.with(&registry, Layer::Joint, "silent:n=2").unwrap(), spec);
}

#[test]
fn an_entry_that_builds_another_layer_is_refused_when_chosen() {
    let mut registry = registry();
    registry.add(entry("odd", Layer::Path)).unwrap();
    let error = PolicySpec::parse(&registry, "path=odd").unwrap_err();
    assert_eq!(error.to_string(), "odd: it built no path policy");
}

#[test]
fn entries_with_wrong_declarations_are_refused() {
    let mut registry = Registry::new();
    assert!(registry.add(entry("Odd", Layer::Path)).is_err());
    assert!(registry.add(entry("", Layer::Path)).is_err());
    let out_of_range = Param::integer("m", 9, (1, 5), "a number");
    let wrong = Entry { params: vec![out_of_range], ..entry("a", Layer::Path) };
    assert!(registry.add(wrong).is_err());
    let param = Param::flag("m", true, "a switch");
    let twice = Entry { params: vec![param.clone(), param], ..entry("a", Layer::Path) };
    assert!(registry.add(twice).is_err());
    let unexplained = Entry { formula: "", ..entry("a", Layer::Path) };
    assert_eq!(registry.add(unexplained), Err(AddError::Formula { policy: "a" }));
}
