"""Policies written in Python decide as those of the program, packet by packet: their logs of 200 loads are compared."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = ["dojo-demo", "pandas-merging", "framework-google", "framework-youtube", "sphinx-manual"]
LOADS = """
pages = ["{page}"]
networks = ["wifi+lte", "dsl+lte"]
runs = 20
policies = {{ stream = ["fifo"], path = ["{builtin}", "{own}"], baselines = false }}
"""
REGISTER = """
import quipu, policies
quipu.register(policies.PyMinRtt)
quipu.register(policies.PyEcf)
"""
# What a policy of the program notes about the paths that it weighed.
CANDIDATES = re.compile(rb',"candidates":\[[^]]*\]')


def logs(folder, policy):
    """The log of each end of each load with `policy`, by load and end, without the title, which names the policy."""
    found = {}
    for file in folder.glob(f"*_with_fifo_+_{policy},_run_*/*.sqlog"):
        events = file.read_bytes().partition(b"\n")[2]
        load = file.parent.name.replace(f"_with_fifo_+_{policy},", "")
        found[load, file.stem.rpartition("_")[2]] = CANDIDATES.sub(b"", events).splitlines()
    return found


@pytest.mark.parametrize(("own", "builtin"), [("py-min-rtt", "minrtt"), ("py-ecf", "ecf")])
def test_every_packet_of_200_loads_leaves_as_with_the_program(own, builtin, tmp_path):
    (tmp_path / "registers.py").write_text(f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n{REGISTER}")
    loads, packets, decisions = 0, 0, 0
    for page in PAGES:
        scenario, folder = tmp_path / "loads.toml", tmp_path / "logs"
        scenario.write_text(LOADS.format(page=page, builtin=builtin, own=own))
        arguments = ["--import", "registers", "run", scenario, "--jobs", "1", "--qlog", folder]
        told = subprocess.run(
            [sys.executable, "-m", "quipu", *arguments], check=False, capture_output=True, text=True, cwd=tmp_path
        )
        assert told.returncode == 0, told.stderr
        theirs, mine = logs(folder, builtin), logs(folder, own)
        assert theirs.keys() == mine.keys()
        for (load, end), events in theirs.items():
            for number, (there, here) in enumerate(zip(events, mine[load, end], strict=True)):
                assert there == here, f"{load}, {end}, event {number}"
            loads += end == "server"
            packets += sum(b'"quic:packet_sent"' in event for event in events)
            decisions += sum(b'"decided_by":"policy"' in event for event in events)
        # Hundreds of megabytes, all told.
        shutil.rmtree(folder)
    assert loads == 200
    assert packets > decisions > 100 * loads
