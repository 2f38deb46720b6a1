"""Classes of Python on live connections: over loopback, at both ends, and at several connections at once."""

import concurrent.futures
import subprocess
import sys

import pytest

import quipu

POLICIES = '''
import os
import quipu

class Counts(quipu.PathPolicy):
    """The first path that is open. Says how often it was asked when its connection has nothing to send."""

    def __init__(self, *, start=0):
        self.asked = start

    def select(self, parcel, view):
        self.asked += 1
        return next((path for path in view.paths if path.is_eligible and path.is_open), None)

    def on_drained(self, view):
        with open(os.environ["ASKED_IN"], "a") as file:
            print(self.asked, len(view.paths), file=file)

class Breaks(Counts):
    """Raises after some packets."""

    def select(self, parcel, view):
        if self.asked > 20:
            raise RuntimeError("as expected")
        return super().select(parcel, view)
'''
BODY = bytes(range(256)) * 4000


@pytest.fixture
def site(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "file").write_bytes(BODY)
    return tmp_path / "site"


@pytest.fixture
def live(imported):
    """A module of policies, and the file in which they say that they were asked."""
    return imported("live_policies", POLICIES)


def most(asked):
    """The most often that a policy says it was asked, and the most paths that it saw."""
    lines = [[int(number) for number in line.split()] for line in asked.read_text().splitlines()]
    return max(line[0] for line in lines), max(line[1] for line in lines)


def test_a_class_schedules_what_a_live_server_sends(site, live):
    policies, asked = live
    with quipu.serve(site, path=policies.Counts) as server:
        fetched = quipu.fetch(server.url + "file", pin=server.pin, max_time=30)
    assert fetched.body == BODY
    assert fetched.object["status"] == 200
    assert fetched.paths[0]["udp_bytes_received"] > len(BODY)
    # Datagrams on loopback are no longer than that.
    assert most(asked)[0] > len(BODY) / 65_536


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, loopback has one address")
def test_both_ends_and_two_paths(site, live):
    policies, asked = live
    with quipu.serve(site, path=f"{quipu.register(policies.Counts)}:start=1000000") as server:
        fetched = quipu.fetch(
            server.url + "file", pin=server.pin, path=policies.Counts, via=["127.0.0.1", "127.0.0.2"], max_time=30
        )
    assert fetched.body == BODY
    assert len(fetched.paths) == 2
    lines = asked.read_text().splitlines()
    counts = [int(line.split()[0]) for line in lines]
    assert min(counts) < 1_000_000 < max(counts)


def test_connections_share_the_interpreter(site, live):
    policies, asked = live
    with quipu.serve(site, path=policies.Counts, threads=4) as server, concurrent.futures.ThreadPoolExecutor(6) as pool:
        fetches = [pool.submit(quipu.fetch, server.url + "file", pin=server.pin, max_time=30) for _ in range(12)]
        assert all(fetch.result().body == BODY for fetch in fetches)
    assert asked.is_file()


def test_an_exception_ends_the_server_and_is_printed(site, live, capfd):
    policies, _ = live
    with pytest.raises(quipu.RunError, match="the server ended with code 1"):
        with quipu.serve(site, path=policies.Breaks) as server:
            with pytest.raises(quipu.RunError, match="file"):
                quipu.fetch(server.url + "file", pin=server.pin, max_time=2)
    assert "RuntimeError: as expected" in capfd.readouterr().err


def test_the_command_takes_a_class_of_a_module(site, live, tmp_path):
    _, asked = live
    own = [sys.executable, "-m", "quipu", "--import", "live_policies:Counts"]
    with quipu.serve(site) as server:
        upload = ["--upload", tmp_path / "site" / "file", "--request", "PUT", "--output", tmp_path / "answer"]
        arguments = ["fetch", server.url + "file", "--pin", server.pin, "--path", "counts", *upload]
        told = subprocess.run([*own, *arguments], check=False, capture_output=True, text=True, cwd=tmp_path)
    # Files are not changed, and yet their bytes were sent.
    assert told.returncode == 0, told.stderr
    assert most(asked)[0] > 0


def test_wrong_options_and_addresses(site):
    class Inner(quipu.PathPolicy):
        def select(self, parcel, view):
            return None

    with pytest.raises(quipu.ScenarioError, match="path: .*Inner: expected a class that can be imported"):
        quipu.serve(site, path=Inner)
    with pytest.raises(quipu.ScenarioError, match="before it was ready"):
        quipu.serve(site, path="fastest")
    with pytest.raises(quipu.ScenarioError, match="expected"):
        quipu.fetch("ftp://localhost/", path="minrtt", urgent=True)
    with quipu.serve(site) as server:
        with pytest.raises(quipu.RunError, match="404"):
            quipu.fetch(server.url + "nothing", pin=server.pin, fail=True)
    with pytest.raises(quipu.RunError):
        quipu.fetch(server.url + "file", pin=server.pin, connect_timeout=1)
