"""The command inside the package: that of the program, with policies of Python."""

import os
import signal
import subprocess
import sys
import time

import pytest

OPTIONS = ["--page", "dojo-demo", "--network", "wifi+lte", "--runs", "3"]
POLICIES = '''
import quipu

class FirstOpen(quipu.PathPolicy):
    """The first path that is open."""

    def select(self, parcel, view):
        return next((path for path in view.paths if path.is_eligible and path.is_open), None)

class Broken(quipu.PathPolicy):
    """None that could be used."""

    def select(self, parcel, view):
        raise RuntimeError("as expected")

quipu.register(FirstOpen)
quipu.register(Broken)
'''


def command(*arguments, program=(sys.executable, "-m", "quipu"), **options):
    return subprocess.run([*program, *map(str, arguments)], check=False, capture_output=True, text=True, **options)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def own(tmp_path):
    """A folder with a module of policies, in which commands are run."""
    (tmp_path / "own_policies.py").write_text(POLICIES)
    return tmp_path


@pytest.mark.skipif("QUIPU_COMMAND" not in os.environ, reason="QUIPU_COMMAND is the built command")
def test_it_writes_the_bytes_of_the_program(tmp_path):
    arguments = ["compare", *OPTIONS, "--stream", "fifo,swrr", "--path", "minrtt,ecf"]
    here = command(*arguments, "--out", tmp_path / "here")
    there = command(*arguments, "--out", tmp_path / "there", program=[os.environ["QUIPU_COMMAND"]])
    assert here.returncode == there.returncode == 0, here.stderr + there.stderr
    assert here.stdout == there.stdout
    assert files(tmp_path / "here") == files(tmp_path / "there")


def test_policies_of_an_imported_module_have_names(own):
    told = command("--import", "own_policies", "compare", *OPTIONS, "--path", "minrtt,first-open", cwd=own)
    assert told.returncode == 0, told.stderr
    assert "first-open" in told.stdout
    listed = command("--import", "own_policies", "schedulers", "first-open", cwd=own)
    assert "The first path that is open" in listed.stdout
    unknown = command("compare", *OPTIONS, "--path", "first-open")
    assert unknown.returncode == 2
    assert "first-open" in unknown.stderr


def test_an_exception_of_a_policy_is_shown_with_its_traceback(own):
    told = command("--import", "own_policies", "compare", *OPTIONS, "--path", "broken", cwd=own)
    assert told.returncode == 1
    assert "own_policies.py" in told.stderr
    assert "RuntimeError: as expected" in told.stderr


def test_wrong_arguments_are_wrong_here_too():
    told = command("compare", "--page", "dojo-dem")
    assert told.returncode == 2
    assert "dojo-demo" in told.stderr


def test_ctrl_c_ends_it():
    with subprocess.Popen(
        [sys.executable, "-m", "quipu", "compare", "--page", "wikipedia", "--network", "mobileh2-high", "--runs", "2000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130


def test_policies_of_python_schedule_over_emulated_links(own):
    if command("emulate", "wifi+lte", "--", "true").returncode != 0:
        pytest.skip("links cannot be emulated here")
    arguments = ["compare", "--world", "emulated", "--stack", "quipu", *OPTIONS, "--path", "first-open", "--no-baselines"]
    told = command("--import", "own_policies", *arguments, cwd=own)
    # A busy machine is too late for its links, which the command says.
    assert told.returncode == 0 or "void 3 times" in told.stderr, told.stderr
    if told.returncode == 0:
        assert "first-open" in told.stdout
