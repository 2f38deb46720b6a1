// A document with every part that a report may have, made without chance or clock.

const POLICIES = ["rr + minrtt", "fifo + minrtt", "wrr + minrtt", "swrr + minrtt", "dwrr + minrtt", "rr + single:id=0", "rr + single:id=1"];
const PAGES = ["framework-youtube", "wikipedia"];
const PATHS = ["wifi", "lte"];

/** Numbers from 0 to 1 (mulberry32). */
function chance(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const nominal = (field, title, domain) => ({ field, type: "nominal", title, ...(domain ? { scale: { domain } } : {}) });
const amount = (field, title, more) => ({ field, type: "quantitative", title, ...more });
const pageControl = { id: "page", label: "Page", options: PAGES.map((name) => ({ value: name, label: name })), default: PAGES[0] };

function pageTimes() {
  const random = chance(1);
  const rows = [];
  for (const [at, page] of PAGES.entries()) {
    for (const [which, policy] of POLICIES.entries()) {
      const centre = 320 + at * 500 + (which > 4 ? (which - 4) * 140 : which * 4);
      const times = Array.from({ length: 30 }, () => centre + 60 * (random() + random() - 1)).sort((a, b) => a - b);
      times.forEach((time, run) => rows.push([page, policy, Math.round(time * 10) / 10, Math.round((1000 * (run + 1)) / 30) / 10]));
    }
  }
  return { columns: ["page", "policy", "time", "share"], rows };
}

function boxes(times) {
  const groups = new Map();
  for (const [page, policy, time] of times.rows) {
    const key = `${page}\n${policy}`;
    groups.set(key, [...(groups.get(key) ?? []), time]);
  }
  const rows = [...groups].map(([key, list]) => {
    const at = (part) => list[Math.floor(part * (list.length - 1))];
    return [...key.split("\n"), at(0.05), at(0.25), at(0.5), at(0.75), at(0.95)];
  });
  return { columns: ["page", "policy", "p5", "q1", "median", "q3", "p95"], rows };
}

function heat() {
  const steps = [1, 2, 4, 8, 16];
  const rows = PAGES.flatMap((page, which) =>
    steps.flatMap((rate, x) => steps.map((delay, y) => [page, `${rate}`, `${delay}`, Math.round(100 * (0.72 + 0.06 * x + 0.05 * y + 0.05 * which)) / 100])),
  );
  return { columns: ["page", "rate_ratio", "delay_ratio", "ratio"], rows };
}

function series() {
  const rows = [];
  for (const [which, path] of PATHS.entries()) {
    for (let step = 0; step <= 60; step += 1) {
      const grow = Math.min(90, 12 * 1.09 ** step) * (step > 42 ? 0.7 : 1) * (1 - which * 0.35);
      rows.push([path, step * 5, Math.round(grow * 10) / 10, Math.round((15 + which * 10 + grow / 9) * 10) / 10]);
    }
  }
  return { columns: ["path", "time", "cwnd", "rtt"], rows };
}

function waterfall() {
  const random = chance(7);
  const rows = [];
  for (let object = 0; object < 40; object += 1) {
    const begin = Math.round(30 + object * 5 + 20 * random());
    const middle = begin + Math.round(20 + 40 * random());
    const path = PATHS[object % 2];
    rows.push([`${String(object).padStart(2, "0")} /static/${"abcdef"[object % 6]}${object}.js`, object, begin, middle, "waiting"]);
    rows.push([`${String(object).padStart(2, "0")} /static/${"abcdef"[object % 6]}${object}.js`, object, middle, middle + Math.round(5 + 60 * random()), path]);
  }
  return { columns: ["object", "order", "begin", "end", "path"], rows };
}

function shares() {
  const rows = PAGES.flatMap((page, at) =>
    POLICIES.flatMap((policy, which) => {
      const wifi = which === 5 ? 99.9 : which === 6 ? 1.9 : 59 + at * 3 + which / 3;
      return [[page, policy, "wifi", wifi], [page, policy, "lte", Math.round((100 - wifi) * 10) / 10]];
    }),
  );
  return { columns: ["page", "policy", "path", "share"], levels: {}, rows };
}

/** The same numbers in the small form: texts as positions in a list. */
function withLevels(dataset, names) {
  const levels = Object.fromEntries(names.map((name) => [name, [...new Set(dataset.rows.map((row) => row[dataset.columns.indexOf(name)]))]]));
  const rows = dataset.rows.map((row) => row.map((cell, at) => levels[dataset.columns[at]]?.indexOf(cell) ?? cell));
  return { columns: dataset.columns, levels, rows };
}

export function sampleDocument() {
  const times = pageTimes();
  const policy = { color: nominal("policy", "Policy", POLICIES), strokeDash: nominal("policy", "Policy", POLICIES) };
  const path = { color: nominal("path", "Path", PATHS), strokeDash: nominal("path", "Path", PATHS) };
  const figure = (id, title, caption, alt, datasets, spec, controls) => ({
    id, title, caption, alt, datasets, ...(controls ? { controls } : {}),
    spec: { $schema: "https://vega.github.io/schema/vega-lite/v6.json", data: { name: datasets[0] }, width: "container", ...spec },
  });
  // A copy: tests change it.
  return structuredClone({
    title: "Two pages over Wi-Fi and LTE",
    subtitle: "2 pages × 1 network × 7 policies × 30 runs, seed 1",
    generated_by: { version: "0.1.0", commit: "e91824f0c1d2" },
    world: "simulated",
    notices: ["results/b/runs.csv: line 12: 3 fields, expected 14: the rest of this folder is shown", "The results are of two versions, 0.1.0 and 0.0.9: ratios between them compare programs too."],
    summary: [
      "Both paths together load framework-youtube in 319.4 ms, 1.26 times as fast as Wi-Fi alone.",
      "What the user waits for first comes 32.8 % sooner with weights than with round robin (93.1 ms against 141.8 ms).",
      "No scheduler can beat 249 ms here; the best stays 28 % above that bound.",
      "The three weighted schedulers agree: Chrome's priorities form a chain.",
    ],
    sections: [
      {
        id: "distribution", title: "How long pages take", text: ["Each line is one policy: the part of its loads that were done by then. Lines that lie further to the left are faster."],
        figures: [
          figure("page-ecdf", "Page time, all runs", "Part of the loads that were complete by a time. 30 runs each.", "Seven rising curves; five lie together near 320 ms, the two that use one path lie to the right.", ["page_times"], {
            height: 320, mark: { type: "line", interpolate: "step-after" },
            encoding: { x: amount("time", "Page time (ms)", { scale: { zero: false } }), y: amount("share", "Loads done (%)"), ...policy, tooltip: [nominal("policy", "Policy"), amount("time", "ms"), amount("share", "%")] },
          }, [pageControl]),
          figure("page-box", "Page time, spread", "Box: half of the loads; line: median; whiskers: 5 % to 95 %.", "Seven boxes; the two of single paths lie highest.", ["boxes"], {
            height: { step: 34 },
            encoding: { y: { ...nominal("policy", "Policy"), sort: POLICIES } },
            layer: [
              { mark: "rule", encoding: { x: amount("p5", "Page time (ms)", { scale: { zero: false } }), x2: { field: "p95" } } },
              { mark: { type: "bar", height: 16, opacity: 0.75 }, encoding: { x: amount("q1"), x2: { field: "q3" }, tooltip: [nominal("policy", "Policy"), amount("median", "Median (ms)")] } },
              { mark: { type: "tick", size: 16 }, encoding: { x: amount("median") } },
            ],
          }, [pageControl]),
        ],
        tables: [
          {
            id: "summary-table", title: "All policies", caption: "Medians of 30 runs; ratios to rr + minrtt, run by run.",
            columns: [
              { key: "page", title: "Page", numeric: false }, { key: "policy", title: "Policy", numeric: false },
              { key: "page_time", title: "Page", unit: "ms", numeric: true, digits: 1 }, { key: "ratio", title: "Ratio", unit: "x", numeric: true, digits: 3 },
              { key: "wifi", title: "Wi-Fi", unit: "%", numeric: true, digits: 1 }, { key: "resent", title: "Resent", unit: "bytes", numeric: true },
            ],
            rows: PAGES.flatMap((page, at) => POLICIES.map((name, which) => [page, name, 319.4 + at * 480 + which * 3.21, which === 0 ? null : 1 + which * 0.013, 59.6 - which, 123_700 + which * 19_211])),
          },
        ],
      },
      {
        id: "networks", title: "Where it depends on the network", text: ["Below 1 the policy is faster than the first one."],
        figures: [
          figure("heat", "Ratio over rate and delay", "Median ratio of page times, wrr + minrtt to rr + minrtt.", "A grid of five by five; ratios grow to the right and upwards from 0.72 to 1.21.", ["heat"], {
            height: 300,
            encoding: { x: { field: "rate_ratio", type: "ordinal", title: "Rate of path 0 : path 1", sort: null, axis: { labelAngle: 0 } }, y: { field: "delay_ratio", type: "ordinal", title: "Delay of path 1 : path 0", sort: "descending" } },
            layer: [
              { mark: "rect", encoding: { color: amount("ratio", "Ratio", { scale: { domainMid: 1 } }), tooltip: [amount("ratio", "Ratio")] } },
              { mark: "text", encoding: { text: amount("ratio", undefined, { format: ".2f" }) } },
            ],
          }, [pageControl]),
          figure("ratio-points", "Ratio and its interval", "Ratio to rr + minrtt with its 95 % interval.", "One point for each policy; the last two lie far to the right.", ["ratios"], {
            height: { step: 30 },
            encoding: { y: { ...nominal("policy", "Policy"), sort: POLICIES } },
            layer: [
              { mark: { type: "rule", strokeDash: [4, 3] }, encoding: { x: { datum: 1 } } },
              { mark: { type: "rule", strokeWidth: 2 }, encoding: { x: amount("low", "Ratio", { scale: { zero: false } }), x2: { field: "high" } } },
              { mark: { type: "point", filled: true }, encoding: { x: amount("middle"), color: nominal("policy", "Policy", POLICIES), shape: nominal("policy", "Policy", POLICIES) } },
            ],
          }),
        ],
        tables: [],
      },
      {
        id: "paths", title: "What the paths did", text: [],
        figures: [
          figure("cwnd", "Congestion window", "Of the server's connection, every 5 ms.", "Two lines that rise and fall once at 215 ms.", ["series"], { height: 240, mark: "line", encoding: { x: amount("time", "Time (ms)"), y: amount("cwnd", "Window of the congestion controller, the part in flight included (kB)"), ...path } }),
          figure("rtt", "Round-trip time", "Smoothed.", "Two lines between 15 and 35 ms.", ["series"], { height: 200, mark: "line", encoding: { x: amount("time", "Time (ms)"), y: amount("rtt", "Round-trip time (ms)", { scale: { zero: false } }), ...path } }),
          figure("shares", "Shares of the paths", "Part of the bytes that each path carried.", "Seven bars of two parts each.", ["shares"], {
            height: { step: 30 }, mark: { type: "bar" },
            encoding: { y: { ...nominal("policy", "Policy"), sort: POLICIES }, x: amount("share", "Share (%)", { stack: true, scale: { domain: [0, 100] } }), color: nominal("path", "Path", PATHS), tooltip: [nominal("path", "Path"), amount("share", "%")] },
          }, [pageControl]),
          figure("waterfall", "One load, object by object", "Pale: waiting; colour: the path that brought the object.", "Forty bars, each a little later than the one before.", ["waterfall"], {
            height: { step: 13 },
            mark: { type: "bar" },
            encoding: { y: { field: "object", type: "nominal", title: "Object", sort: { field: "order" } }, x: amount("begin", "Time (ms)"), x2: { field: "end" }, color: nominal("path", "Path", [...PATHS, "waiting"]) },
          }),
        ],
        tables: [
          {
            id: "objects-table", title: "Objects", caption: "One row for each object of each load.",
            columns: [{ key: "object", title: "Object", numeric: false }, { key: "size", title: "Size", unit: "bytes", numeric: true }, { key: "done", title: "Done", unit: "ms", numeric: true, digits: 1 }],
            rows: Array.from({ length: 420 }, (_, at) => [`/object/${at}`, (at * 7919) % 260_000, at % 17 === 0 ? null : 30 + ((at * 37) % 400)]),
          },
        ],
      },
    ],
    datasets: {
      page_times: withLevels(times, ["page", "policy"]),
      boxes: boxes(times), heat: heat(), series: series(), waterfall: waterfall(), shares: shares(),
      ratios: { columns: ["policy", "low", "middle", "high"], rows: POLICIES.slice(1).map((name, at) => [name, 0.99 + at * 0.1, 1.01 + at * 0.11, 1.03 + at * 0.12]) },
    },
  });
}
