//! Loads beside each other, what paths delivered, states of controllers, networks, and lines over swept fields.

use quipu_lab::policies::Registry;
use quipu_report::document::{Document, Table};
use quipu_report::{Options, report};
use quipu_study::replay::Replayer;

use crate::folders::{comparison, read, run_file};
use crate::specs::{check, figure};

fn table<'a>(document: &'a Document, id: &str) -> &'a Table {
    let mut tables = document.sections.iter().flat_map(|section| &section.tables);
    tables.find(|table| table.id == id).unwrap()
}

fn column(table: &Table, key: &str) -> usize {
    table.columns.iter().position(|column| column.key == key).unwrap()
}

fn compared() -> Document {
    let folder = tempfile::tempdir().unwrap();
    comparison(folder.path());
    let document = read(folder.path());
    check(&document);
    document
}

#[test]
fn two_policies_are_compared_object_by_object_in_the_same_run() {
    let document = compared();
    let table = table(&document, "pair-table");
    let [later, first, other] = ["later", "first", "other"].map(|key| column(table, key));
    let number = |row: &[serde_json::Value], at: usize| row[at].as_f64().unwrap();
    assert!(table.rows.iter().any(|row| number(row, later) != 0.0));
    for row in &table.rows {
        let difference = number(row, other) - number(row, first);
        assert!((difference - number(row, later)).abs() < 1e-6, "{row:?}");
    }
    let sizes: Vec<f64> = table.rows.iter().map(|row| number(row, later).abs()).collect();
    assert!(sizes.is_sorted_by(|one, next| one >= next), "{sizes:?}");
    let section = document.sections.iter().find(|section| section.id == "pair").unwrap();
    assert!(section.text[0].contains("the same links and losses"), "{:?}", section.text);
    let largest = &table.rows[0][column(table, "object")];
    let named = format!("the largest differences are {}", largest.as_str().unwrap());
    assert!(section.text[1].contains(&named), "{:?}: {named}", section.text);
    // Both loads of every object are on the axis.
    let rows = document.datasets["pair-waterfall"].objects();
    let lanes: Vec<_> = rows.map(|row| row["lane"].clone()).collect();
    let count = |lane: &str| lanes.iter().filter(|it| *it == lane).count();
    assert!(count("first") > 0 && count("first") == count("other"), "{lanes:?}");
}

#[test]
fn two_runs_of_a_policy_can_be_compared_by_name() {
    let folder = tempfile::tempdir().unwrap();
    comparison(folder.path());
    let name = |run: u32| format!("sitespeed,wifi+lte,rr + minrtt,{run}").parse().unwrap();
    let other = "framework-google,wifi+lte,rr + minrtt,0".parse().unwrap();
    let options = Options { loads: vec![name(0), name(2), other] };
    let document = report(folder.path(), &options, &Replayer(&Registry::builtin())).unwrap();
    check(&document);
    let loads = &document.datasets["waterfall"].levels["policy"];
    assert_eq!(loads, &["rr + minrtt, run 0", "rr + minrtt, run 2"]);
    let compared = &document.datasets["pair-waterfall"].levels["compared"];
    assert_eq!(compared, &["rr + minrtt, run 2"]);
    assert_eq!(
        document.notices,
        [
            "Run 0 of rr + minrtt on framework-google over wifi+lte is not shown: the first load is of \
             sitespeed over wifi+lte."
        ]
    );
}

#[test]
fn ratios_of_objects_are_geometric_means_over_pairs_of_runs() {
    let folder = tempfile::tempdir().unwrap();
    let runs = "page,network,policy,run,visit,client,page_time_ns\n\
        p,n,a,0,0,0,10\np,n,a,1,0,0,10\np,n,b,0,0,0,10\np,n,b,1,0,0,20\n";
    let objects = "page,network,policy,run,visit,client,object,url,since_page_start_ns\n\
        p,n,a,0,0,0,0,https://h/x,100\np,n,a,1,0,0,0,https://h/x,100\n\
        p,n,b,0,0,0,0,https://h/x,200\np,n,b,1,0,0,0,https://h/x,800\n\
        p,n,a,0,0,0,1,https://h/y,100\np,n,b,0,0,0,1,https://h/y,100\n";
    std::fs::write(folder.path().join("runs.csv"), runs).unwrap();
    std::fs::write(folder.path().join("objects.csv"), objects).unwrap();
    let document = read(folder.path());
    check(&document);
    let table = table(&document, "object-ratio-table");
    let ratio = column(table, "ratio");
    let first = table.rows[0][ratio].as_f64().unwrap();
    assert!((first - 4.0).abs() < 1e-9, "{first}");
    assert_eq!(table.rows[0][column(table, "object")], "x");
    assert_eq!(table.rows[1][ratio], 1);
    let boxes = document.datasets["object-ratio-boxes"].objects().next().unwrap();
    assert_eq!((boxes["n"].as_f64(), boxes["most"].as_f64()), (Some(2.0), Some(4.0)));
}

#[test]
fn bytes_by_path_grow_to_what_each_path_delivered() {
    let document = compared();
    assert_eq!(
        figure(&document, "load-throughput").spec["layer"][0]["encoding"]["y"]["stack"],
        "zero"
    );
    let rows: Vec<_> = document.datasets["load-traffic"].objects().collect();
    let of = |path: &str| {
        let rows = rows.iter().filter(|row| row["policy"] == "rr + minrtt" && row["path"] == path);
        rows.map(|row| [&row["ms"], &row["rate"], &row["total"]].map(|it| it.as_f64().unwrap()))
            .collect::<Vec<[f64; 3]>>()
    };
    for path in ["wifi", "lte"] {
        let rows = of(path);
        assert!(rows.is_sorted_by(|one, next| one[0] < next[0] && one[2] <= next[2]), "{rows:?}");
        // A rate over its step is what the total grows by.
        let step = rows[1][0] - rows[0][0];
        let sum: f64 = rows.iter().map(|row| row[1] * step / 8e3).sum();
        let total = rows[rows.len() - 1][2];
        assert!(total > 0.0 && (sum - total).abs() < 1e-9, "{path}: {sum} {total}");
    }
}

#[test]
fn states_of_controllers_lie_behind_window_and_rate() {
    let document = compared();
    for id in ["load-window", "load-rate"] {
        let spec = &figure(&document, id).spec;
        assert_eq!(spec["layer"][0]["encoding"]["fill"]["field"], "state", "{id}");
        assert_eq!(spec["resolve"]["scale"]["y"], "independent", "{id}");
    }
    let rows: Vec<_> = document.datasets["load-states"].objects().collect();
    assert!(rows.iter().any(|row| row["state"] == "slow start"), "{rows:?}");
    for row in &rows {
        assert!(row["from"].as_f64() < row["until"].as_f64(), "{row:?}");
    }
}

#[test]
fn paths_are_drawn_between_server_and_client_with_what_they_can_do() {
    let document = compared();
    let rows: Vec<_> = document.datasets["network-paths"].objects().collect();
    assert_eq!(rows.len(), 2);
    let about = "55 Mb/s down, 55 Mb/s up\nround trip 30.0 ms · no random loss\nqueue 412 kB";
    assert_eq!(rows[0]["about"], about);
}

#[test]
fn raw_streams_have_box_plots() {
    let folder = tempfile::tempdir().unwrap();
    let runs = "page,network,policy,run,visit,client,page_time_ns\np,n,a,0,0,0,9\np,n,a,1,0,0,9\n";
    let streams = "page,network,policy,run,visit,client,stream,since_page_start_ns\n\
        p,n,a,0,0,0,0,1000000\np,n,a,1,0,0,0,3000000\np,n,a,0,0,0,1,5000000\n";
    std::fs::write(folder.path().join("runs.csv"), runs).unwrap();
    std::fs::write(folder.path().join("streams.csv"), streams).unwrap();
    let document = read(folder.path());
    check(&document);
    let rows: Vec<_> = document.datasets["stream-times"].objects().collect();
    let medians: Vec<_> = rows.iter().map(|row| row["median"].as_f64().unwrap()).collect();
    assert_eq!(medians, [2.0, 5.0]);
}

#[test]
fn ratios_over_a_swept_number_have_bands_of_their_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let mut runs = "page,network,policy,run,loss,visit,client,page_time_ns\n".to_owned();
    for loss in ["0", "1", "2"] {
        for (run, time) in [(0, 100), (1, 110), (2, 130)] {
            for (policy, more) in [("a", 0), ("b", 10 * (run + 1))] {
                runs += &format!("p,n,{policy},{run},{loss},0,0,{}\n", time + more);
            }
        }
    }
    std::fs::write(folder.path().join("runs.csv"), runs).unwrap();
    std::fs::write(folder.path().join("sweep.toml"), "").unwrap();
    let document = read(folder.path());
    check(&document);
    let layers = figure(&document, "swept-loss").spec["layer"].as_array().unwrap();
    let area = layers.iter().find(|layer| layer["mark"]["type"] == "area").unwrap();
    let encoding = &area["encoding"];
    assert_eq!([&encoding["y"]["field"], &encoding["y2"]["field"]], ["low", "high"]);
    let rows: Vec<_> = document.datasets["swept-loss"].objects().collect();
    assert_eq!(
        rows.iter().map(|row| row["value"].as_f64().unwrap()).collect::<Vec<_>>(),
        [0.0, 1.0, 2.0]
    );
    assert!(rows.iter().all(|row| row["low"].as_f64() < row["high"].as_f64()));
}

#[test]
fn flows_have_box_plots() {
    let folder = tempfile::tempdir().unwrap();
    let text = "\
        pages = []\nnetworks = [\"wifi+lte\"]\nruns = 2\nduration = \"2s\"\n\
        [policies]\nstream = [\"rr\"]\npath = [\"minrtt\"]\nbaselines = false\n\
        [[flows]]\nname = \"one\"\n[[flows]]\nname = \"other\"\nstart = \"100ms\"\n";
    run_file(text, folder.path());
    let document = read(folder.path());
    check(&document);
    for row in document.datasets["flow-goodput"].objects() {
        let numbers = ["low", "q1", "median", "q3", "high"].map(|it| row[it].as_f64().unwrap());
        assert!(numbers.is_sorted(), "{numbers:?}");
    }
}
