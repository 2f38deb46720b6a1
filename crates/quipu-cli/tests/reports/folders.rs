//! Result folders for tests: made by the lab, or written by hand.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use quipu_lab::batch::{run_all, run_session};
use quipu_lab::plan::Plan;
use quipu_lab::policies::Registry;
use quipu_record::Output;
use quipu_report::document::Document;
use quipu_report::{Options, ReportError, report};
use quipu_scenario::Scenario;
use quipu_study::replay::Replayer;

/// Runs a scenario with these fields and writes its result into `folder`.
pub(crate) fn run(fields: &[(&str, &str)], folder: &Path) {
    let mut scenario = Scenario::default();
    for (field, value) in fields {
        scenario = scenario.with_field(field, value).unwrap();
    }
    scenario.policies.baselines = false;
    write(&Plan::new(scenario).unwrap(), folder);
}

/// Runs a scenario file and writes its result into `folder`.
pub(crate) fn run_file(text: &str, folder: &Path) {
    write(&Plan::new(Scenario::from_toml(text, "test.toml").unwrap()).unwrap(), folder);
}

fn write(plan: &Plan, folder: &Path) {
    let output = Output::prepare(folder, true).unwrap();
    let batch = run_all(plan, Some(2), &AtomicBool::new(false), &|_| {}, &run_session).unwrap();
    assert!(batch.summary.failures.is_empty(), "{:?}", batch.summary.failures);
    quipu_lab::results::write(output, plan, &batch.finished, &batch.summary).unwrap();
}

/// A small comparison: a page of nine objects, two policies, three runs.
pub(crate) fn comparison(folder: &Path) {
    run(&SMALL, folder);
}

/// The fields of [`comparison`].
pub(crate) const SMALL: [(&str, &str); 4] = [
    ("pages", "sitespeed"),
    ("runs", "3"),
    ("policies.stream", "rr,fifo"),
    ("policies.path", "minrtt"),
];

/// The report of `folder`.
pub(crate) fn read(folder: &Path) -> Document {
    try_read(folder).unwrap()
}

/// The report of `folder`, or why there is none.
pub(crate) fn try_read(folder: &Path) -> Result<Document, ReportError> {
    report(folder, &Options::default(), &Replayer(&Registry::builtin()))
}

/// The sizes of a sweep that is written by hand.
pub(crate) struct Sweep {
    pub(crate) pages: usize,
    pub(crate) browsers: usize,
    pub(crate) networks: usize,
    pub(crate) policies: usize,
    pub(crate) runs: usize,
    pub(crate) objects: usize,
}

/// Writes the tables of a sweep whose times follow a formula: later policies are slower.
pub(crate) fn sweep_folder(folder: &Path, sweep: &Sweep) {
    let (mut runs, mut objects, mut paths) = (String::new(), String::new(), String::new());
    runs.push_str("page,network,policy,run,browser,visit,client,page_time_ns,critical_time_ns,");
    runs.push_str(
        "object_index_ns,byte_index_ns,connect_time_ns,page_bound_ns,critical_bound_ns\n",
    );
    objects.push_str("page,network,policy,run,browser,visit,client,object,since_page_start_ns\n");
    paths.push_str("page,network,policy,run,browser,visit,client,end,name,bytes_sent\n");
    let mut count = 0;
    for page in 0..sweep.pages {
        for browser in 0..sweep.browsers {
            for network in 0..sweep.networks {
                for policy in 0..sweep.policies {
                    for run in 0..sweep.runs {
                        count += 1;
                        // Some chance, the same for all policies of a run.
                        let noise = (run * 7_919 + page * 104_729 + network * 1_299_709) % 997;
                        let time = 100_000_000 * (page + 1) + 3_000_000 * policy + 50_000 * noise;
                        let place = format!(
                            "page{page},net{network},policy{policy} + minrtt,{run},b{browser}"
                        );
                        let (critical, index, bound) = (time / 3, time / 2, time * 9 / 10);
                        writeln!(
                            runs,
                            "{place},0,0,{time},{critical},{index},{index},30000000,{bound},{critical}"
                        )
                        .unwrap();
                        for object in 0..sweep.objects {
                            let at = time / sweep.objects * (object + 1) + noise * 1_000 * object;
                            writeln!(objects, "{place},0,0,{object},{at}").unwrap();
                        }
                        for path in ["wifi", "lte"] {
                            writeln!(paths, "{place},0,0,server,{path},{}", 500_000 + noise)
                                .unwrap();
                        }
                    }
                }
            }
        }
    }
    let mut networks = String::from(
        "network,path,name,down_rate_bit_per_s,up_rate_bit_per_s,round_trip_ns,down_loss_ppm,\
         up_loss_ppm,down_queue_bytes,up_queue_bytes\n",
    );
    for network in 0..sweep.networks {
        let rate = 10_000_000 * (network % 4 + 1);
        let trip = 20_000_000 * (network / 4 + 1);
        writeln!(networks, "net{network},0,wifi,{rate},10000000,{trip},0,0,150000,150000").unwrap();
        writeln!(networks, "net{network},1,lte,10000000,10000000,20000000,,,,").unwrap();
    }
    let status = format!(
        "{{\"planned\":{count},\"done\":{count},\"failed\":0,\"version\":\"0.1.0\",\"commit\":\"c\"}}"
    );
    let files = [
        ("runs.csv", runs),
        ("objects.csv", objects),
        ("paths.csv", paths),
        ("networks.csv", networks),
        ("status.json", status),
        ("sweep.toml", "[sweep]\n".to_owned()),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
}
