use proptest::prelude::*;

use super::*;

fn millis(time: f64) -> Duration {
    Duration::from_secs_f64(time / 1e3)
}

fn trace(events: &[&str]) -> Vec<u8> {
    format!(r#"{{"metadata":{{"x":[1]}},"traceEvents":[{}]}}"#, events.join(",")).into_bytes()
}

/// An event of thread 7 in process 7, at a time in ms.
fn event(name: &str, phase: &str, at: f64, rest: &str) -> String {
    let ts = at * 1e3;
    format!(r#"{{"args":{{}},"name":"{name}","ph":"{phase}","ts":{ts},"pid":7,"tid":7{rest}}}"#)
        .replace(r#""args":{},"#, if rest.contains("args") { "" } else { r#""args":{},"# })
}

const MAIN: &str =
    r#"{"name":"thread_name","ph":"M","ts":0,"pid":7,"tid":7,"args":{"name":"CrRendererMain"}}"#;

fn read_all(events: &[String]) -> Activity {
    let mut all = vec![MAIN];
    all.extend(events.iter().map(String::as_str));
    read(&trace(&all)).unwrap()
}

#[test]
fn nested_events_are_flattened_and_busy_time_adds_up() {
    let activity = read_all(&[
        event("RunTask", "X", 1_000.0, r#","dur":10000"#),
        event("ParseHTML", "X", 1_001.0, r#","dur":8000,"args":{"beginData":{"url":"u"}}"#),
        event("EvaluateScript", "B", 1_002.0, r#","args":{"data":{"url":"s"}}"#),
        event("Layout", "X", 1_003.0, r#","dur":1000"#),
        event("EvaluateScript", "E", 1_006.0, ""),
        event("RunTask", "X", 1_020.0, r#","dur":5000"#),
    ]);
    let kinds: Vec<_> = activity
        .work()
        .iter()
        .map(|work| (work.start.as_millis(), work.end.as_millis(), work.kind, work.url.as_deref()))
        .collect();
    assert_eq!(
        kinds,
        [
            (0, 1, WorkKind::Other, None),
            (1, 2, WorkKind::Parse, Some("u")),
            (2, 3, WorkKind::Script, Some("s")),
            (3, 4, WorkKind::Layout, None),
            (4, 6, WorkKind::Script, Some("s")),
            (6, 9, WorkKind::Parse, Some("u")),
            (9, 10, WorkKind::Other, None),
            (20, 25, WorkKind::Other, None),
        ]
    );
    assert_eq!(activity.clock(), millis(1_000.0));
    assert_eq!(activity.busy(millis(0.0), millis(100.0)), millis(15.0));
    assert_eq!(activity.busy(millis(9.5), millis(21.0)), millis(1.5));
    assert_eq!(activity.busy(millis(10.0), millis(20.0)), Duration::ZERO);
    assert_eq!(activity.busy(millis(21.0), millis(9.5)), Duration::ZERO);
}

#[test]
fn a_span_that_never_ends_is_left_out() {
    let activity = read_all(&[
        event("RunTask", "B", 1.0, ""),
        event("Layout", "B", 5.0, ""),
        event("Paint", "B", 6.0, ""),
        event("Style", "E", 7.0, ""),
        event("Layout", "E", 8.0, ""),
        event("Layout", "E", 9.0, ""),
    ]);
    let [layout] = activity.work() else { panic!("one span has an end") };
    assert_eq!((layout.start.as_millis(), layout.end.as_millis()), (4, 7));
}

#[test]
fn a_timer_that_fires_names_how_long_it_was_set_for() {
    let set = r#","args":{"data":{"timerId":3,"timeout":200,"singleShot":true,"frame":"F"}}"#;
    let fired = r#","dur":2000,"args":{"data":{"timerId":3,"frame":"F"}}"#;
    let other = r#","dur":2000,"args":{"data":{"timerId":3,"frame":"G"}}"#;
    let activity = read_all(&[
        event("TimerInstall", "I", 10.0, set),
        event("TimerFire", "X", 210.0, fired),
        event("FunctionCall", "X", 210.5, r#","dur":1000,"args":{"data":{"url":"s"}}"#),
        event("TimerFire", "X", 300.0, other),
    ]);
    let [timer, unknown] = activity.timers() else { panic!("two timers fired") };
    assert_eq!(timer.timeout, Some(millis(200.0)));
    assert_eq!((timer.installed, timer.fired), (Some(Duration::ZERO), millis(200.0)));
    assert_eq!((timer.ended, timer.repeats), (millis(202.0), false));
    assert_eq!((unknown.timeout, unknown.installed), (None, None));
    let kinds: Vec<_> = activity.work().iter().map(|work| work.kind).collect();
    assert_eq!(kinds, [WorkKind::Timer, WorkKind::Script, WorkKind::Timer, WorkKind::Timer]);
}

#[test]
fn requests_have_their_hops_and_the_times_of_the_network() {
    let send = |at, id, url| {
        let data = format!(r#","args":{{"data":{{"requestId":"{id}","url":"{url}"}}}}"#);
        event("ResourceSendRequest", "I", at, &data)
    };
    let told = |name, at, rest: &str| {
        let data = format!(r#","args":{{"data":{{"requestId":"D"{rest}}}}}"#);
        event(name, "I", at, &data)
    };
    let activity = read_all(&[
        told("ResourceWillSendRequest", 100.0, ""),
        send(120.0, "D", "http://a/"),
        send(130.0, "D", "https://a/"),
        told("ResourceReceiveResponse", 140.0, ""),
        told("ResourceReceivedData", 141.0, r#","encodedDataLength":500"#),
        told("ResourceReceivedData", 150.0, r#","encodedDataLength":"x""#),
        told("ResourceFinish", 160.0, r#","finishTime":0.155"#),
        send(170.0, "7.2", "https://a/b.css"),
        event("ResourceFinish", "I", 180.0, r#","args":{"data":{"requestId":"none"}}"#),
    ]);
    let [first, second, third] = activity.requests() else { panic!("three requests") };
    assert_eq!((&*first.url, first.asked), ("http://a/", Duration::ZERO));
    assert_eq!(first.finished, Some(millis(30.0)));
    assert_eq!((&*second.id, second.asked), ("D", millis(30.0)));
    assert_eq!((second.answered, second.finished), (Some(millis(40.0)), Some(millis(55.0))));
    assert_eq!(second.arrivals, [(millis(41.0), Bytes(500)), (millis(50.0), Bytes(0))]);
    assert_eq!((third.finished, third.arrivals.len()), (None, 0));
}

#[test]
fn the_main_thread_is_that_of_the_page() {
    let other =
        |name: &str, rest: &str| event(name, "X", 1.0, rest).replace(r#""pid":7"#, r#""pid":9"#);
    let named = MAIN.replace(r#""pid":7"#, r#""pid":9"#);
    let committed = r#","args":{"frame":"F","data":{"isMainFrame":true,"url":"http://a/"}}"#;
    let events = [
        named,
        other("RunTask", r#","dur":50000"#),
        event("Layout", "X", 2.0, r#","dur":1000"#),
        event("CommitLoad", "X", 1.5, committed),
    ];
    let activity = read_all(&events);
    assert_eq!(activity.work().len(), 1);
    assert_eq!(activity.work()[0].kind, WorkKind::Layout);
    // Without names: whatever does the work of a page.
    let nameless = trace(&[&event("Layout", "X", 2.0, r#","dur":1000"#)]);
    assert_eq!(read(&nameless).unwrap().work().len(), 1);
}

#[test]
fn times_can_be_counted_from_elsewhere() {
    let activity = read_all(&[
        event("RunTask", "X", 1_000.0, r#","dur":10000"#),
        event("RunTask", "X", 1_020.0, r#","dur":10000"#),
    ]);
    let moved = activity.clone().shifted(SignedDuration::from_nanos(5_000_000));
    assert_eq!((moved.clock(), moved.work()[1].start), (millis(995.0), millis(25.0)));
    assert_eq!(moved.counted_from(millis(1_000.0)), activity);
    let cut = activity.counted_from(millis(1_022.0));
    assert_eq!(cut.work().len(), 1);
    assert_eq!(cut.busy(Duration::ZERO, millis(99.0)), millis(8.0));
}

#[test]
fn a_trace_is_aligned_with_a_recording_by_its_requests() {
    let send = |at: f64, url: &str| {
        let data = format!(r#","args":{{"data":{{"requestId":"{url}","url":"{url}"}}}}"#);
        event("ResourceSendRequest", "I", at, &data)
    };
    let activity = read_all(&[
        event("RunTask", "X", 10.0, r#","dur":1000"#),
        send(12.0, "a"),
        send(13.0, "b"),
        send(14.0, "c"),
        send(15.0, "c"),
    ]);
    let recorded = [("a", millis(102.0)), ("b", millis(103.0)), ("c", millis(7.0))];
    let aligned = activity.clone().aligned(recorded).unwrap();
    assert_eq!(aligned.requests()[0].asked, millis(102.0));
    assert_eq!(activity.aligned([("d", Duration::ZERO)]), None);
}

#[test]
fn a_list_alone_and_one_without_its_end_are_read() {
    let list = format!("\u{feff}[{MAIN},{}", event("Layout", "X", 2.0, r#","dur":1000"#));
    for text in [format!("{list}]"), list.clone(), format!("{list},\n")] {
        assert_eq!(read(text.as_bytes()).unwrap().work().len(), 1, "{text}");
    }
}

#[test]
fn values_of_any_type_are_passed_over() {
    let activity = read_all(&[
        event("Layout", "X", 1.0, r#","dur":"1000","args":"__stripped__""#),
        event("Layout", "X", 3.0, r#","dur":1000,"args":{"data":[1,{"url":2}],"beginData":7}"#),
        "null".to_owned(),
        "[1]".to_owned(),
        r#"{"name":7,"ph":null}"#.to_owned(),
        event("Layout", "X", -1e300, r#","dur":1e308"#),
    ]);
    assert_eq!(activity.work().last().unwrap().kind, WorkKind::Layout);
}

#[test]
fn each_fault_has_its_own_line() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "the trace ends in the middle, at line 1, column 0"),
        (
            b"{\"traceEvents\":[{},\n{\"na",
            "the trace ends in the middle in event 2, at line 2, column 4",
        ),
        (b"<html>", "not a trace: expected value at line 1, column 1"),
        (b"[{},7 8]", "not a trace: expected `,` or `]` in event 3 at line 1, column 7"),
        (
            b"{\"traceEvents\":7}",
            "not a trace: invalid type: integer `7`, expected a list of events at line 1, column 16",
        ),
        (b"{\"log\":{}}", "not a trace: no field `traceEvents` in the outer object"),
        (b"\x1f\x8b\x08", "the trace is compressed; unpack it first"),
        (
            b"[{}]",
            "no main thread of a renderer in the trace; record the category devtools.timeline",
        ),
    ];
    for (file, message) in cases {
        assert_eq!(read(file).unwrap_err().to_string(), *message);
    }
}

#[test]
fn the_trace_in_a_recording_is_found_by_load() {
    let page = |id: &str, at: f64| {
        let layout = event("Layout", "X", at, r#","dur":1000"#);
        format!(r#"{{"id":"{id}","_traceOffset":90,"_traceEvents":[{MAIN},{layout}]}}"#)
    };
    let pages = [page("page_1", 100.0), page("page_2", 200.0), r#"{"id":"page_3"}"#.to_owned()];
    let file = format!(r#"{{"log":{{"entries":[],"pages":[{}]}}}}"#, pages.join(","));
    let start = |load: Option<&str>| {
        let activity = read_recording(file.as_bytes(), load).unwrap()?;
        assert_eq!(activity.clock(), millis(90.0));
        Some(activity.work()[0].start.as_millis())
    };
    assert_eq!((start(None), start(Some("page_2"))), (Some(10), Some(110)));
    assert_eq!((start(Some("2")), start(Some("3"))), (Some(110), None));
    assert_eq!(
        read_recording(file.as_bytes(), Some("4")).unwrap_err().to_string(),
        "no load `4` in the file; it has: page_1, page_2, page_3"
    );
    assert_eq!(read_recording(b"{\"log\":{}}", None).unwrap(), None);
}

#[test]
fn deep_nesting_is_refused_not_overflown() {
    let deep = format!("[{{\"args\":{}", "[".repeat(1_000_000));
    assert!(read(deep.as_bytes()).is_err());
}

proptest! {
    #[test]
    fn any_bytes_never_panic(file in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (read(&file), read_recording(&file, None));
    }

    #[test]
    fn any_events_give_work_in_order(
        events in prop::collection::vec(
            (0..12_usize, 0..4_usize, -1e5..1e9_f64, -10.0..1e6_f64, 0..3_u8), 0..40),
        by in any::<i64>(),
    ) {
        const NAMES: [&str; 12] = [
            "RunTask", "ParseHTML", "Layout", "TimerFire", "TimerInstall", "ResourceSendRequest",
            "ResourceReceivedData", "ResourceFinish", "thread_name", "CommitLoad",
            "ResourceWillSendRequest", "FunctionCall",
        ];
        let text: Vec<String> = events
            .iter()
            .map(|&(name, phase, at, length, id)| {
                let data = format!(
                    r#","dur":{length},"args":{{"name":"CrRendererMain","data":{{"requestId":"{id}",
                       "timerId":{id},"url":"u{id}","timeout":{length},"finishTime":{at}}}}}"#
                );
                event(NAMES[name], ["X", "B", "E", "I"][phase], at, &data)
            })
            .collect();
        let text: Vec<&str> = text.iter().map(String::as_str).collect();
        if let Ok(activity) = read(&trace(&text)) {
            let activity = activity.shifted(SignedDuration::from_nanos(by));
            prop_assert!(activity.work().iter().all(|work| work.start < work.end));
            prop_assert!(activity.work().windows(2).all(|pair| pair[0].end <= pair[1].start));
            let all = activity.busy(Duration::ZERO, Duration::MAX);
            let sum = activity.work().iter().fold(Duration::ZERO, |sum, work| {
                sum + work.end.saturating_sub(work.start)
            });
            prop_assert_eq!(all, sum);
        }
    }
}
