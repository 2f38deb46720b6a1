#!/usr/bin/env python3
"""Runs every bench in alternation and prints tables (median [min .. max]).

    cargo build --release -j2 --features quipu,limit,quinn,noq,quiche,tquic,s2n   (or fewer)
    python3 run.py --rounds 7 --out results.jsonl > tables.md
    python3 run.py --tables results.jsonl > tables.md                      (no run)

Binaries are looked for in $CARGO_TARGET_DIR/release, else target/release; missing ones are skipped.
To put another library beside these: add its binary to LIBS, printing the same JSON lines.
"""
import argparse, json, os, statistics, subprocess, sys

LIBS = ["quipu", "quinn", "noq", "quiche", "tquic", "s2n-quic"]
# ours on sockets, whose state machine is that of "quipu"
LIVE = ["quipu-tokio" if l == "quipu" else l for l in LIBS]
RUNS = [("limit", ["crypto"]), ("limit", ["udp"]),
        ("limit", ["udp", "--segments", "10"]),
        ("limit", ["udp", "--segments", "1", "--mib", "128"]),
        ("limit", ["udp1"]), ("limit", ["udp1", "--segments", "10"]),
        ("limit", ["udp1", "--segments", "1", "--mib", "256"])]
RUNS += [(l, ["bulk"]) for l in LIVE]
RUNS += [(l, ["bulk", "--provider", "aws-lc-rs"]) for l in ("quipu-tokio", "quinn", "noq")]
# quinn's and noq's default stream window, and two paths: by the default policy, and in turns
RUNS += [("quipu-tokio", ["bulk", "--window", "1250000"]),
         ("quipu-tokio", ["bulk", "--paths", "2", "--policies", "congestion=cubic path=minrtt"]),
         ("quipu-tokio", ["bulk", "--paths", "2", "--policies", "congestion=cubic path=path-rr"])]
RUNS += [(l, ["sansio"]) for l in LIBS if l != "s2n-quic"]
RUNS += [(l, ["sansio", "--provider", "aws-lc-rs"]) for l in ("quipu", "quinn", "noq")]
# quinn's and noq's default stream window, for those whose default is larger
RUNS += [(l, ["sansio", "--window", "1250000"]) for l in ("quipu", "quiche", "tquic")]
RUNS += [(l, ["handshake"]) for l in LIBS]
RUNS += [(l, ["handshake", "--provider", "aws-lc-rs"]) for l in ("quipu", "quinn", "noq")]
RUNS += [("quipu-tokio", ["handshake"])] + [(l, ["handshake-live"]) for l in ("quinn", "noq")]
RUNS += [(l, ["streams"]) for l in LIVE]
RUNS += [(l, ["idle", "--n", n]) for n in ("1000", "10000") for l in LIVE if l != "tquic"]
RUNS += [(l, ["streams-mem"]) for l in ("quipu", "quinn", "noq", "quiche")]
RUNS += [("noq", ["multipath", "--dir", d, "--second", s])
         for d in ("down", "up") for s in ("available", "backup")]


def run(rounds, out, only):
    here = os.path.dirname(os.path.abspath(__file__))
    base = os.environ.get("CARGO_TARGET_DIR", os.path.join(here, "target"))
    rows = []
    with open(out, "w") as f:
        for r in range(rounds):
            # every library once per round, the order turned around in every second round
            for lib, args in (RUNS if r % 2 == 0 else RUNS[::-1]):
                if only and args[0] not in only:
                    continue
                exe = os.path.join(base, "release", lib)
                if not os.path.exists(exe):
                    continue
                p = subprocess.run([exe, *args], capture_output=True, text=True)
                if p.returncode != 0:
                    print(f"FAILED {lib} {args}: {p.stderr[-300:]}", file=sys.stderr)
                    rows.append({"bench": args[0], "lib": lib, "failed": True})
                for line in p.stdout.splitlines():
                    row = json.loads(line)
                    row["round"] = r
                    rows.append(row)
                    f.write(line[:-1] + f',"round":{r}}}\n')
                    f.flush()
            print(f"round {r + 1} of {rounds}, load {os.getloadavg()[0]:.2f}", file=sys.stderr)
    return rows


def med(rows, key, fmt="{:.2f}"):
    v = [r[key] for r in rows if r.get(key) is not None]
    if not v:
        return "-"
    f = lambda x: fmt.format(x)
    return f"{f(statistics.median(v))} [{f(min(v))} .. {f(max(v))}]"


def one(rows, key, fmt="{:.0f}"):
    v = [r[key] for r in rows if r.get(key) is not None]
    return fmt.format(statistics.median(v)) if v else "-"


def tables(rows):
    def groups(bench):
        g = {}
        for r in rows:
            if r["bench"] == bench and not r.get("failed"):
                g.setdefault((r["lib"], r["version"]), []).append(r)
        return g

    def head(title, *cols):
        print(f"\n### {title}\n\n| " + " | ".join(cols) + " |")
        print("|" + "---|" * len(cols))

    def line(*cols):
        print("| " + " | ".join(str(c) for c in cols) + " |")

    for bench, title in (("limit-aead", "limit: AES-128-GCM alone (1350-byte payloads, one thread)"),
                         ("limit-udp", "limit: loopback UDP alone (1452-byte datagrams)")):
        head(title, "what", "version", "runs", "Gbit/s", "CPU ns/byte")
        for (lib, ver), g in groups(bench).items():
            line(lib, ver, len(g), med(g, "gbit_s"), med(g, "cpu_ns_per_byte", "{:.3f}"))

    for bench, title in (("bulk", "bulk: 512 MiB on one stream, loopback, two threads"),
                         ("sansio", "sansio: 256 MiB on one stream, in memory, one thread")):
        head(title, "library", "version", "runs", "Gbit/s", "CPU ns/byte",
             "CPU ns per data datagram", "mean datagram", "back datagrams per 100", "lost %",
             "peak RSS MiB")
        for (lib, ver), g in sorted(groups(bench).items()):
            for r in g:
                if "dgrams_data" in r:
                    r["back"] = 100 * r["dgrams_ack"] / r["dgrams_data"]
                    r["lostp"] = 100 * r["lost"] / r["dgrams_data"]
            line(lib, ver, len(g), med(g, "gbit_s"), med(g, "cpu_ns_per_byte"),
                 med(g, "cpu_ns_per_data_dgram", "{:.0f}"), one(g, "mean_dgram"),
                 one(g, "back", "{:.1f}"), one(g, "lostp", "{:.2f}"), one(g, "peak_rss_mib"))

    for bench, title in (("handshake", "handshake: full 1-RTT handshakes, both sides"),
                         ("streams", "streams: 10,000 of 100 bytes up, 10 KiB down, 100 at once, loopback"),
                         ("streams-mem", "streams-mem: the same in memory, one thread")):
        extra = ["datagrams down each", "datagrams up each"] if bench != "handshake" else []
        head(title, "library", "version", "how", "runs", "per second", "CPU us each", *extra)
        by_how = {}
        for (lib, ver), g in groups(bench).items():
            for r in g:
                by_how.setdefault((lib, ver, r.get("how", "loopback")), []).append(r)
        for (lib, ver, how), g in sorted(by_how.items()):
            line(lib, ver, how, len(g), med(g, "per_s", "{:.0f}"),
                 med(g, "cpu_us_each", "{:.1f}"),
                 *([one([{"x": r["dgrams_data"] / r["streams"]} for r in g if "dgrams_data" in r],
                        "x", "{:.1f}"),
                    one([{"x": r["dgrams_ack"] / r["streams"]} for r in g if "dgrams_ack" in r],
                        "x", "{:.1f}")] if extra else []))

    head("idle: connections that do nothing, both ends", "library", "version", "how", "connections", "runs",
         "KiB each", "CPU ms per second", "CPU us to connect each")
    for (lib, ver), g in sorted(groups("idle").items()):
        for n in sorted({r["connections"] for r in g}):
            of = [r for r in g if r["connections"] == n]
            line(lib, ver, of[0]["how"], n, len(of), med(of, "kib_each", "{:.1f}"),
                 med(of, "idle_cpu_ms_per_s", "{:.1f}"), med(of, "setup_cpu_us_each", "{:.0f}"))

    head("multipath: noq, 256 MiB on one stream, path 0 on 127.0.0.1, path 1 on 127.0.0.2",
         "direction", "client opened path 1 as", "runs", "Gbit/s", "MiB sent on path 0",
         "MiB sent on path 1", "lost % path 0", "lost % path 1")
    g = {}
    for r in rows:
        if r["bench"] == "multipath" and not r.get("failed"):
            g.setdefault((r["direction"], r["second_path"]), []).append(r)
    for (d, st), rs in sorted(g.items()):
        line(d, st, len(rs), med(rs, "gbit_s"), *(med(rs, f"path{k}_mib", "{:.1f}") for k in (0, 1)),
             *(med(rs, f"path{k}_lost_pct", "{:.1f}") for k in (0, 1)))
    bad = [r for r in rows if r.get("failed")]
    if bad:
        print("\nFailed runs:", ", ".join(f"{r['lib']} {r['bench']}" for r in bad))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--out", default="results.jsonl")
    p.add_argument("--only", nargs="*", help="subcommands, such as: sansio bulk")
    p.add_argument("--tables", nargs="*")
    a = p.parse_args()
    tables([json.loads(l) for f in a.tables for l in open(f)] if a.tables
           else run(a.rounds, a.out, a.only))
