"""Sweeps on other engines: the same files as without them, whatever happens to workers."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import policies
import pytest

import quipu
from quipu import _engines, _gather, _policy, _scenario, _worker

SWEEP = {
    "pages": ["dojo-demo"],
    "networks": ["wifi+lte"],
    "runs": 10,
    "policies": {"stream": ["fifo"], "path": ["minrtt", "ecf"], "baselines": False},
    "sweep": {"transport.initial_window": [10, 32]},
}
RUNS = 40
HERE = Path(__file__).parent


def files(folder):
    """The files of results, and the names of what is in the store."""
    folder = Path(folder)
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return found, sorted(path.name for path in (folder / "store").iterdir())


def rows(folder):
    with contextlib.closing(sqlite3.connect(folder / "store" / "runs.sqlite")) as database:
        return sorted(database.execute("SELECT * FROM runs"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "results"
    quipu.sweep(SWEEP, out=folder)
    return folder


ENGINES = ["processes", "threads", "executor", "joblib", "joblib-threading", "joblib-multiprocessing", "dask", "ray"]
IN_PROCESSES = ["processes", "executor", "joblib", "dask", "ray"]
# What engines need that Python does not have.
PACKAGES = {"joblib": "joblib", "dask": "distributed", "ray": "ray"}


def needed(name):
    """The package that an engine needs; the test is skipped without it."""
    package = PACKAGES.get(name.partition("-")[0])
    return package and pytest.importorskip(package, reason=f"the package {package} is not installed")


@contextlib.contextmanager
def engine(name):
    """An engine by name, with two workers."""
    package = needed(name)
    if name == "processes":
        yield 2
    elif name == "threads":
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            yield executor
    elif name == "executor":
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
            yield executor
    elif name.startswith("joblib"):
        yield package.Parallel(n_jobs=2, backend=name.partition("-")[2] or None)
    elif name == "dask":
        with package.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            with package.Client(cluster) as client:
                yield client
    elif name == "ray":
        package.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        try:
            yield package
        finally:
            package.shutdown()


@pytest.fixture(scope="module")
def ray():
    with engine("ray") as package:
        yield package


@pytest.fixture
def on(request):
    if request.param == "ray":
        yield request.getfixturevalue("ray")
    else:
        with engine(request.param) as made:
            yield made


@pytest.mark.parametrize("on", ENGINES, indirect=True)
def test_files_are_those_of_a_sweep_without_an_engine(on, whole, tmp_path):
    told = []
    results = quipu.sweep(SWEEP, out=tmp_path / "on", on=on, progress=lambda made, planned: told.append((made, planned)))
    assert str(results) == f"{RUNS} runs made, 0 missing, 0 failed\n"
    assert files(tmp_path / "on") == files(whole)
    assert rows(tmp_path / "on") == rows(whole)
    assert told[-1] == (RUNS, RUNS)
    assert told == sorted(told)
    again = quipu.sweep(SWEEP, out=tmp_path / "on", on=on)
    assert str(again).startswith("0 runs made")


def test_parts_come_one_by_one(whole, tmp_path):
    told = []
    quipu.sweep(SWEEP, out=tmp_path / "on", on=2, shards=5, progress=lambda made, planned: told.append(made))
    assert 2 <= len(told) <= 5
    assert files(tmp_path / "on") == files(whole)


class Deadly(policies.PyMinRtt):
    """Kills its process the first time that it is asked, as a file says that is not there by then."""

    def select(self, parcel, view):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.environ.get("QUIPU_TEST_DEADLY", "none"))
            os.kill(os.getpid(), signal.SIGKILL)
        return super().select(parcel, view)


class AlwaysDeadly(policies.PyMinRtt):
    """Kills its process."""

    def select(self, parcel, view):
        if os.environ.get("QUIPU_TEST_ALWAYS_DEADLY"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().select(parcel, view)


class Broken(policies.PyMinRtt):
    """Raises what no other process can make again."""

    def select(self, parcel, view):
        class Own(Exception):
            pass

        raise Own("as expected")


@pytest.fixture(autouse=True)
def no_classes():
    """Which classes are registered is part of what `program` says in results."""
    _policy.adopt([])


def with_path(*path):
    return {**SWEEP, "runs": 2, "policies": {"stream": ["fifo"], "path": list(path), "baselines": False}}


@pytest.mark.parametrize("name", IN_PROCESSES)
def test_a_worker_that_dies_costs_no_more_than_its_part(name, tmp_path):
    needed(name)
    marker = tmp_path / "deadly"
    classes = [Deadly, policies.PyEcf]
    quipu.sweep(with_path(*classes), out=tmp_path / "whole")
    marker.touch()
    environment = {**os.environ, "QUIPU_TEST_DEADLY": str(marker)}
    command = [sys.executable, HERE / "sweep_on.py", name, tmp_path / "on"]
    told = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=HERE, timeout=300, env=environment
    )
    assert told.returncode == 0, told.stderr
    assert not marker.exists()
    assert files(tmp_path / "on") == files(tmp_path / "whole")


def test_parts_whose_workers_always_die_are_named_and_the_others_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("QUIPU_TEST_ALWAYS_DEADLY", "1")
    with pytest.raises(quipu.RunError, match=r"shard \d/2: given out 3 times.*SIGKILL.*runs are missing"):
        quipu.sweep(with_path("minrtt", AlwaysDeadly), out=tmp_path / "on", on=1, shards=2)
    assert '"state": "incomplete"' in (tmp_path / "on" / "status.json").read_text()
    monkeypatch.delenv("QUIPU_TEST_ALWAYS_DEADLY")
    results = quipu.sweep(with_path("minrtt", AlwaysDeadly), out=tmp_path / "on", on=1)
    assert "0 missing" in str(results)


@pytest.mark.parametrize("on", ENGINES, indirect=True)
def test_a_part_that_fails_says_why(on, tmp_path):
    with pytest.raises(quipu.RunError, match=r"shard \d/8: .*Own: as expected") as raised:
        quipu.sweep(with_path(Broken), out=tmp_path / "on", on=on, shards=8)
    assert "test_engines.py" in str(raised.value.__cause__)


def test_classes_of_scripts_and_of_functions_are_sent_along(tmp_path):
    if _policy._dumps() is pickle.dumps:
        pytest.skip("the package cloudpickle is not installed")

    class Local(policies.PyMinRtt):
        """A class that no other process can import."""

    alone = quipu.sweep(with_path(Local), out=tmp_path / "alone")
    quipu.sweep(with_path(Local), out=tmp_path / "on", on=2)
    assert files(tmp_path / "on") == files(alone.folder)


def test_a_class_that_cannot_be_sent_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(_policy, "_dumps", lambda: pickle.dumps)

    class Local(policies.PyMinRtt):
        """A class that no other process can import."""

    with pytest.raises(TypeError, match="Local.*cannot be sent to other processes.*cloudpickle"):
        quipu.sweep(with_path(Local), out=tmp_path / "on", on=2)


def test_wrong_arguments_are_named(tmp_path, monkeypatch):
    for on in ("spark", 0, True, 1.5, object(), sys):
        with pytest.raises(TypeError, match=r"on=.*expected a number of processes.*ray"):
            quipu.sweep(SWEEP, out=tmp_path / "on", on=on)
    with pytest.raises(quipu.ScenarioError, match="shards=0: expected a whole number"):
        quipu.sweep(SWEEP, out=tmp_path / "on", on=2, shards=0)
    with pytest.raises(quipu.ScenarioError, match="shards=4: expected only with `on`"):
        quipu.sweep(SWEEP, out=tmp_path / "on", shards=4)
    with pytest.raises(quipu.ScenarioError, match="shard='1/4': expected none with `on`"):
        quipu.sweep(SWEEP, out=tmp_path / "on", on=2, shard="1/4")
    with pytest.raises(quipu.ScenarioError, match="dojo-demo"):
        quipu.sweep({**SWEEP, "pages": ["dojo-dem"]}, out=tmp_path / "on", on=2)
    assert not (tmp_path / "on").exists()
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"quipu\[ray\]"):
        quipu.sweep(SWEEP, out=tmp_path / "on", on="ray")


class Elsewhere:
    """Two threads that are on another machine, as far as their tasks can tell."""

    loses_all = False
    workers = 2

    def __init__(self, broken=0):
        self.executor = concurrent.futures.ThreadPoolExecutor(2)
        self.broken = broken
        self.lock = threading.Lock()

    def start(self, task):
        return self.executor.submit(self.make, task)

    def make(self, task):
        caller = _worker.Caller("another", 0, task.caller.work, "other", [], "/")
        report = _worker.make(_worker.Task(**{**vars(task), "caller": caller}))
        with self.lock:
            if self.broken > 0 and report.error is None:
                self.broken -= 1
                raise _engines.Lost("the other machine is off")
        return report

    wait = _engines.Processes.wait

    def cancel(self, started):
        self.executor.shutdown(cancel_futures=True)


@pytest.fixture
def elsewhere(monkeypatch):
    made = Elsewhere()
    monkeypatch.setattr(_gather, "engine", lambda on, jobs: made)
    return made


@pytest.mark.parametrize("broken", [0, 2])
@pytest.mark.parametrize("shared", [False, True])
def test_workers_of_other_machines_send_parts_or_put_them_into_a_shared_folder(
    elsewhere, broken, shared, whole, tmp_path
):
    elsewhere.broken = broken
    store = tmp_path / "shared" if shared else None
    quipu.sweep(SWEEP, out=tmp_path / "on", on=2, store=store)
    assert files(tmp_path / "on") == files(whole)
    assert not shared or sum(1 for _ in store.iterdir()) == broken


def test_parts_in_the_shared_folder_count_when_the_sweep_begins_anew(elsewhere, whole, tmp_path):
    elsewhere.broken = 3
    quipu.sweep(SWEEP, out=tmp_path / "first", on=2, store=tmp_path / "shared")
    parts = list((tmp_path / "shared").iterdir())
    stored = set().union(*map(rows, parts))
    assert len(parts) == 3 and stored
    elsewhere.executor = concurrent.futures.ThreadPoolExecutor(2)
    told = []
    quipu.sweep(SWEEP, out=tmp_path / "on", on=2, store=tmp_path / "shared", progress=lambda *made: told.append(made))
    assert told[-1] == (RUNS - len(stored), RUNS - len(stored))
    assert list((tmp_path / "shared").iterdir()) == []
    assert files(tmp_path / "on") == files(whole)


def test_another_version_of_the_package_is_refused(elsewhere, tmp_path, monkeypatch):
    class Other:
        RunError = quipu.RunError

        @staticmethod
        def fingerprint():
            return "other", "classes"

    monkeypatch.setattr(_worker, "_quipu", Other)
    with pytest.raises(quipu.RunError, match="expected that of the caller.*the same wheel"):
        quipu.sweep(SWEEP, out=tmp_path / "on", on=2)


def test_a_worker_has_the_classes_of_its_caller_alone():
    names = {told["name"] for told in quipu.policies("path")}
    kept = list(_policy._registered.values())
    try:
        quipu.register(policies.PyEcf)
        _policy.adopt([kept_of for kept_of in kept if kept_of[1]["name"] != "py-ecf"])
        assert "py-ecf" not in {told["name"] for told in quipu.policies("path")}
    finally:
        _policy.adopt(kept)
    assert {told["name"] for told in quipu.policies("path")} == names


# How many loads the sweep has in which a worker of Ray is killed; the long one is timed, too, on an idle machine.
LONG = os.environ.get("QUIPU_LONG") == "1"
LOADS = 20_000 if LONG else 2_000


class Killer(threading.Thread):
    """Kills one process that makes runs for a sweep, some time after it has begun: it has the runs' database open."""

    def __init__(self, out, after):
        super().__init__(daemon=True)
        self.out = out / "store"
        self.after = after
        self.killed = None
        self.ended = threading.Event()

    def at_work(self):
        """A process that makes runs now, if there is one."""
        for folder in self.out.glob("parts-*/*-of-*/store"):
            for link in Path("/proc").glob("[0-9]*/fd/*"):
                with contextlib.suppress(OSError, ValueError):
                    pid = int(link.parts[2])
                    if pid != os.getpid() and Path(os.readlink(link)).parent == folder:
                        return pid
        return None

    def run(self):
        while self.killed is None and not self.ended.wait(0.01):
            pid = self.at_work()
            if pid is not None:
                time.sleep(self.after)
                self.killed = self.at_work()
                if self.killed is not None:
                    os.kill(self.killed, signal.SIGKILL)


@pytest.mark.skipif("QUIPU_COMMAND" not in os.environ, reason="QUIPU_COMMAND is the built command")
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nobody tells which process has a file open")
def test_a_sweep_on_ray_one_of_whose_workers_is_killed_is_that_of_the_command(ray, tmp_path):
    sweep = {**SWEEP, "runs": LOADS // 20, "sweep": {"transport.initial_window": list(range(10, 20))}}
    (tmp_path / "sweep.toml").write_text(_scenario.document(sweep), encoding="utf-8")
    began = time.monotonic()
    command = [os.environ["QUIPU_COMMAND"], "sweep", tmp_path / "sweep.toml", "--out", tmp_path / "command"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    expected = time.monotonic() - began

    killer = Killer(tmp_path / "on", after=expected / 4)
    killer.start()
    began = time.monotonic()
    results = quipu.sweep(sweep, out=tmp_path / "on", on=ray)
    took = time.monotonic() - began
    killer.ended.set()
    killer.join()
    print(f"{LOADS} loads: {expected:.1f} s by the command, {took:.1f} s on Ray, {took / expected:.2f} times")
    assert killer.killed is not None
    assert str(results).startswith(f"{LOADS} runs made, 0 missing")
    assert files(tmp_path / "on") == files(tmp_path / "command")
    assert rows(tmp_path / "on") == rows(tmp_path / "command")
    assert not LONG or took <= 1.3 * expected


SCRIPT = """
import quipu, sys, threading, os, signal, time
from pathlib import Path

def interrupt():
    store = Path(sys.argv[2]) / "store"
    while not any(store.glob("parts-*/*-of-*/store/runs.sqlite")):
        time.sleep(0.02)
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)

sys.path.insert(0, sys.argv[3])
import test_engines
sweep = {**test_engines.SWEEP, "runs": 10_000, "sweep": {"transport.initial_window": list(range(10, 20))}}
with test_engines.engine(sys.argv[1]) as on:
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        quipu.sweep(sweep, out=sys.argv[2], on=on, shards=2)
    except KeyboardInterrupt:
        sys.exit(7)
"""


@pytest.mark.parametrize("name", ENGINES)
def test_ctrl_c_ends_all_soon_and_keeps_what_is_finished(name, tmp_path):
    needed(name)
    out = tmp_path / "on"
    ended = subprocess.run([sys.executable, "-c", SCRIPT, name, str(out), str(HERE)], timeout=120, check=False)
    assert ended.returncode == 7
    assert '"state": "incomplete"' in (out / "status.json").read_text()
    assert len(rows(out)) > 0
    assert [path.name for path in (out / "store").iterdir()] == ["runs.sqlite"]


def test_what_was_made_for_a_caller_that_was_killed_counts(tmp_path, whole):
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        process.wait()
    left = tmp_path / "on" / "store" / f"parts-{process.pid}-x" / "1-of-2-x"
    left.mkdir(parents=True)
    quipu.sweep(SWEEP, out=left, shard="1/2")
    made = len(rows(left))
    results = quipu.sweep(SWEEP, out=tmp_path / "on", on=1)
    assert str(results).startswith(f"{RUNS - made} runs made")
    assert files(tmp_path / "on") == files(whole)
