// What can be seen of a page, and of the figures on it. All of it is read from what the browser laid out.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Violations of the rules of accessibility, a line each. */
export async function accessibility(page) {
  await page.evaluate(axeSource);
  return page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
      resultTypes: ["violations"],
    });
    return violations.flatMap(({ id, nodes }) => nodes.slice(0, 3).map((node) => `${id}: ${node.target} ${node.failureSummary.split("\n")[1]?.trim()}`));
  });
}

/**
 * Of each figure: its state, its words, how many marks can be seen, which cannot, and what lies outside of its
 * drawing. A mark that cannot be seen has its name, whether it has a colour, its size in pixels, and whether one
 * in the same row can be seen.
 */
export function figures(page) {
  return page.evaluate(() => {
    const tolerance = 1.5;
    const outside = (inner, outer) =>
      inner.left < outer.left - tolerance || inner.right > outer.right + tolerance ||
      inner.top < outer.top - tolerance || inner.bottom > outer.bottom + tolerance;
    return [...document.querySelectorAll("figure.card")].map((card) => {
      const chart = card.querySelector(".chart");
      const svg = chart.querySelector("svg");
      const result = {
        id: card.id, state: card.dataset.state, alt: chart.getAttribute("aria-label") ?? "", role: chart.getAttribute("role"),
        title: card.querySelector("h3").textContent, marks: 0, invisible: [], outside: [], texts: [],
      };
      if (!svg) return result;
      const frame = svg.getBoundingClientRect();
      const box = chart.getBoundingClientRect();
      if (outside(frame, { left: box.left, right: box.right, top: -Infinity, bottom: Infinity })) result.outside.push("the drawing");
      const seen = [];
      for (const mark of svg.querySelectorAll(".role-mark path, .role-mark line, .role-mark text")) {
        const place = mark.getBoundingClientRect();
        const { fill, stroke, opacity } = getComputedStyle(mark);
        const painted = (colour) => colour !== "none" && colour !== "rgba(0, 0, 0, 0)";
        const [isPainted, size] = [(painted(fill) || painted(stroke)) && Number(opacity) > 0, Math.max(place.width, place.height)];
        const middle = (place.top + place.bottom) / 2;
        const name = mark.parentElement.getAttribute("class");
        if (isPainted && size >= 1) seen.push(middle);
        else result.invisible.push({ name, isPainted, size, middle });
        if (!mark.closest("[clip-path]") && outside(place, frame)) result.outside.push(`a mark of ${name}`);
      }
      result.marks = seen.length;
      for (const mark of result.invisible) {
        mark.besideSeen = seen.some((middle) => Math.abs(middle - mark.middle) <= tolerance);
        delete mark.middle;
      }
      for (const text of svg.querySelectorAll("text")) {
        if (text.textContent.trim() === "" || Number(getComputedStyle(text).opacity) === 0) continue;
        if (outside(text.getBoundingClientRect(), frame)) result.outside.push(`“${text.textContent}”`);
        if (!text.closest(".role-mark")) result.texts.push([text.textContent, getComputedStyle(text).fill]);
      }
      return result;
    });
  });
}

/** How far the page is wider than the window, and what sticks out of it. */
export function overflow(page) {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    const inScroll = (node) => node.closest(".scroll, .unseen, .skip, svg") !== null;
    const out = [...document.body.querySelectorAll("*")].filter((node) => !inScroll(node) && node.getBoundingClientRect().right > width + 1);
    return { by: document.documentElement.scrollWidth - width, elements: out.slice(0, 5).map((node) => `${node.tagName}.${node.className}`) };
  });
}

/** Names that more than one element has. */
export function sharedIds(page) {
  return page.evaluate(() => {
    const ids = [...document.querySelectorAll("body [id]:not(svg [id])")].map((node) => node.id);
    return ids.filter((id, at) => ids.indexOf(id) !== at);
  });
}

/** The document that the page was made from. */
export function documentOf(page) {
  return page.evaluate(() => JSON.parse(document.getElementById("report-data").textContent));
}

/** The rows of a dataset that a choice leaves, as arrays. */
export function chosenRows(report, name, choice) {
  const { columns, levels = {}, rows } = report.datasets[name];
  const text = (cell, at) => levels[columns[at]]?.[cell] ?? cell ?? null;
  return rows
    .map((row) => columns.map((_, at) => text(row[at], at)))
    .filter((row) => columns.every((column, at) => choice[column] === undefined || String(row[at]) === choice[column]));
}

/** CSV as rows of texts (RFC 4180). */
export function parseCsv(text) {
  const rows = [[]];
  let field = "";
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (quoted) {
      if (letter !== '"') field += letter;
      else if (text[at + 1] === '"') (field += '"'), (at += 1);
      else quoted = false;
    } else if (letter === '"') quoted = true;
    else if (letter === ",") rows.at(-1).push(field), (field = "");
    else if (letter === "\n") rows.at(-1).push(field), (field = ""), rows.push([]);
    else field += letter;
  }
  return rows.slice(0, -1);
}

/** The number that a cell of a table shows, without its unit; NaN if it shows none. */
export function shownNumber(text) {
  const scale = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };
  const [, number, unit] = text.replaceAll("−", "-").replaceAll(",", "").match(/^(-?[\d.]+)(?:\s([kMGT]?B))?$/) ?? [];
  return number === undefined ? NaN : Number(number) * (scale[unit] ?? 1);
}

/** Words in drawings that no reader should see: what became of a value that is missing. */
export function meaningless(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll("figure.card svg text")]
      .filter((label) => ["undefined", "null", "NaN", "[object Object]"].includes(label.textContent.trim()))
      .map((label) => `${label.closest("figure").id}: ${label.textContent}`),
  );
}
