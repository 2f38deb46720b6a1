// Every report that the program makes, at two widths, in both schemes. `make-reports` makes them.
import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe } from "node:test";
import { drawAll, launch, open, OUT, picture, SCHEMES, test, until, WIDTHS } from "../lib/browser.js";
import { contrast } from "../lib/color.js";
import { accessibility, chosenRows, documentOf, figures, meaningless, overflow, parseCsv, sharedIds, shownNumber } from "../lib/look.js";

const REPORTS = (process.env.QUIPU_REPORTS ?? "compare load streams series reproduce sweep damaged many").split(" ");
/** They have the figures of `compare`: what can be done with those is tried there. */
const LIKE_COMPARE = ["damaged", "many"];
/** A comparison, one load, flows over time, a reproduction and a sweep: what keys do is tried on each. */
const BY_KEY = ["compare", "load", "series", "reproduce", "sweep"];
const CARDS = { light: "#ffffff", dark: "#171a1f" };
const MEGABYTE = 1e6;

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const fileOf = (name) => join(OUT, "reports", `${name}.html`);

for (const name of REPORTS) {
  describe(`the report ${name}`, () => {
    test("is there, and small", () => {
      assert.ok(existsSync(fileOf(name)), `browser-tests/make-reports did not make ${fileOf(name)}`);
      const { size } = statSync(fileOf(name));
      assert.ok(size < 10 * MEGABYTE, `${size} bytes`);
    });

    for (const width of WIDTHS) {
      for (const scheme of SCHEMES) {
        test(`is right at ${width} pixels in ${scheme} colours`, async () => {
          const { page, context, wrong } = await open(browser, fileOf(name), { width, scheme });
          await drawAll(page);
          checkFigures(await figures(page), scheme);
          assert.deepEqual(await meaningless(page), []);
          assert.deepEqual(await sharedIds(page), []);
          assert.deepEqual(await overflow(page), { by: 0, elements: [] });
          await picture(page, `${name}-${width}-${scheme}`);
          assert.deepEqual(await accessibility(page), []);
          assert.deepEqual(wrong, []);
          await context.close();
        });
      }
    }

    if (BY_KEY.includes(name)) {
      test("is used by the keyboard alone", async () => {
        const { page, context, wrong } = await open(browser, fileOf(name));
        await drawAll(page);
        await checkStops(page);
        await checkKeys(page);
        assert.deepEqual(wrong, []);
        await context.close();
      });
    }

    if (LIKE_COMPARE.includes(name)) return;

    test("draws something else for each control", async () => {
      const { page, context, wrong } = await open(browser, fileOf(name));
      await drawAll(page);
      const report = await documentOf(page);
      for (const control of await page.locator("[data-control]").all()) {
        await checkControl(page, control, report);
      }
      assert.deepEqual(wrong, []);
      await context.close();
    });

    test("shows ratios of its tables at 1,280 pixels without scrolling sideways", async () => {
      const { page, context } = await open(browser, fileOf(name), { width: 1280 });
      const outside = await page.evaluate(() =>
        [...document.querySelectorAll("section.card .scroll")].flatMap((scroll) => {
          const end = scroll.getBoundingClientRect().right + 1;
          const ratios = [...scroll.querySelectorAll("thead th.number")].filter((it) => /^(ratio|here to the paper)/.test(it.innerText.trim()));
          return ratios.filter((it) => it.getBoundingClientRect().right > end).map((it) => `${scroll.getAttribute("aria-label")}: ${it.innerText}`);
        }),
      );
      assert.deepEqual(outside, []);
      await context.close();
    });

    test("has no rows at 390 pixels that are tall because of an address", async () => {
      const { page, context } = await open(browser, fileOf(name), { width: 390 });
      const tall = await page.evaluate(() => {
        const rows = [...document.querySelectorAll("section.card tbody tr")].filter((row) => row.querySelector(".address"));
        const lines = (row) => row.getBoundingClientRect().height / parseFloat(getComputedStyle(row).lineHeight);
        return rows.filter((row) => lines(row) > 2).map((row) => `${row.closest("section").id}: ${row.innerText}`);
      });
      assert.deepEqual(tall, []);
      await context.close();
    });

    test("sorts its tables by click and by key, up and down", async () => {
      const { page, context, wrong } = await open(browser, fileOf(name), { width: 390 });
      await drawAll(page);
      const tables = await page.locator("section.card table").all();
      assert.ok(tables.length > 0);
      for (const table of tables) await checkSorting(page, table);
      assert.deepEqual(wrong, []);
      await context.close();
    });

    test("gives pictures and data that are those of the figures", async () => {
      const { page, context, wrong } = await open(browser, fileOf(name), { saves: true });
      await drawAll(page);
      const report = await documentOf(page);
      for (const figure of report.sections.flatMap((section) => section.figures)) {
        await checkDownloads(page, report, figure);
      }
      for (const table of report.sections.flatMap((section) => section.tables)) {
        const { name, bytes } = await download(page, page.locator(`[id="${table.id}"]`), "Data (CSV)");
        assert.equal(name, `${table.id}.csv`);
        const [columns, ...rows] = parseCsv(bytes.toString("utf8"));
        assert.deepEqual(columns, table.columns.map(({ key, unit }) => (unit ? `${key} [${unit}]` : key)));
        assert.deepEqual(rows, table.rows.map((row) => row.map((cell) => (cell === null ? "" : String(cell)))));
      }
      assert.deepEqual(wrong, []);
      await context.close();
    });
  });
}

test("waterfalls have a duration beside each bar where there is room for it", async () => {
  for (const [width, isShown] of [[1280, true], [390, false]]) {
    const { page, context } = await open(browser, fileOf("compare"), { width });
    await drawAll(page);
    for (const id of ["waterfall", "waterfall-types"]) {
      const durations = await page.locator(`[id="${id}"] .role-mark.mark-text text`).allTextContents();
      assert.equal(durations.length > 10, isShown, `${id} at ${width}: ${durations}`);
      assert.ok(durations.every((text) => /^[\d.]+ m?s$/.test(text)), `${id}: ${durations}`);
    }
    await context.close();
  }
});

test("a mark that is hidden is found, whichever it is", async () => {
  const { page, context } = await open(browser, fileOf("compare"));
  await drawAll(page);
  const card = page.locator("figure.card").first();
  const id = await card.getAttribute("id");
  const marks = card.locator(".role-mark path, .role-mark line");
  const check = async () => checkFigures((await figures(page)).filter((figure) => figure.id === id), "light");
  for (const mark of [marks.first(), marks.last()]) {
    const before = (await mark.getAttribute("style")) ?? "";
    const setStyle = (style) => mark.evaluate((node, text) => node.setAttribute("style", text), style);
    for (const style of ["opacity: 0", "fill: none; stroke: none", "transform: scale(0)"]) {
      await setStyle(`${before}; ${style}`);
      await assert.rejects(check, /cannot be seen/, style);
    }
    await setStyle(before);
  }
  await check();
  await context.close();
});

function checkFigures(drawn, scheme) {
  assert.ok(drawn.length > 0, "there is no figure");
  for (const figure of drawn) {
    const said = `figure ${figure.id}`;
    assert.equal(figure.state, "drawn", said);
    assert.equal(figure.role, "img", said);
    assert.ok(figure.alt.length >= 20, `${said}: “${figure.alt}” does not say what is seen`);
    assert.ok(figure.marks > 0, `${said} is empty`);
    assert.deepEqual(figure.invisible.filter((mark) => !isShortRange(figure.id, mark)), [], `${said}: marks that cannot be seen`);
    assert.deepEqual(figure.outside, [], said);
    assert.ok(figure.texts.length > 0, `${said} has no labels`);
    for (const [text, fill] of figure.texts) {
      assert.ok(contrast(fill, CARDS[scheme]) >= 4.5, `${said}: “${text}” is ${fill}`);
    }
  }
}

/**
 * The only marks that need not be seen: the line from the least to the greatest of values that lie within one
 * pixel, where the box, tick or point of the same row shows where they are.
 */
function isShortRange(figure, mark) {
  // Figures about ratios have a band below it.
  const layer = /(-bound-boxes|-ratio-boxes|^ratio-intervals|^verdict-ratios)$/.test(figure) ? "layer_1_marks" : "layer_0_marks";
  const isRange = /(-boxes|^ratio-intervals|^verdict-ratios)$/.test(figure) && mark.name.split(" ").includes(layer);
  return isRange && mark.isPainted && mark.size < 1 && mark.besideSeen;
}

/** Whether the data of a figure differ between the options of a control, all others left as they are. */
function isToChange(report, id, control) {
  const figure = report.sections.flatMap((section) => section.figures).find((figure) => figure.id === id);
  const choice = Object.fromEntries(figure.controls.map((other) => [other.id, other.default]));
  const { options } = figure.controls.find((other) => other.id === control);
  const dataOf = ({ value }) => JSON.stringify(figure.datasets.map((name) => {
    const at = report.datasets[name].columns.indexOf(control);
    return chosenRows(report, name, { ...choice, [control]: value }).map((row) => row.filter((_, index) => index !== at));
  }));
  return new Set(options.map(dataOf)).size > 1;
}

async function checkControl(page, control, report) {
  const id = await control.evaluate((node) => node.closest("figure").id);
  await control.scrollIntoViewIfNeeded();
  await until(page, (figure) => document.getElementById(figure).dataset.state !== "waiting", id);
  const chart = page.locator(`[id="${id}"] .chart`);
  const first = await chart.innerHTML();
  const label = await chart.getAttribute("aria-label");
  const select = control.locator("select");
  let changed = false;
  if (await select.count()) {
    const values = await select.locator("option").evaluateAll((options) => options.map((option) => option.value));
    const at = await select.inputValue();
    for (const value of values.filter((value) => value !== at)) {
      await select.selectOption(value);
      changed ||= (await chart.innerHTML()) !== first;
    }
    if (values.length === 1) changed = true;
    else assert.notEqual(await chart.getAttribute("aria-label"), label);
    await select.selectOption(at);
  } else {
    const inputs = await control.locator("input").all();
    const at = await control.locator("input:checked").getAttribute("value");
    for (const input of inputs) {
      await input.check();
      changed ||= (await chart.innerHTML()) !== first;
    }
    if (inputs.length === 1) changed = true;
    else if (at !== (await inputs.at(-1).getAttribute("value"))) assert.notEqual(await chart.getAttribute("aria-label"), label);
    for (const input of inputs) if ((await input.getAttribute("value")) === at) await input.check();
  }
  const to = isToChange(report, id, await control.getAttribute("data-control"));
  assert.ok(changed || !to, `figure ${id}: ${await control.getAttribute("data-control")} changes nothing`);
  assert.notEqual(await page.locator(`[id="${id}"]`).getAttribute("data-state"), "failed");
}

/** Tab reaches every control, drawing with keys and table of the page, in the order of the document, and each shows it. */
async function checkStops(page) {
  await page.evaluate(() => scrollTo(0, 0));
  // The contents open where the reader is.
  await until(page, () => document.querySelector("nav .of-part").hasAttribute("aria-current"));
  const expected = await page.evaluate(() => {
    const all = [...document.querySelectorAll("a[href], button, select, input, summary, [tabindex='0']")];
    const wanted = all.filter((node) => node.checkVisibility({ visibilityProperty: true }) && !node.disabled && !(node.type === "radio" && !node.checked));
    wanted.forEach((node, at) => (node.dataset.stop = at));
    return wanted.map((node) => node.getAttribute("aria-label") ?? node.textContent.slice(0, 40));
  });
  for (const [at, name] of expected.entries()) {
    await page.keyboard.press("Tab");
    const { stop, outlined } = await page.evaluate(() => {
      const node = document.activeElement;
      const shown = node.matches("input[type=radio]") ? node.nextElementSibling : node;
      const { outlineStyle, outlineWidth } = getComputedStyle(shown);
      return { stop: Number(node.dataset.stop), outlined: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 };
    });
    assert.equal(stop, at, `Tab does not lead to “${name}” after “${expected[at - 1]}”`);
    assert.ok(outlined, `the focus is not seen on “${name}”`);
  }
}

/** Every kind of control does by key what it is for. */
async function checkKeys(page) {
  const press = async (locator, key) => {
    await locator.focus();
    await page.keyboard.press(key);
  };
  for (const select of await page.locator("figure select").all()) {
    const before = await select.inputValue();
    await press(select, "ArrowDown");
    assert.notEqual(await select.inputValue(), before);
  }
  for (const radio of await page.locator("figure .segments").all()) {
    const chosen = () => radio.locator("input:checked").getAttribute("value");
    const before = await chosen();
    await press(radio.locator("input:checked"), "ArrowRight");
    assert.notEqual(await chosen(), before);
  }
  for (const entry of await page.locator("button.entry").all()) {
    if (!(await entry.isVisible())) continue;
    await press(entry, "Enter");
    assert.equal(await entry.getAttribute("aria-pressed"), "false");
    await press(entry, "Space");
    assert.equal(await entry.getAttribute("aria-pressed"), "true");
  }
  for (const toggle of await page.locator("button[aria-expanded]").all()) {
    await press(toggle, "Enter");
    assert.equal(await toggle.getAttribute("aria-expanded"), "true");
    await press(toggle, "Enter");
  }
  for (const menu of await page.locator(".menu").all()) {
    await press(menu.locator("summary"), "Enter");
    assert.equal(await menu.getAttribute("open"), "");
    await page.keyboard.press("Escape");
  }
  for (const drawing of await page.locator(".chart[tabindex]").all()) {
    const card = drawing.locator("xpath=ancestor::figure");
    const shown = () => card.locator(".zoom-shown").innerText();
    await press(drawing, "+");
    assert.match(await shown(), / to /);
    await press(drawing, "ArrowLeft");
    await press(drawing, "0");
    assert.equal(await shown(), "");
  }
}

async function checkSorting(page, table) {
  const headings = await table.locator("thead th").all();
  for (const [at, heading] of headings.entries()) {
    const numeric = (await heading.getAttribute("class")) === "number";
    const cells = () => table.locator(`tbody tr > :nth-child(${at + 1})`).allInnerTexts();
    await sorts(heading, "ascending", () => heading.locator("button").click());
    checkOrder(await cells(), numeric, 1);
    await sorts(heading, "descending", async () => {
      await heading.locator("button").focus();
      await page.keyboard.press("Enter");
    });
    checkOrder(await cells(), numeric, -1);
    assert.equal(await table.locator("[aria-sort]").count(), 1);
  }
}

/** Presses until the heading sorts that way: on a busy machine the browser loses a press now and then. */
async function sorts(heading, direction, press) {
  const sorted = async () => (await heading.getAttribute("aria-sort")) === direction;
  for (let tries = 0; tries < 3; tries += 1) {
    await press();
    for (let waits = 0; waits < 20; waits += 1) {
      if (await sorted()) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  assert.fail(`pressed three times, the heading ${await heading.innerText()} does not sort ${direction}`);
}

function checkOrder(texts, numeric, direction) {
  const order = new Intl.Collator("en", { numeric: true });
  const missing = texts.findIndex((text) => text === "–");
  const shown = missing === -1 ? texts : texts.slice(0, missing);
  if (missing !== -1) assert.ok(texts.slice(missing).every((text) => text === "–"), "missing values come last");
  for (let at = 1; at < shown.length; at += 1) {
    const [a, b] = [shown[at - 1], shown[at]];
    const step = numeric ? shownNumber(b) - shownNumber(a) : order.compare(b, a);
    assert.ok(step * direction >= 0, `${a} stands before ${b}`);
  }
}

/** What the page hands to the browser to be saved: its name and its bytes, by the menu's entry of that name. */
async function download(page, card, entry) {
  await card.locator(".menu summary").click();
  await card.getByRole("button", { name: entry, exact: true }).click();
  await page.waitForFunction(() => globalThis.saved.length > 0, undefined, { polling: 20 });
  const { name, text } = await page.evaluate(() => {
    const { name, content } = globalThis.saved.shift();
    return content.then((text) => ({ name, text }));
  });
  return { name, bytes: Buffer.from(text) };
}

async function checkDownloads(page, report, figure) {
  const card = page.locator(`[id="${figure.id}"]`);
  const several = figure.datasets.length > 1;
  const choice = Object.fromEntries((figure.controls ?? []).map((control) => [control.id, control.default]));

  const svg = await download(page, card, "Picture (SVG)");
  assert.equal(svg.name, `${figure.id}.svg`);
  const seen = await page.evaluate((text) => {
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
    return { error: parsed.querySelector("parsererror")?.textContent, root: parsed.documentElement.nodeName, marks: parsed.querySelectorAll(".role-mark path, .role-mark line, .role-mark text").length, title: parsed.documentElement.textContent };
  }, svg.bytes.toString("utf8"));
  assert.equal(seen.error, undefined);
  assert.equal(seen.root, "svg");
  assert.ok(seen.marks > 0, `${figure.id}: the picture is empty`);

  for (const dataset of figure.datasets) {
    const { bytes } = await download(page, card, several ? `Data: ${dataset} (CSV)` : "Data (CSV)");
    const [columns, ...rows] = parseCsv(bytes.toString("utf8"));
    assert.deepEqual(columns, report.datasets[dataset].columns);
    assert.deepEqual(rows, chosenRows(report, dataset, choice).map((row) => row.map((cell) => (cell === null ? "" : String(cell)))));
  }

  const spec = JSON.parse((await download(page, card, "Vega-Lite with data")).bytes.toString("utf8"));
  for (const dataset of figure.datasets) {
    assert.equal(spec.datasets[dataset].length, chosenRows(report, dataset, choice).length);
  }
  const compiled = await page.evaluate((given) => Object.keys(globalThis.vegaLite.compile({ ...given, width: 400 }).spec), spec);
  assert.ok(compiled.includes("marks"));
}
