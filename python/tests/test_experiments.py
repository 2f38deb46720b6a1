"""Experiments: the same as the command's, and clear errors."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import quipu

ARGUMENTS = {"page": "dojo-demo", "network": "wifi+lte", "stream": ["fifo", "swrr"], "runs": 3}


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "quipu", *map(str, arguments)], check=False, capture_output=True, text=True
    )


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}


def test_a_comparison_has_the_bytes_of_the_commands(tmp_path):
    quipu.compare(**ARGUMENTS, out=tmp_path / "here")
    options = ["--page", "dojo-demo", "--network", "wifi+lte", "--stream", "fifo,swrr", "--runs", "3"]
    told = command("compare", *options, "--out", tmp_path / "there")
    assert told.returncode == 0, told.stderr
    assert files(tmp_path / "here") == files(tmp_path / "there")


def test_keyword_arguments_a_dictionary_and_toml_are_the_same_scenario(tmp_path):
    tables = {"pages": ["dojo-demo"], "networks": ["wifi+lte"], "runs": 3, "policies": {"stream": ["fifo", "swrr"]}}
    toml = 'pages = ["dojo-demo"]\nnetworks = ["wifi+lte"]\nruns = 3\n[policies]\nstream = ["fifo", "swrr"]\n'
    (tmp_path / "study.toml").write_text(toml)
    results = [
        quipu.compare(**ARGUMENTS),
        quipu.compare(tables),
        quipu.compare(toml),
        quipu.run(tmp_path / "study.toml"),
    ]
    assert len({result.scenario for result in results}) == 1


def test_a_network_is_made_of_paths():
    network = quipu.Network(
        [quipu.Path("wifi", rate="30mbit", delay="10ms"), quipu.Path("lte", rate="20mbit", delay="30ms", loss=0.01)],
        name="mine",
    )
    results = quipu.compare(page="dojo-demo", network=network, stream="fifo", runs=1)
    assert 'name = "mine"' in results.scenario
    assert results.summary["rows"][0]["network"] == "mine"


def test_a_wrong_field_is_named_with_its_value_and_the_nearest_name():
    with pytest.raises(quipu.ScenarioError, match="did you mean `swrr`"):
        quipu.compare(page="dojo-demo", stream="swr")
    with pytest.raises(quipu.ScenarioError, match="runs"):
        quipu.compare(page="dojo-demo", runs=0)
    with pytest.raises(quipu.ScenarioError, match="rums"):
        quipu.compare(page="dojo-demo", rums=3)
    with pytest.raises(TypeError, match="no value of a scenario"):
        quipu.compare(page="dojo-demo", runs=object())


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(quipu.ScenarioError, match="not empty"):
        quipu.compare(**ARGUMENTS, out=tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_load_is_one_run(tmp_path):
    results = quipu.load(page="dojo-demo", network="wifi+lte")
    assert len(results.runs) == 1
    assert len(results.objects) > 1
    assert results.scenario.count("runs = 1")


def test_tables_are_read_by_polars_pandas_and_duckdb():
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    results = quipu.compare(**ARGUMENTS)
    runs = polars.DataFrame(results.runs)
    assert runs.height == len(results.runs) == 3 * len(results.summary["rows"])
    assert runs.schema["page_time_ns"] == polars.Int64
    loads = results.runs
    median = duckdb.sql("select median(page_time_ns) from loads where policy like 'fifo%'").limit(1).fetchall()[0][0]
    expected = runs.filter(polars.col("policy").str.starts_with("fifo"))["page_time_ns"].median()
    assert median == expected
    assert loads.columns == runs.columns


def test_figures_are_specifications_with_data():
    figures = quipu.compare(**ARGUMENTS).figures()
    assert figures
    for figure in figures.values():
        assert "vega-lite" in figure.spec["$schema"]
        assert figure.caption


def test_progress_is_told_and_may_end_the_runs():
    told = []
    quipu.compare(**ARGUMENTS, progress=lambda made, planned: told.append((made, planned)))
    planned = told[-1][1]
    assert sorted(made for made, _ in told) == list(range(1, planned + 1))

    def refuse(made, planned):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        quipu.compare(**ARGUMENTS, progress=refuse)


def test_ctrl_c_ends_a_comparison_soon(tmp_path):
    script = (
        "import quipu, sys\n"
        "print('begun', flush=True)\n"
        "try:\n"
        "    quipu.compare(page='wikipedia', network='mobileh2-high', runs=2000)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(7)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 7


def test_a_sweep_goes_on_and_its_shards_are_joined(tmp_path):
    sweep = {
        "pages": ["dojo-demo"],
        "networks": ["wifi+lte"],
        "runs": 2,
        "policies": {"stream": ["fifo"], "path": ["minrtt", "ecf"]},
        "sweep": {"transport.initial_window": [10, 32]},
    }
    whole = quipu.sweep(sweep, out=tmp_path / "whole")
    for shard in ("1/2", "2/2"):
        quipu.sweep(sweep, out=tmp_path / shard.replace("/", "of"), shard=shard)
    parts = [tmp_path / "1of2", tmp_path / "2of2"]
    joined = quipu.sweep(sweep, out=tmp_path / "joined", merge=parts)
    assert files(whole.folder)["runs.csv"] == files(joined.folder)["runs.csv"]
    assert str(joined).startswith("0 runs made")


def test_an_exception_of_a_policy_ends_a_sweep_and_its_run_is_not_kept(tmp_path):
    class Limited(quipu.PathPolicy):
        """Fails in the second run."""

        made = 0

        def __init__(self):
            type(self).made += 1
            self.number = type(self).made

        def select(self, parcel, view):
            if self.number > type(self).most:
                raise LookupError("as expected")
            return next((path for path in view.paths if path.is_eligible and path.is_open), None)

    sweep = {"pages": ["dojo-demo"], "networks": ["wifi+lte"], "runs": 4, "sweep": {"transport.initial_window": [10]}}
    options = {"stream": "fifo", "path": [Limited], "baselines": False}
    Limited.most = 10_000
    quipu.sweep(sweep, out=tmp_path / "whole", **options)
    assert Limited.made > 4
    Limited.most = Limited.made + 3
    with pytest.raises(LookupError, match="as expected"):
        quipu.sweep(sweep, out=tmp_path / "part", **options)
    Limited.most = 10_000_000
    again = quipu.sweep(sweep, out=tmp_path / "part", **options)
    assert "0 missing" in str(again)
    assert not str(again).startswith("0 runs made")
    assert files(tmp_path / "part") == files(tmp_path / "whole")
