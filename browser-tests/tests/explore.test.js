// Zoom, whole names and legends of real reports.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before } from "node:test";
import { drawAll, launch, open, OUT, test } from "../lib/browser.js";
import { accessibility, figures, overflow } from "../lib/look.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const opened = async (name, options) => {
  const made = await open(browser, join(OUT, "reports", `${name}.html`), options);
  await drawAll(made.page);
  return made;
};

/** What the labels along the horizontal axis of a drawing say, in milliseconds, from the left. */
async function ticks(card) {
  const texts = await card.locator(".chart svg .role-axis-label text").allTextContents();
  const times = texts.map((text) => text.match(/^([\d.]+)(?: (ms|s))?$/)).filter(Boolean);
  return times.map(([, number, unit]) => Number(number) * (unit === "s" ? 1000 : 1));
}

test("a waterfall is zoomed by buttons, keys, wheel and drag, and reset", async () => {
  const { page, context, wrong } = await opened("load");
  const card = page.locator("#waterfall");
  const drawing = card.locator(".chart");
  await drawing.scrollIntoViewIfNeeded();
  const shown = () => card.locator(".zoom-shown").innerText();
  const all = await ticks(card);
  assert.equal(await shown(), "");

  const zoomIn = card.getByRole("button", { name: "Zoom in" });
  await zoomIn.click();
  const half = await ticks(card);
  assert.ok(half[0] > all[0] && half.at(-1) < all.at(-1), `${half} of ${all}`);
  await card.getByRole("button", { name: "Later" }).click();
  assert.ok((await ticks(card)).at(-1) > half.at(-1));
  await card.getByRole("button", { name: "Reset zoom" }).click();
  assert.deepEqual(await ticks(card), all);

  // However far it goes, ticks differ and rise.
  for (let step = 0; step < 12; step += 1) await zoomIn.click();
  const close = await ticks(card);
  assert.ok(close.length >= 2 && close.every((time, at) => at === 0 || time > close[at - 1]), String(close));
  assert.ok(close.at(-1) - close[0] < 2, String(close));
  await drawing.focus();
  await page.keyboard.press("0");
  assert.equal(await shown(), "");

  const box = await drawing.boundingBox();
  const y = Math.max(box.y + 80, 20);
  await page.mouse.move(box.x + box.width * 0.5, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, y + 5, { steps: 4 });
  assert.ok(await card.locator(".brush").isVisible());
  await page.mouse.up();
  const dragged = await ticks(card);
  assert.ok(dragged[0] > all[0] && dragged.at(-1) < all.at(-1), `${dragged} of ${all}`);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, 300);
  await page.keyboard.up("Control");
  await page.waitForFunction((before) => document.querySelector("#waterfall .zoom-shown").textContent !== before, await shown(), { polling: 50, timeout: 5_000 }).catch(() => {});
  const wider = await ticks(card);
  assert.ok(wider.at(-1) - wider[0] >= dragged.at(-1) - dragged[0], `${wider} after ${dragged}`);
  assert.deepEqual((await figures(page)).find(({ id }) => id === "waterfall").outside, []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("each row of a waterfall has a name that is seen", async () => {
  for (const width of [1280, 390]) {
    const { page, context, wrong } = await opened("load", { width });
    for (const id of ["waterfall", "waterfall-types"]) {
      const labels = page.locator(`#${id} .chart svg .role-axis-label text`);
      // Labels that would run into others are there, but transparent.
      const seen = await labels.evaluateAll((all) =>
        all.filter((label) => Number(getComputedStyle(label).opacity) > 0 && label.getAttribute("opacity") !== "0").map((label) => label.textContent));
      const rows = seen.filter((text) => /^\d{3} (?!ms$)/.test(text)).map((text) => Number(text.slice(0, 3)));
      assert.deepEqual(rows, rows.map((_, at) => at + 1), `${id} at ${width}`);
      assert.ok(rows.length >= 20, `${id} at ${width}: ${rows}`);
    }
    assert.deepEqual(wrong, []);
    await context.close();
  }
});

test("whole names are on the axis on demand, and each row is read by pointer, tap and key", async () => {
  for (const width of [1280, 390]) {
    const { page, context, wrong } = await opened("load", { width });
    const card = page.locator("#waterfall");
    const drawing = card.locator(".chart");
    const note = () => card.locator(".row-note").innerText();
    const labels = () => card.locator(".chart svg .role-axis-label text").allTextContents();
    const short = await labels();
    await drawing.focus();
    await page.keyboard.press("ArrowDown");
    assert.match(await note(), /^001 https:\/\//);
    assert.match(await note(), /complete, ms: [\d.,]+/);
    await page.keyboard.press("ArrowDown");
    assert.match(await note(), /^002 https:\/\//);
    assert.ok(await card.locator(".row-mark").isVisible());
    // On its label, which only the axis has.
    const label = card.locator(".chart svg .role-axis-label text", { hasText: /^005/ });
    await label.scrollIntoViewIfNeeded();
    const { x, y, height } = await label.boundingBox();
    await page.mouse.click(x + 3, y + height / 2);
    assert.match(await note(), /^005 https:\/\//);

    const toggle = card.getByRole("button", { name: "Whole names" });
    await toggle.focus();
    await page.keyboard.press("Enter");
    assert.equal(await toggle.getAttribute("aria-pressed"), "true");
    const urls = (await labels()).filter((text) => text.includes("https://"));
    assert.ok(urls.length >= 10, String(urls.length));
    assert.ok(urls.every((text) => !text.endsWith("…")), "names are whole");
    assert.deepEqual(await overflow(page), { by: 0, elements: [] });
    assert.deepEqual(await accessibility(page), []);
    await toggle.click();
    assert.deepEqual(await labels(), short);
    assert.deepEqual(wrong, []);
    await context.close();
  }
});

test("objects are in order of requests or of priorities, whatever they are coloured by", async () => {
  const { page, context } = await opened("load");
  for (const id of ["waterfall", "waterfall-types"]) {
    const card = page.locator(`#${id}`);
    const labels = () => card.locator(".chart svg .role-axis-label text").allTextContents();
    const before = await labels();
    await card.getByRole("radio", { name: "recorded priority" }).check();
    assert.notDeepEqual(await labels(), before, id);
  }
  await context.close();
});

test("a legend hides series and shows them again, with the colours that they had", async () => {
  const { page, context, wrong } = await opened("compare");
  const card = page.locator("#page-time-curves");
  const strokes = () => card.locator(".chart svg .role-mark path").evaluateAll((lines) => lines.map((line) => getComputedStyle(line).stroke));
  const before = await strokes();
  const [first, second] = await card.locator("button.entry").all();
  await first.click();
  assert.equal(await first.getAttribute("aria-pressed"), "false");
  assert.deepEqual(await strokes(), before.slice(1));
  await card.getByRole("button", { name: /^Show as table/ }).click();
  const name = (await first.innerText()).trim();
  assert.ok((await card.locator("tbody").allInnerTexts()).every((text) => !text.includes(name)), "the table has what is shown");
  await second.focus();
  await page.keyboard.press("Space");
  assert.deepEqual(await strokes(), before.slice(2));
  assert.deepEqual(await accessibility(page), []);
  await card.getByRole("button", { name: "Show all" }).click();
  assert.deepEqual(await strokes(), before);
  assert.equal(await card.locator('[aria-pressed="false"]').count(), 0);
  for (const entry of await card.locator("button.entry").all()) await entry.click();
  assert.equal(await card.locator(".figure-note").innerText(), "All series are hidden.");
  assert.deepEqual(wrong, []);
  await context.close();
});
