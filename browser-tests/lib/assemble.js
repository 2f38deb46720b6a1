// Puts a document into the page as `quipu report` does, for tests of what no real report has: every kind
// of figure at once, damaged data, hostile names.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ASSETS = join(dirname(fileURLToPath(import.meta.url)), "../../crates/quipu-report/assets");
const read = (...path) => readFileSync(join(ASSETS, ...path), "utf8");

/** The whole page; `data` is a document, or text that stands in for one. */
export function assemble(data, title = data.title ?? "damaged") {
  const scripts = read("scripts/ORDER").trim().split("\n");
  const text = typeof data === "string" ? data : JSON.stringify(data);
  const parts = {
    title: title.replaceAll("&", "&amp;").replaceAll("<", "&lt;"),
    style: read("report.css"),
    libraries: ["vega.min.js", "vega-lite.min.js"].map((name) => read("vendor", name)).join("\n"),
    data: text.replaceAll("<", "\\u003c"),
    script: scripts.map((name) => read("scripts", name)).join("\n"),
  };
  return read("page.html")
    .split(/<!-- quipu:(\w+) -->/)
    .map((piece, at) => (at % 2 ? parts[piece] : piece))
    .join("");
}
