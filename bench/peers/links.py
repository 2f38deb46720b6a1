#!/usr/bin/env python3
"""Goodput over two equal shaped links, beside that over one: what a second link brings on real sockets.

    cargo build --release --features quipu
    python3 links.py --rounds 5 --rate 100mbit --delay 10ms

Client and server have a network namespace each, which an ordinary user may make, joined by two pairs of
virtual interfaces. Each end of each is limited by `tbf`, with a queue of one bandwidth-delay product or more.
A round downloads by the first link, by the second, and by both. Delays need the kernel's `netem`: without it
only the queues delay, and the first line says so.
"""
import argparse, json, os, statistics, subprocess, sys


def sh(command, check=True):
    done = subprocess.run(command.split(), capture_output=True, text=True)
    if check and done.returncode != 0:
        sys.exit(f"{command}: {done.stderr.strip()}")
    return done.returncode == 0


def shape(enter, end, rate, delay, latency):
    """The rate of one end, behind a delay if the kernel has one."""
    limit = f"tbf rate {rate} burst 16kb latency {latency}"
    delayed = delay != "0" and sh(f"{enter}tc qdisc add dev {end} root handle 1: netem delay {delay} limit 10000",
                                  check=False)
    parent = "parent 1: handle 2:" if delayed else "root"
    sh(f"{enter}tc qdisc add dev {end} {parent} {limit}")
    return delayed


def inside(a):
    here = os.path.dirname(os.path.abspath(__file__))
    base = os.environ.get("CARGO_TARGET_DIR", os.path.join(here, "target"))
    exe = os.path.join(base, "release", "quipu-tokio")
    policies = f"congestion=cubic {a.policies}".strip()
    more = ["--policies", policies, "--paths", "2"]
    server = subprocess.Popen(["unshare", "-n", exe, "serve", *more, "--limit-s", "3600"],
                              stdout=subprocess.PIPE, text=True)
    try:
        port, pin = server.stdout.readline().split()
        enter = f"nsenter -t {server.pid} -n "
        sh("ip link set lo up")
        sh(enter + "ip link set lo up")
        delayed = True
        for n in (0, 1):
            sh(f"ip link add v{n} type veth peer name w{n} netns {server.pid}")
            for (to, end, last) in (("", f"v{n}", 1), (enter, f"w{n}", 2)):
                sh(f"{to}ip address add 10.0.{n + 1}.{last}/24 dev {end}")
                sh(f"{to}ip link set {end} up")
                delayed &= shape(to, end, a.rate, a.delay, a.latency)
        # The server has one address: the second link leads there, too.
        sh("ip route add 10.0.1.2/32 via 10.0.2.2 dev v1 metric 100")
        print(f"rate {a.rate}, delay {a.delay if delayed else 'none: no netem here'}, queue {a.latency}, "
              f"{policies}", file=sys.stderr)
        rows = {}
        for r in range(a.rounds):
            for via in ("v0", "v1", "v0,v1"):
                p = subprocess.run([exe, "fetch", *more, "--server", f"10.0.1.2:{port}", "--pin", pin,
                                    "--via", via, "--mib", str(a.mib)], capture_output=True, text=True)
                if p.returncode != 0:
                    sys.exit(f"{via}: {p.stderr[-300:]}")
                row = json.loads(p.stdout)
                print(p.stdout.strip(), file=sys.stderr)
                rows.setdefault(via, []).append(row["goodput_mbit_s"])
    finally:
        server.kill()
        server.wait()
    median = {via: statistics.median(v) for via, v in rows.items()}
    one = (median["v0"] + median["v1"]) / 2
    for via, v in rows.items():
        print(f"{via}: {median[via]:.2f} [{min(v):.2f} .. {max(v):.2f}] Mbit/s")
    print(f"both are {median['v0,v1'] / one:.3f} times one")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--rate", default="100mbit")
    p.add_argument("--delay", default="10ms", help="each way; 0: none")
    p.add_argument("--latency", default="50ms", help="the longest that a datagram waits in a queue")
    p.add_argument("--mib", type=int, default=64)
    p.add_argument("--policies", default="", help="such as path=ecf")
    p.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.inside:
        inside(a)
    else:
        os.execvp("unshare", ["unshare", "-Urn", sys.executable, *sys.argv, "--inside"])
