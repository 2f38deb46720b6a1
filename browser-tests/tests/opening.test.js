// A report of 20,000 runs opens at once.
import assert from "node:assert/strict";
import { join } from "node:path";
import { launch, open, OUT, test, until } from "../lib/browser.js";

const BUDGET_MS = 2000;

test("a report of 20,000 runs opens in under two seconds", async (t) => {
  const times = [];
  for (let attempt = 0; attempt < 3; attempt += 1) {
    // A browser of its own, so that nothing is warm.
    const browser = await launch();
    const { page } = await open(browser, join(OUT, "reports", "many.html"));
    await until(page, () => document.querySelector(".summary")?.getBoundingClientRect().height > 0);
    times.push(
      await page.evaluate(async () => {
        // By timers: idle callbacks may never come to a page that nobody looks at.
        const isDrawn = () => document.querySelector('figure[data-state="drawn"]');
        while (!isDrawn()) await new Promise((done) => setTimeout(done, 5));
        const answers = performance.now();
        return {
          painted: performance.getEntriesByName("first-contentful-paint")[0].startTime,
          ready: performance.getEntriesByName("report-ready")[0].startTime,
          answers,
          drawn: document.querySelectorAll('figure[data-state="drawn"]').length,
        };
      }),
    );
    await browser.close();
  }
  for (const time of times) t.diagnostic(JSON.stringify(time));
  // The summary is painted, all of the page is there, and it answers with its first figure drawn. The least
  // of three: what else the machine does only adds.
  for (const key of ["painted", "ready", "answers"]) {
    const least = Math.min(...times.map((time) => time[key]));
    assert.ok(least < BUDGET_MS, `${key}: ${least} ms`);
  }
});
