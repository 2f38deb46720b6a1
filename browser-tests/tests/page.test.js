// What the page does with any document: the sample has every part, others are damaged on purpose.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { assemble } from "../lib/assemble.js";
import { drawAll, launch, open, OUT, settled, test, until } from "../lib/browser.js";
import { accessibility, figures } from "../lib/look.js";
import { sampleDocument } from "../lib/sample.js";

let browser;
before(async () => {
  browser = await launch();
  mkdirSync(join(OUT, "reports"), { recursive: true });
});
after(() => browser.close());

/** Opens the sample after `change`; text instead of a document is taken as it is. */
async function opened(name, change = () => {}, options = {}) {
  const made = sampleDocument();
  const data = change(made) ?? made;
  const file = join(OUT, "reports", `page-${name}.html`);
  writeFileSync(file, assemble(data));
  return open(browser, file, options);
}

/** Opens a page that shows nothing but a line. */
async function openedBroken(name, data) {
  const file = join(OUT, "reports", `page-${name}.html`);
  writeFileSync(file, assemble(data));
  const page = await browser.newPage();
  await page.goto(`file://${file}`);
  const line = await page.locator("main .notice[role=alert]").innerText();
  await page.close();
  return line;
}

test("every part of the contract is shown", async () => {
  const { page, context, wrong } = await opened("whole");
  await drawAll(page);
  const report = sampleDocument();
  assert.equal(await page.title(), report.title);
  assert.equal(await page.locator("h1").innerText(), report.title);
  assert.equal(await page.locator(".subtitle").innerText(), report.subtitle);
  assert.match(await page.locator(".made").innerText(), /simulated.*quipu 0\.1\.0 \(e91824f0c1\)/s);
  assert.deepEqual(await page.locator(".notices .notice").allInnerTexts(), report.notices);
  assert.equal(await page.locator(".summary .first").innerText(), report.summary[0]);
  assert.deepEqual(await page.locator(".summary li").allInnerTexts(), report.summary.slice(1));
  assert.deepEqual((await figures(page)).map(({ id, state }) => [id, state]), report.sections.flatMap((section) => section.figures.map(({ id }) => [id, "drawn"])));
  assert.deepEqual(await accessibility(page), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("the document is text, whatever it says", async () => {
  const evil = `</script><script>globalThis.broken = 1</script><img src="x" onerror="globalThis.broken = 1"><!-- <script>`;
  const { page, context, wrong } = await opened("evil", (report) => {
    report.title = evil;
    report.summary[0] = evil;
    report.notices = [evil];
    report.sections[0].title = evil;
    report.sections[0].figures[0].title = evil;
    report.sections[0].figures[0].controls[0].options[0].label = evil;
    report.sections[0].tables[0].rows[0][0] = evil;
    report.datasets.boxes.rows[0][1] = evil;
  });
  await drawAll(page);
  assert.equal(await page.evaluate(() => globalThis.broken), undefined);
  assert.equal(await page.locator("h1").innerText(), evil);
  assert.equal(await page.locator("img").count(), 0);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("damaged data are said in one line", async () => {
  assert.match(await openedBroken("damaged", '{"title": "half'), /^This report cannot be shown: the data of this report are damaged: .+\.$/);
  assert.match(await openedBroken("other", "[1, 2]"), /there are no sections/);
});

test("a figure that cannot be drawn says so, and the others are drawn", async () => {
  const { page, context, wrong } = await opened("failing", (report) => {
    report.sections[0].figures[0].spec.mark = "no such mark";
    report.sections[1].figures[0].datasets = ["no such data"];
  });
  await drawAll(page);
  const states = Object.fromEntries((await figures(page)).map(({ id, state }) => [id, state]));
  assert.equal(states["page-ecdf"], "failed");
  assert.equal(states.heat, "failed");
  assert.equal(Object.values(states).filter((state) => state === "drawn").length, 6);
  assert.match(await page.locator("#page-ecdf .figure-note").innerText(), /^This figure could not be drawn: .+/);
  assert.match(await page.locator("#heat .figure-note").innerText(), /there is no dataset called no such data/);
  assert.ok(wrong.some((line) => line.includes("figure page-ecdf")));
  await context.close();
});

test("a choice without runs says so", async () => {
  const { page, context, wrong } = await opened("none", (report) => {
    report.sections[0].figures[0].controls[0].options.push({ value: "nowhere", label: "nowhere" });
  });
  await page.locator("#page-ecdf").scrollIntoViewIfNeeded();
  await page.locator("#page-ecdf").getByRole("radio", { name: "nowhere" }).check();
  assert.equal(await page.locator("#page-ecdf .figure-note").innerText(), "There is nothing to draw for this choice: no runs, or the same value in all of them.");
  await page.locator("#page-ecdf").getByRole("radio", { name: "wikipedia" }).check();
  await page.waitForSelector('#page-ecdf[data-state="drawn"]');
  assert.equal(await page.locator("#page-ecdf .figure-note").isVisible(), false);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("colours change at once, in figures too, and are remembered", async () => {
  const { page, context, wrong } = await opened("scheme");
  await drawAll(page);
  const label = () => page.locator("#cwnd .chart text").first().evaluate((text) => getComputedStyle(text).fill);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = [await ground(), await label()];
  await page.getByRole("button", { name: "Dark colours" }).click();
  const dark = [await ground(), await label()];
  assert.notEqual(dark[0], light[0]);
  assert.notEqual(dark[1], light[1]);
  await page.reload();
  await page.waitForSelector("html[data-ready]", { state: "attached" });
  assert.equal(await ground(), dark[0]);
  await page.getByRole("button", { name: "Light colours" }).click();
  assert.equal(await ground(), light[0]);
  // Without a choice the system's changes are followed.
  await page.evaluate(() => localStorage.clear());
  await page.reload();
  await page.waitForSelector("html[data-ready]", { state: "attached" });
  await drawAll(page);
  await page.emulateMedia({ colorScheme: "dark" });
  assert.deepEqual([await ground(), await label()], dark);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("everything is reached by the tab key, in the order of reading", async () => {
  for (const width of [390, 1280]) {
    const { page, context } = await opened("tab", () => {}, { width });
    await drawAll(page);
    await page.evaluate(() => scrollTo(0, 0));
    await settled(page);
    const expected = await page.evaluate(() => {
      const wanted = [...document.querySelectorAll("a[href], button, select, input, summary, [tabindex='0']")].filter(
        (node) => node.checkVisibility({ visibilityProperty: true }) && !node.disabled && !(node.type === "radio" && !node.checked),
      );
      wanted.forEach((node, at) => (node.dataset.stop = at));
      return wanted.length;
    });
    const stops = [];
    for (let at = 0; at < expected; at += 1) {
      await page.keyboard.press("Tab");
      stops.push(
        await page.evaluate(() => {
          const node = document.activeElement;
          const shown = node.matches("input[type=radio]") ? node.nextElementSibling : node;
          const { outlineStyle, outlineWidth } = getComputedStyle(shown);
          return { stop: Number(node.dataset.stop), outlined: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 };
        }),
      );
    }
    assert.deepEqual(stops.map(({ stop }) => stop), stops.map((_, at) => at));
    assert.ok(stops.every(({ outlined }) => outlined), "the focus is seen everywhere");
    await context.close();
  }
});

test("the first stop skips to the results", async () => {
  const { page, context } = await opened("skip");
  await page.keyboard.press("Tab");
  const skip = page.locator(".skip");
  assert.ok(await skip.evaluate((link) => link === document.activeElement && link.getBoundingClientRect().top >= 0));
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await context.close();
});

test("menus open and close by key", async () => {
  const { page, context } = await opened("menu");
  const menu = page.locator("#page-ecdf .menu");
  await menu.locator("summary").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Picture (SVG)");
  await page.keyboard.press("Escape");
  assert.equal(await menu.getAttribute("open"), null);
  assert.ok(await menu.locator("summary").evaluate((summary) => summary === document.activeElement));
  await context.close();
});

test("options side by side change with the arrow keys", async () => {
  const { page, context } = await opened("arrows");
  await page.locator("#page-ecdf").scrollIntoViewIfNeeded();
  await page.waitForSelector('#page-ecdf[data-state="drawn"]');
  const before = await page.locator("#page-ecdf .chart").innerHTML();
  await page.locator("#page-ecdf input:checked").focus();
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await page.locator("#page-ecdf .chart").innerHTML(), before);
  assert.match(await page.locator("#page-ecdf .chart").getAttribute("aria-label"), /Shown: Page: wikipedia\.$/);
  await context.close();
});

test("a figure is shown as a table, of what is chosen", async () => {
  const { page, context } = await opened("as-table");
  await drawAll(page);
  const card = page.locator("#page-ecdf");
  const toggle = card.getByRole("button", { name: "Show as table: Page time, all runs" });
  await toggle.click();
  assert.equal(await toggle.getAttribute("aria-expanded"), "true");
  const [button, table, chart] = await Promise.all([toggle, card.locator(".figure-data"), card.locator(".chart")].map((it) => it.boundingBox()));
  assert.ok(table.y < chart.y, "a table opens below its button, not below the drawing");
  assert.ok(table.y - (button.y + button.height) < 200, `${table.y} is far below ${button.y}`);
  assert.match(await card.locator(".count").innerText(), /^1–25 of 210$/);
  assert.equal(await card.locator("tbody tr th").first().innerText(), "framework-youtube");
  await card.getByRole("radio", { name: "wikipedia" }).check();
  assert.equal(await card.locator("tbody tr th").first().innerText(), "wikipedia");
  await toggle.click();
  assert.equal(await card.locator("table").isVisible(), false);
  await context.close();
});

test("long tables are filtered and turned page by page", async () => {
  const { page, context, wrong } = await opened("long");
  await drawAll(page);
  const card = page.locator("#objects-table");
  const count = () => card.locator(".count").innerText();
  assert.equal(await count(), "1–25 of 420");
  await card.getByRole("button", { name: "Next" }).click();
  assert.equal(await count(), "26–50 of 420");
  assert.equal(await card.locator("tbody th").first().innerText(), "/object/25");
  await card.getByLabel("Filter rows").fill("/object/41");
  assert.equal(await count(), "1–11 of 11 (420 in all)");
  await card.locator("thead button").nth(2).click();
  assert.equal(await count(), "1–11 of 11 (420 in all)");
  await card.getByLabel("Filter rows").fill("no such row");
  assert.equal(await count(), "No row contains all of these words.");
  await card.getByLabel("Filter rows").fill("");
  assert.equal(await count(), "1–25 of 420");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("marks say their numbers beside the pointer", async () => {
  const { page, context } = await opened("tooltip");
  await drawAll(page);
  await page.locator("#shares .role-mark path").nth(2).hover();
  assert.match(await page.locator(".tooltip").innerText(), /^Path\s*(wifi|lte)\s*%\s*\d\d(\.\d{1,4})?$/);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".tooltip").isVisible(), false);
  await context.close();
});

test("figures follow the width of the window", async () => {
  const { page, context, wrong } = await opened("resize");
  await drawAll(page);
  const width = () => page.locator("#page-ecdf .chart svg").evaluate((svg) => svg.getBoundingClientRect().width);
  const wide = await width();
  await page.setViewportSize({ width: 390, height: 800 });
  await until(page, () => document.querySelector("#page-ecdf .chart svg").getBoundingClientRect().width < 360);
  assert.ok((await width()) < wide);
  assert.ok((await figures(page)).every(({ outside }) => outside.length === 0));
  assert.deepEqual(wrong, []);
  await context.close();
});

test("figures are drawn when they come near, and all of them for paper, in light colours", async () => {
  const { page, context, wrong } = await opened("print", () => {}, { scheme: "dark", height: 500 });
  const waiting = () => page.locator('figure[data-state="waiting"]').count();
  assert.ok((await waiting()) > 0);
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await waiting(), 0);
  const fill = () => page.locator("#waterfall .chart text").first().evaluate((text) => getComputedStyle(text).fill);
  const paper = await fill();
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.notEqual(await fill(), paper);
  const pdf = await page.pdf({ format: "A4" });
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a link to a figure leads there", async () => {
  const { page, context } = await opened("hash", () => {}, { hash: "#waterfall" });
  await page.waitForSelector('#waterfall[data-state="drawn"]');
  await until(page, () => Math.abs(document.getElementById("waterfall").getBoundingClientRect().top) < 200);
  await context.close();
});

test("the contents name all sections, and fold on a phone", async () => {
  const wide = await opened("contents");
  const titles = ["Summary", ...sampleDocument().sections.map(({ title }) => title)];
  assert.deepEqual(await wide.page.locator("nav .of-part").allInnerTexts(), titles);
  await wide.page.locator("#paths").scrollIntoViewIfNeeded();
  await wide.page.evaluate(() => document.getElementById("paths").scrollIntoView());
  await until(wide.page, () => document.querySelector("nav [aria-current]")?.hash === "#paths");
  await wide.context.close();
  const phone = await opened("contents-phone", () => {}, { width: 390 });
  assert.equal(await phone.page.locator("nav ol").isVisible(), false);
  await phone.page.locator("nav summary").click();
  await phone.page.locator("nav").getByText("What the paths did").click();
  assert.equal(await phone.page.locator("nav ol").isVisible(), false);
  await until(phone.page, () => Math.abs(document.getElementById("paths").getBoundingClientRect().top) < 100);
  await phone.context.close();
});
