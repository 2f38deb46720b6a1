//! A replay is the run that a result is about, and tells by which path every byte came.

use std::sync::atomic::AtomicBool;

use quipu_base::{Bytes, Duration, Instant};
use quipu_lab::batch::{run_all, run_session};
use quipu_lab::detail::{DetailError, Options, RunName, find, plan_of, replay};
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::policies::Registry;
use quipu_record::End;
use quipu_record::{Detail, Segment};
use quipu_scenario::{Document, Scenario, find_network};

const CELL: Cell = Cell { page: 0, network: 0, policy: 0, run: 1 };

/// Two runs with one policy.
fn plan(network: &str, fields: &[(&str, &str)]) -> Plan {
    let networks = vec![find_network(network).unwrap()];
    let mut scenario = Scenario { runs: 2, networks, ..Scenario::default() };
    scenario.policies.baselines = false;
    for (field, value) in [("policies.stream", "rr"), ("policies.path", "minrtt")] {
        scenario = scenario.with_field(field, value).unwrap();
    }
    for (field, value) in fields {
        scenario = scenario.with_field(field, value).unwrap();
    }
    Plan::new(scenario).unwrap()
}

/// Replays a load, after checking what holds of every replay.
fn replayed(plan: &Plan, options: &Options) -> Detail {
    let detail = replay(plan, CELL, options).unwrap();
    let records = run_session(plan, CELL).unwrap();
    let chosen = |it: &&_| {
        let record: &quipu_record::RunRecord = it;
        (record.client, record.visit) == (options.client, options.visit)
    };
    let record = records.iter().find(chosen).unwrap();
    assert_eq!(detail.record, *record);
    detail.compare(record.page_time).unwrap();

    assert_eq!(detail.objects.len(), record.objects.len());
    let mut again = Bytes::ZERO;
    for (object, recorded) in detail.objects.iter().zip(&record.objects) {
        assert_eq!((object.object, object.body), (recorded.object, recorded.body));
        assert_eq!(object.completed, recorded.since_page_start);
        assert_eq!(object.requested + recorded.since_request, object.completed);
        assert!(object.requested <= object.first_byte && object.first_byte <= object.completed);
        again += object.carried.iter().map(|path| path.again).sum();

        let carried: Bytes = object.carried.iter().map(|path| path.bytes).sum();
        assert_eq!(carried, object.body, "{object:?}");
        assert!(object.carried.windows(2).all(|pair| pair[0].path < pair[1].path));
        let segments = &object.segments;
        assert!(segments.len() <= options.segments.max(object.carried.len()), "{object:?}");
        let place = |segment: &Segment| (segment.from, segment.path);
        assert!(segments.windows(2).all(|pair| place(&pair[0]) < place(&pair[1])), "{object:?}");
        for path in &object.carried {
            let own: Vec<&Segment> = segments.iter().filter(|it| it.path == path.path).collect();
            assert_eq!(own.iter().map(|it| it.bytes).sum::<Bytes>(), path.bytes, "{object:?}");
            assert!(own.windows(2).all(|pair| pair[0].to < pair[1].from), "{object:?}");
        }
        for segment in segments {
            assert!(object.requested < segment.from && segment.from <= segment.to, "{object:?}");
            assert!(segment.to <= object.completed && !segment.bytes.is_zero(), "{object:?}");
        }
        // What is read has come, and the last that is read comes last.
        if let Some(first) = segments.first() {
            assert!(first.from <= object.first_byte, "{object:?}");
        }
    }
    // What is sent again arrives once more only if the first was not lost.
    let sent_again = record.sender_total(|path| path.bytes_resent + path.bytes_copies);
    assert!(again <= sent_again, "{again} of {sent_again}");

    for connection in &detail.series {
        for path in &connection.paths {
            let points = options.points as usize;
            assert!((points / 4..=points).contains(&path.rows.len()), "{}", path.rows.len());
            assert!(path.rows.windows(2).all(|pair| pair[1].at - pair[0].at == detail.every));
            assert!(path.rows.iter().all(|row| row.at <= record.ended_at));
            assert!(path.rows.iter().map(|row| row.bytes_sent).is_sorted());
            assert_eq!(detail.paths[path.path as usize], path.name);
        }
    }
    detail
}

/// Bytes of bodies that came by each path, and those that came again.
fn by_path(detail: &Detail) -> Vec<(Bytes, Bytes)> {
    let mut sums = vec![(Bytes::ZERO, Bytes::ZERO); detail.paths.len()];
    for path in detail.objects.iter().flat_map(|object| &object.carried) {
        let sum = &mut sums[path.path as usize];
        *sum = (sum.0 + path.bytes, sum.1 + path.again);
    }
    sums
}

#[test]
fn a_replay_is_the_run_of_the_sweep_and_both_paths_have_their_part() {
    let plan = plan("wifi+lte", &[("pages", "sitespeed")]);
    let detail = replayed(&plan, &Options::default());
    let batch = run_all(&plan, Some(2), &AtomicBool::new(false), &|_| {}, &run_session).unwrap();
    assert_eq!(batch.finished[1], (CELL, detail.record.clone()));

    assert_eq!(detail.paths, ["wifi", "lte"]);
    assert_eq!(detail.objects[0].kind, "document");
    assert!(by_path(&detail).iter().all(|(bytes, _)| *bytes > Bytes(50_000)));
    let [page] = &detail.series[..] else { panic!("one connection") };
    assert_eq!((&*page.flow, page.end, page.paths.len()), ("page", End::Server, 2));
    // The page as a whole needs no less than any of its objects.
    let latest = detail.objects.iter().map(|object| object.bound.tight).max();
    assert!(latest.unwrap() <= detail.record.page_bound.tight);
}

#[test]
fn a_replay_tells_what_requests_waited_for_and_when_objects_were_discovered() {
    let plan = plan("wifi+lte", &[("pages", "wikipedia")]);
    let detail = replayed(&plan, &Options::default());
    assert!(detail.objects[0].needs.is_empty(), "nothing leads to the document");
    assert!(detail.objects[1..].iter().all(|object| !object.needs.is_empty()));
    assert!(detail.objects.iter().all(|object| object.discovered <= object.requested));
    assert!(detail.objects.iter().any(|object| object.discovered < object.requested));
    assert!(detail.objects.iter().any(|object| object.priority == "VeryHigh"));
}

#[test]
fn a_path_alone_brings_everything() {
    let plan = plan("wifi+lte", &[("pages", "sitespeed"), ("policies.path", "single:id=0")]);
    let detail = replayed(&plan, &Options::default());
    let [(first, _), (second, _)] = by_path(&detail)[..] else { panic!("two paths") };
    assert_eq!((first.0, second), (detail.objects.iter().map(|it| it.body.0).sum(), Bytes::ZERO));
    assert!(detail.objects.iter().flat_map(|it| &it.segments).all(|it| it.path == 0));
}

#[test]
fn copies_come_again_and_only_then() {
    let fields = [("pages", "framework-youtube")];
    let none = by_path(&replayed(&plan("wifi+lte", &fields), &Options::default()));
    assert!(none.iter().all(|(_, again)| again.is_zero()), "{none:?}");
    let copies = [("pages", "framework-youtube"), ("policies.reinject", "xlink")];
    let detail = replayed(&plan("wifi+lte-lossy", &copies), &Options::default());
    assert!(by_path(&detail).iter().any(|(_, again)| !again.is_zero()), "{:?}", by_path(&detail));
}

#[test]
fn every_way_to_carry_a_page_tells_its_bytes() {
    let lossy = "wifi+lte-lossy";
    for fields in [
        &[("http", "h2-tcp")][..],
        &[("http", "h3")],
        &[("http", "h3"), ("transport.server_write_chunk", "32KiB")],
        &[("http", "raw")],
        &[("http", "raw"), ("raw.sender", "client"), ("raw.order", "random")],
        &[
            ("http", "raw"),
            ("raw.objects", "30kB+0B+2kB,0B+0B,500kB"),
            ("raw.streams", "100ms,default,1s"),
        ],
        &[("transport.start", "warm:4"), ("transport.tls", "rustls")],
        &[("transport.server_write_chunk", "32KiB"), ("transport.start", "paths-ready")],
        &[("priorities", "urgency")],
    ] {
        let pages = [("pages", if fields[0].1 == "raw" { "framework-youtube" } else { "amazon" })];
        let is_page = !fields.iter().any(|(field, _)| *field == "raw.objects");
        let all: Vec<_> = pages.iter().filter(|_| is_page).chain(fields).copied().collect();
        let plan = plan(lossy, &all);
        let detail = replayed(&plan, &Options::default());
        assert!(by_path(&detail).iter().all(|(bytes, _)| !bytes.is_zero()), "{fields:?}");
    }
}

#[test]
fn visits_clients_and_origins_are_told_apart() {
    let pages = ("pages", "framework-youtube");
    let session = plan("wifi+lte", &[pages, ("session", "2")]);
    let [first, second] =
        [0, 1].map(|visit| replayed(&session, &Options { visit, ..Options::default() }));
    assert_eq!(first.began_at, Instant::ZERO);
    assert!(second.began_at > first.record.ended_at);
    assert!(second.series[0].paths[0].rows[0].at >= second.began_at);

    let clients = plan("wifi+lte", &[pages, ("clients", "2")]);
    let [one, two] =
        [0, 1].map(|client| replayed(&clients, &Options { client, ..Options::default() }));
    assert_eq!([&one, &two].map(|it| it.series.len()), [1, 1]);
    assert_eq!([&one, &two].map(|it| &*it.series[0].flow), ["page", "page:1"]);

    let origins = plan("wifi+lte", &[("pages", "cnn"), ("origins", "recorded")]);
    let options = Options { connections: 3, segments: 5, points: 40, ..Options::default() };
    let detail = replayed(&origins, &options);
    assert_eq!(detail.series.len(), 3);
    // Some lived between two samples.
    assert!(detail.series.len() + detail.series_left_out <= detail.record.connections.len());
    assert!(detail.series_left_out > 200, "{}", detail.series_left_out);
    assert_eq!(&*detail.series[0].flow, "page");
    assert!(detail.series[1].flow.starts_with("page@"), "{}", detail.series[1].flow);
}

#[test]
fn flows_without_pages_have_series_alone() {
    let text = "pages = []\nduration = \"10s\"\nnetworks = [{ name = \"n\", paths = [\
                { name = \"a\", down = { rate = \"10mbit\", delay = \"10ms\" } },\
                { name = \"b\", down = { rate = \"5mbit\", delay = \"30ms\" } }] }]\n\
                [[flows]]\nname = \"both\"\n[[flows]]\nname = \"late\"\nstart = \"4s\"\npaths = [1]";
    let plan = plan_of(&Document::new(text, "scenario.toml"), &Registry::builtin()).unwrap();
    let detail = replay(&plan, Cell { run: 0, ..CELL }, &Options::default()).unwrap();
    assert!(detail.objects.is_empty() && detail.record.objects.is_empty());
    let [both, late] = &detail.series[..] else { panic!("two flows") };
    let names = |at: &quipu_record::ConnectionSeries| -> Vec<(u32, String)> {
        at.paths.iter().map(|path| (path.path, path.name.clone())).collect()
    };
    assert_eq!(names(both), [(0, "a".to_owned()), (1, "b".to_owned())]);
    assert_eq!(names(late), [(1, "b".to_owned())]);
    assert!(both.paths[0].rows.len() > 190 && both.paths[0].rows.len() <= 200);
    assert!(late.paths[0].rows[0].at >= Instant::ZERO + Duration::from_secs(4));
    assert_eq!(detail.record, run_session(&plan, Cell { run: 0, ..CELL }).unwrap()[0]);

    // 30 Mb/s for 10 s, as the uplinks are like the downlinks.
    let few = Options { bytes: Bytes(37_499_999), ..Options::default() };
    let told = replay(&plan, Cell { run: 0, ..CELL }, &few).unwrap_err().to_string();
    assert!(told.contains("may carry 37500000 B; expected at most 37499999 B"), "{told}");
}

#[test]
fn names_of_a_result_find_their_run_and_others_are_told_with_the_nearest() {
    let plan = plan("wifi+lte", &[("pages", "sitespeed"), ("policies.stream", "rr,dwrr")]);
    let text = plan.scenario.to_toml().unwrap();
    let read = plan_of(&Document::new(&text, "r/scenario.toml"), &Registry::builtin()).unwrap();
    let name = RunName { page: "sitespeed", network: "wifi+lte", policy: "dwrr + minrtt", run: 1 };
    assert_eq!(find(&read, &name).unwrap(), Cell { policy: 1, ..CELL });
    let refused = |name: RunName<'_>| find(&read, &name).unwrap_err().to_string();
    let told = refused(RunName { page: "sitesped", ..name });
    assert!(told.ends_with("there are: sitespeed; did you mean `sitespeed`?"), "{told}");
    let told = refused(RunName { network: "wifi+lt", ..name });
    assert!(told.contains("did you mean `wifi+lte`?"), "{told}");
    let told = refused(RunName { policy: "dwr + minrtt", ..name });
    assert!(told.contains("did you mean `dwrr + minrtt`?"), "{told}");
    assert_eq!(refused(RunName { run: 2, ..name }), "run is 2; expected 0 to 1");

    let told =
        plan_of(&Document::new("seeed = 1", "r/scenario.toml"), &Registry::builtin()).unwrap_err();
    let told = told.to_string();
    assert!(told.contains("r/scenario.toml:1") && told.contains("seed"), "{told}");
    let unknown = text.replace("\"rr\"", "\"rrr\"");
    assert!(plan_of(&Document::new(&unknown, "r/scenario.toml"), &Registry::builtin()).is_err());
}

#[test]
fn what_is_not_there_or_too_large_is_refused() {
    let plan = plan("wifi+lte", &[("pages", "sitespeed"), ("session", "2")]);
    let refused =
        |cell, options: Options| -> DetailError { replay(&plan, cell, &options).unwrap_err() };
    let usual = Options::default();
    for (cell, options, expected) in [
        (Cell { page: 1, ..CELL }, usual, "page is 1; expected 0"),
        (Cell { network: 7, ..CELL }, usual, "network is 7; expected 0"),
        (Cell { policy: 1, ..CELL }, usual, "policy is 1; expected 0"),
        (Cell { run: 9, ..CELL }, usual, "run is 9; expected 0 to 1"),
        (CELL, Options { visit: 2, ..usual }, "visit is 2; expected 0 to 1"),
        (CELL, Options { client: 1, ..usual }, "client is 1; expected 0"),
    ] {
        assert_eq!(refused(cell, options).to_string(), expected);
    }
    let told = refused(CELL, Options { bytes: Bytes(1_000), ..usual });
    assert!(matches!(told, DetailError::TooLarge { most: Bytes(1_000), .. }), "{told}");
}

#[test]
fn a_result_of_another_version_is_told() {
    let plan = plan("wifi+lte", &[("pages", "sitespeed")]);
    let detail = replay(&plan, CELL, &Options::default()).unwrap();
    let recorded = detail.record.page_time + Duration::from_nanos(1);
    let told = detail.compare(recorded).unwrap_err().to_string();
    assert!(told.contains(&recorded.as_nanos().to_string()), "{told}");
    assert!(told.contains("another version") && !told.contains('\n'), "{told}");
}
