//! What `--help` shows of each command in use.

pub(super) const AGREE: &str = "\
Examples:
  quipu agree --page dojo-demo --network wifi+lte --stream rr,fifo --runs 10
  quipu agree --page wikipedia --network dsl+lte --network wifi+lte --out results/agree --check
  quipu agree --host measured:timer_late=80us,timer_late_p99=300us --runs 5

--host has the costs of hosts for the simulator that is beside the one with ideal hosts [default: here, those of this
host, which are measured for ten seconds].";

pub(super) const COMPARE: &str = "\
Examples:
  quipu compare --page cnn --network wifi+lte-lossy --runs 10
  quipu compare --page my.har --stream wrr,dwrr --path minrtt,single:id=1 --out results/mine
  quipu compare --page wikipedia --stream all --path all --runs 3 --sort critical
  quipu compare --link rate=30mbit,delay=10ms,loss=1.5% --link rate=16mbit,delay=12ms,up.rate=1mbit
  quipu compare --initial-window=32 --pacing=false --start warm:4
  quipu compare --page wikipedia --live https://server.example --pin PIN --via wlan0 --via wwan0

Fields of --link: name, rate, trace, steps (20s:4mbit+45s:2mbit), delay, jitter,
jitter_correlation (75%), loss (1%, bursts 1.5% 50%, gemodel 1% 30%, random 1.5% 50%), queue
(default, 1bdp, 50p, 64KiB, unlimited), mark (30p), reorder (2%+5ms), duplicate (1%+1ms), outage
(1s..2s). up.FIELD sets the uplink, access.FIELD the access links; bottleneck=NAME shares the links
of path NAME. `quipu columns` explains the columns of the tables, and what --sort takes.";

pub(super) const EMULATE: &str = "\
Examples:
  quipu emulate wifi+lte
  quipu emulate wifi+lte -- ping -c 3 10.0.255.1
  quipu emulate --link rate=20mbit,delay=15ms --server 'iperf3 -s' -- sh -c 'sleep 1; iperf3 -c $QUIPU_SERVER'
  quipu emulate dsl+lte --report dsl.json --server 'quipu serve --har wikipedia --listen 0.0.0.0:443' -- chromium

Each client and each server of the scenario is a network namespace with an interface per path: path0, path1 and so
on. Programs have only these and loopback, and see the machine's files. QUIPU_CLIENT and QUIPU_SERVER have the
addresses of both ends, path by path, QUIPU_INTERFACES the names of interfaces. Exit code: that of the client's
program. A run is void, and says so, if 1 % of its packets were late by more than 1 ms or 5 % of the smallest delay
(0.1 ms if that is more), or if a packet was lost elsewhere than on a link.";

pub(super) const FETCH: &str = "\
Examples:
  quipu fetch https://example.org/
  quipu fetch https://example.org/a.iso --via wlan0 --via wwan0 --output a.iso --continue
  quipu fetch https://example.org/1.bin https://example.org/2.bin --output-dir files --json
  quipu fetch https://localhost:4433/ --pin PIN --priority u=1,i
  quipu fetch https://example.org/up --upload data.bin --request POST
  quipu fetch https://localhost:4433/ --pin PIN --http h2

Exit codes are those of curl: 3 wrong URL, 6 unknown host, 7 no connection, 18 cut off in the body,
22 a status of 400 or more with --fail, 23 cannot write, 26 cannot read what is uploaded, 28 too
late, 33 no range, 35 no TLS or not that version of HTTP, 47 too many redirects, 56 failed before
the body, 60 certificate not trusted, 63 larger than --max-filesize; and 110, which curl has not, for
a checksum that differs. With several URLs it is that of the first that failed; the others go on.";

pub(super) const SERVE: &str = "\
Examples:
  quipu serve site --identity ~/.quipu
  quipu serve site --cert chain.pem --key key.pem --listen 0.0.0.0:443 --stream rfc9218
  quipu serve site --access-log access.json --metrics 127.0.0.1:9100
  quipu serve --har wikipedia --experiments

A browser finds HTTP/3 by the Alt-Svc field of what it gets over TCP, if it trusts the certificate. In
the DNS, an HTTPS record says it before the first request: example.org. HTTPS 1 . alpn=h3,h2";

pub(super) const NEW: &str = "\
Examples:
  quipu scenario new mine.toml
  quipu scenario new mine.toml --page cnn --network wifi+lte --network dsl+lte --stream wrr,dwrr
  quipu scenario new grid.toml --sweep";

pub(super) const LOAD: &str = "\
Examples:
  quipu load
  quipu load --page framework-youtube --stream fifo --path single:id=0
  quipu load --page my.har --network dsl+lte --run 3
  quipu load --page wikipedia --series 1ms --out results/wikipedia
  quipu load --page wikipedia --live https://server.example:8443 --pin PIN --via wlan0 --via wwan0";

pub(super) const COST: &str = "\
Examples:
  quipu cost experiments/pw-pats/cost.toml
  quipu cost experiments/pw-pats/cost.toml --runs 3 --policies.joint=pw-pats,fstream

Prints a table in Markdown: nanoseconds per decision, and per packet including all events that a
policy receives. The cost of reading the clock is measured and subtracted. Runs are made one after
the other; the machine should be otherwise idle. The times are those of this machine.";

pub(super) const RUN: &str = "\
Examples:
  quipu run experiments/ns3/ns3-fig4.toml
  quipu run experiments/congestion/shared-bottleneck.toml --runs 5 --out results/shared
  quipu run experiments/congestion/utilisation.toml --congestion=newreno,cubic --duration=20s
  quipu run results/shared/scenario.toml

A file may have `pages`, `[[flows]]` and `[[cross]]`. Flows send as much as congestion control
allows: name, start, stop, bytes, direction (down, up), paths, congestion, path, streams,
initial_window. Cross traffic does not react to congestion: name, rate, packet, kind (constant, poisson, on-off),
on, off, path, direction, start, stop. `duration` ends a run without pages; `measure.from` and
`measure.until` bound what is measured of flows and links.";

pub(super) const SWEEP: &str = "\
Examples:
  quipu sweep experiments/sweeps/ratios.toml --out results/ratios --dry-run
  quipu sweep experiments/sweeps/ratios.toml --out results/ratios
  quipu sweep big.toml --shard 1/2 --out results/one     # on one machine
  quipu sweep big.toml --shard 2/2 --out results/two     # on another
  quipu sweep big.toml --from results/one --from results/two --out results/big

In the file each key of [sweep] is a field with a list of values; all lists together are a grid:
  [sweep]
  browser = [\"chrome\", \"firefox\"]
  \"networks.*.paths.1.*.rate\" = [\"10mbit\", \"30mbit\"]
[sweep.random] draws `count` samples of fields: { from = \"1mbit\", to = \"50mbit\", scale = \"log\" }.
Each run is stored as soon as it finishes: however the command was stopped, repeating it resumes,
and the result has the same bytes. Exit code 1 if a run failed, 2 if the file is wrong, 130 after Ctrl-C.";

pub(super) const REPORT: &str = "\
Examples:
  quipu compare --out results/first && quipu report results/first
  quipu report results/reproduce --out reproduction.html
  quipu report results/first --load \"wikipedia,wifi+lte,dwrr + minrtt,3\"
  quipu report results/first --specs figures

The file is self-contained and loads nothing from elsewhere. Files that are unreadable or incomplete
are listed, one per line, here and in the report; everything else is shown. Exit code 2 if DIR
has no result.";

pub(super) const CONVERT: &str = "\
Examples:
  quipu trace convert DL_atnt_verizon_1_run_13.csv --from pam2025 --only y --out verizon.csv
  quipu trace convert iperf.csv --from starlink-iperf --only 2024-01-25 --out starlink.csv
  quipu trace convert bus.csv --from csv --columns time=Timestamp,rate=DL_bitrate:kbps --out our-bus.csv
  quipu trace convert our-bus.csv --from csv --to mahimahi --out bus.down

The command prints what it wrote and what it left out. It replaces a file only with --force. If a
file does not have the format, the error names the line and the exit code is 2.";

pub(super) const CHECK: &str = "\
Examples:
  quipu scenario check experiments/*/*.toml
  quipu scenario check mine.toml --format json

A finding reads FILE:LINE:COLUMN: field: value; expected ...; did you mean ...? Pages, traces and
networks that a file names are checked too. The exit code is 0 if all files are fine, else 2.";

pub(super) const SHOW: &str = "\
Examples:
  quipu scenario show wifi+lte
  quipu scenario show experiments/ns3/fig3a.toml
  quipu scenario show experiments/mobileh2/ack-paths.toml --network wild-half --ascii";

pub(super) const SCHEMA: &str = "\
Examples:
  quipu scenario schema > scenario.schema.json

A scenario file that begins with the line `#:schema scenario.schema.json` is checked and completed
by editors that know the line, such as those with Even Better TOML or taplo.";
pub(super) const REPRODUCE: &str = "\
Examples:
  quipu reproduce --list
  quipu reproduce --quick
  quipu reproduce fw-fig7-chrome
  quipu reproduce pw-pats --out results/pw-pats
  quipu reproduce my-experiment.toml

Finished runs are kept: after Ctrl-C the same command resumes. The exit code is 1 if the outcome of
a rule differs from what its file expects.";

pub(super) const INFER: &str = "\
Examples:
  quipu page infer slow.har fast.har --out both.har
  quipu page infer page.har --trace trace.json.gz --out traced.har
  quipu compare --page both.har --compute likely

The new file contains all loads of all files, which the program reads as one page; with --trace, it
is the HAR file with the trace added. The exit code is 2 if a file is not a recording or the trace
belongs to another load.";

pub(super) const PREDICT: &str = "\
Examples:
  quipu page predict kicad-start rust-vec
  quipu page predict recorded.har.gz

Each load is inferred as a page of its own, which is then loaded over the networks of the others.
The exit code is 2 if a file does not have loads at two speeds.";

pub(super) const RECORD: &str = "\
Examples:
  quipu page record https://example.org/
  quipu page record https://example.org/ --at 2mbit,20mbit,unlimited --rtt 40ms --repeat 3
  quipu page record http://127.0.0.1:8000/ --out site.har.gz
  quipu page record http://127.0.0.1:8000/ --viewport 390x844 --settle 5s

Each load has a new browser with an empty cache. The browser's own throttle imposes the rates: all
responses share one rate, and each request waits for one round trip, but connections open without
delay and TCP sees the machine's own network (docs/recording.md). Ctrl-C keeps the loads that have ended.
Exit code 2 if the page cannot be loaded or there is no browser, 130 after Ctrl-C.";

pub(super) const PERF_SERVER: &str = "\
Examples:
  quipu perf server
  quipu perf server --listen 192.0.2.1:4433 --path ecf --congestion cubic
  quipu perf server --identity identity --qlog logs
  quipu perf server --shards 4
  quipu perf server --cert chain.pem --key key.pem

Without options for a certificate, the server makes one when it starts. It prints the pin of its
certificate. With --identity both stay the same, and a server that starts again resets the
connections that it had. Ctrl-C ends it, with exit code 130. Exit code 1 if the port is in use, 2
if an option is wrong.";

pub(super) const PERF_CLIENT: &str = "\
Examples:
  quipu perf client server.example:4433 --pin PIN
  quipu perf client 192.0.2.1:4433 --pin PIN --via wlan0 --via wwan0 --direction down
  quipu perf client 192.0.2.1:4433 --pin PIN --via auto --bytes 100MB --streams 4 --json
  quipu perf client 192.0.2.1:4433 --pin PIN --datagrams=1000 --rate 5mbit --time 30s
  quipu perf client server.example:4433 --ca authority.pem --qlog logs

The handshake is tried over all uplinks, and each becomes a path. Rows of paths count UDP payload,
the row of all paths the bytes of streams or datagrams that arrived. Meanwhile a table on a terminal
shows what each path carried in the last second. Exit code 1 if the server does not answer, 2 if an option is wrong.";

pub(super) const PATHS: &str = "\
Examples:
  quipu paths
  quipu paths 192.0.2.1:4433 --pin PIN
  quipu paths 192.0.2.1:4433 --pin PIN --via wlan0 --via wwan0

An uplink is an address of an interface. With --via auto a client uses those whose interface is up
and has a default route. With a server, each is tried with a handshake that leaves by it alone.
Exit code 1 if none gets an answer, 2 if an option is wrong or this host has no such uplink.";

pub(super) const COMPLETIONS: &str = "\
Examples:
  quipu completions bash > ~/.local/share/bash-completion/completions/quipu
  quipu completions zsh > ~/.zfunc/_quipu
  quipu completions fish > ~/.config/fish/completions/quipu.fish";
