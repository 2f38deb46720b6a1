// A load that the program wrote as a HAR file, opened by a viewer of others. `make-reports` makes it.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { launch, open, OUT, ROOT, test } from "../lib/browser.js";

const VIEWER = join(ROOT, "browser-tests/node_modules/perf-cascade/dist");

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("a written load is a waterfall in perf-cascade", async () => {
  const har = JSON.parse(readFileSync(join(OUT, "recordings/load.har"), "utf8"));
  const file = join(OUT, "recordings/load.html");
  writeFileSync(file, `<!doctype html><html data-ready><meta charset="utf-8"><body></body></html>`);
  const { page, context, wrong } = await open(browser, file);
  await page.addStyleTag({ path: join(VIEWER, "perf-cascade.css") });
  await page.addScriptTag({ path: join(VIEWER, "perf-cascade.js") });
  const drawn = await page.evaluate((log) => {
    const svg = globalThis.perfCascade.fromHar(log);
    document.body.append(svg);
    const all = (selector) => [...svg.querySelectorAll(selector)];
    return {
      rows: all(".row-item").length,
      kinds: [...new Set(all(".time-block").map((block) => block.getAttribute("class")))],
      marks: all(".mark-holder").map((mark) => mark.textContent),
      connects: all(".segment.block-ssl").length,
    };
  }, har.log);
  assert.ok(har.log.entries.length > 20, `${har.log.entries.length} entries`);
  assert.equal(drawn.rows, har.log.entries.length);
  for (const kind of ["html", "css", "javascript", "image"]) {
    assert.ok(drawn.kinds.some((name) => name.includes(`block-${kind}`)), `${kind}: ${drawn.kinds}`);
  }
  const onLoad = Math.round(har.log.pages[0].pageTimings.onLoad);
  assert.ok(drawn.marks.some((mark) => mark.includes(`onLoad (${onLoad} ms)`)), `${drawn.marks}`);
  assert.equal(drawn.connects, 1);
  assert.deepEqual(wrong, []);
  await context.close();
});
