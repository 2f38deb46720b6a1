#!/usr/bin/env python3
"""Runs Quipu against published QUIC implementations on loopback, both ways round, and writes the tables of the docs.

Each run has a server, a client, and between them the relay, which spoils what the case is about and tells which packets
it saw. A run passes if the files arrive byte for byte and what the case demands is proved by the relay or by our end.
Cases whose names begin with h3- are of HTTP/3, the others of QUIC with hq-interop.

    interop/live/run.py                         everything that can be built here
    interop/live/run.py --peers quinn,noq       two peers; --cases retry,v2: two cases
    interop/live/run.py --write docs/interop.md the same, and the results into the tables of that page, whose other cells
                                                stay as they are
    interop/live/run.py --core --check docs/interop.md
                                                what CI runs: a cell that differs from the page is an error

Needs cargo; for aioquic Python with venv, for quic-go Go, for quiche CMake and libclang, and Chromium. A peer that cannot
be built or is not there is an error only if it is named.
"""

import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import peers, running, suite, table  # noqa: E402

# Seeds for a case of which it is known that it fails, and why.
MORE = 6


def main():
    parser = argparse.ArgumentParser(description="Runs the interop tests on loopback.")
    parser.add_argument("--peers", help="names, separated by commas; default: all that can be built")
    parser.add_argument("--cases", help="names, separated by commas; default: all")
    parser.add_argument("--roles", default="server,client", help="the peer's, separated by commas")
    parser.add_argument("--core", action="store_true", help="the peers and cases that CI runs")
    parser.add_argument("--seed", type=int, default=1, help="of the relay's chance")
    parser.add_argument("--write", type=pathlib.Path, help="the page whose table gets the results")
    parser.add_argument("--check", type=pathlib.Path, help="the page whose table has to have them")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for what each end printed")
    options = parser.parse_args()

    wanted = options.peers.split(",") if options.peers else peers.CORE if options.core else None
    built = peers.build(wanted)
    names = options.cases.split(",") if options.cases else list(suite.CASES)
    for name in names:
        if name not in suite.CASES:
            sys.exit(f"there is no case {name}; there are: {', '.join(suite.CASES)}")
    if options.core and not options.cases:
        names = [name for name in names if suite.CASES[name].core]

    results = {}
    began = time.monotonic()
    for peer in built:
        for role in (role for role in options.roles.split(",") if role in peer.roles):
            for name in (name for name in names if peer.has(suite.CASES[name])):
                begin = time.monotonic()
                result = run(peer, role, suite.CASES[name], options)
                results[peer.name, role, name] = result
                print(f"{peer.name:9} {role:6} {name:20} {time.monotonic() - begin:5.1f} s  {result}", flush=True)
    failed = [key for key, result in results.items() if result.startswith("fail")]
    print(f"{len(results)} runs, {len(failed)} failed, {time.monotonic() - began:.0f} s")
    if options.write:
        table.write(options.write, built, results)
    if options.check:
        sys.exit(table.check(options.check, results))


def run(peer, role, case, options):
    """The text of a cell: pass, fail: why, or not offered: why."""
    reason = peer.not_offered(role, case.name)
    if reason:
        return f"not offered: {reason}"
    result = running.run(peer, role, case, options.seed, options.keep)
    if result.startswith("fail") and options.check:
        # A busy machine may make a run late; it has to pass once.
        result = running.run(peer, role, case, options.seed + 1, options.keep)
    known = peer.failures.get((role, case.name))
    if known:
        # Chance decides whether it comes to that: a few more seeds.
        for seed in range(options.seed + 1, options.seed + MORE):
            if result == "pass":
                result = running.run(peer, role, case, seed, options.keep)
        if result.startswith("fail"):
            print(f"{peer.name} {role} {case.name}: {result}")
            return f"fail: {known}"
    return result


if __name__ == "__main__":
    main()
