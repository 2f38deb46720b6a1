"""Runs over emulated links: what the command does with `--world emulated`, with classes of modules as policies."""

import json
import subprocess
import sys
import warnings

import pytest

import quipu

POLICIES = '''
import os
import quipu

class Marks(quipu.PathPolicy):
    """The first path that is open. Says once in each process that it was asked."""

    is_marked = False

    def select(self, parcel, view):
        if not Marks.is_marked:
            Marks.is_marked = True
            with open(os.environ["ASKED_IN"], "a") as file:
                print("asked", file=file)
        return next((path for path in view.paths if path.is_eligible and path.is_open), None)
'''
# A network that a busy machine keeps to, if any can.
LINKS = quipu.Network(
    [quipu.Path("a", rate="20mbit", delay="40ms"), quipu.Path("b", rate="10mbit", delay="60ms")], name="two"
)
STUDY = """
runs = 2
pages = ["dojo-demo"]
http = "h3"
policies = { stream = ["fifo", "rr"], path = ["minrtt"], baselines = false }

[[networks]]
name = "two"
paths = [
    { name = "a", down = { rate = "20mbit", delay = "40ms" } },
    { name = "b", down = { rate = "10mbit", delay = "60ms" } },
]

[experiment]
id = "orders"
paper = "quipu"
figure = ""
title = "Two orders"

[[experiment.rules]]
name = "order"
claim = "the page is as fast in either"
metric = "page"
of = "fifo + minrtt"
to = "rr + minrtt"
within = 0.9
"""


@pytest.fixture
def emulated():
    """Skips where links cannot be emulated."""
    told = subprocess.run([sys.executable, "-m", "quipu", "emulate", "wifi+lte", "--", "true"], capture_output=True)
    if told.returncode != 0:
        pytest.skip("links cannot be emulated here")


@pytest.fixture
def marks(imported):
    """A class of a module, and the file in which it says that it was asked."""
    module, asked = imported("marking", POLICIES)
    return module.Marks, asked


def has_counted(results):
    """Whether loads counted: on a busy machine they are void, which the results say."""
    failures = results.summary.get("failures") or []
    assert all("void 3 times" in failure["reason"] for failure in failures), failures
    return not failures


def test_classes_of_modules_schedule_over_emulated_links(emulated, marks, tmp_path):
    policy, asked = marks
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = quipu.compare(
            page="dojo-demo",
            network=LINKS,
            stream="fifo",
            path=["minrtt", policy],
            baselines=False,
            runs=1,
            world="emulated",
            out=tmp_path / "out",
            progress=lambda made, planned: told.append((made, planned)),
        )
    assert told == [(1, 2), (2, 2)]
    assert results.summary["world"] == "emulated"
    assert len((tmp_path / "out" / "emulation.jsonl").read_text().splitlines()) >= 2
    # Client and server have the policies.
    assert len(asked.read_text().splitlines()) >= 2
    if has_counted(results):
        assert len(results.runs) == 2
        assert "emulated" in str(results)


def test_one_load_over_emulated_links(emulated, tmp_path):
    try:
        results = quipu.load(page="dojo-demo", network=LINKS, stream="fifo", world="emulated", out=tmp_path / "out")
    except quipu.RunError as error:
        assert "void 3 times" in str(error)
        return
    assert len(results.runs) == 1
    assert "emulated" in results.scenario or results.summary["world"] == "emulated"
    assert (tmp_path / "out" / "emulation.jsonl").is_file()


def test_experiments_are_judged_in_both_worlds(emulated, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    verdicts = quipu.reproduce(str(study), world="emulated", out=tmp_path / "out")
    there, here = verdicts.simulated[0], verdicts.judged[0]
    assert (there["id"], there["world"]) == ("orders", "simulated")
    assert (here["id"], here["world"]) == ("orders", "emulated")
    kept = json.loads((tmp_path / "out" / "simulated" / "orders" / "verdicts.json").read_text())
    assert kept["world"] == "simulated"
    assert (tmp_path / "out" / "emulation.jsonl").is_file()
    assert quipu.reproduce(str(study), out=tmp_path / "alone").simulated is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"world": "mars"}, "world: 'mars': expected 'simulated' or 'emulated'"),
        ({"world": "emulated", "jobs": 2}, "jobs: 2: expected none"),
        ({"world": "emulated", "http": "h2-tcp"}, "http: expected h2 or h3 with --world emulated"),
        ({"world": "emulated", "clients": 2}, "clients: expected one"),
        ({"stack": "tcp-h2"}, "stack tcp-h2.*other stacks run over emulated links alone"),
    ],
)
def test_what_a_world_does_not_have_is_refused(fields, expected):
    with pytest.raises(quipu.ScenarioError, match=expected):
        quipu.compare(page="dojo-demo", network=LINKS, stream="fifo", runs=1, **fields)


def test_a_class_that_no_other_process_can_import_is_refused():
    class Inner(quipu.PathPolicy):
        def select(self, parcel, view):
            return None

    with pytest.raises(quipu.ScenarioError, match="policies.path: inner: expected a class that can be imported"):
        quipu.compare(page="dojo-demo", network=LINKS, path=Inner, runs=1, world="emulated")
