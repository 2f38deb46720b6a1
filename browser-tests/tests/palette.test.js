// The colours of figures hold what scheme.js says of them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { contrast, difference, SIGHTS } from "../lib/color.js";

const source = readFileSync(new URL("../../crates/quipu-report/assets/scripts/scheme.js", import.meta.url), "utf8");
const palettes = new Function(`${source.slice(source.indexOf("const PALETTES"), source.indexOf("/** What Vega-Lite takes"))}; return PALETTES;`)();

for (const [scheme, colours] of Object.entries(palettes)) {
  test(`colours stand out from a ${scheme} card`, () => {
    for (const colour of colours.category) {
      assert.ok(contrast(colour, colours.card) >= 3, `${colour}: ${contrast(colour, colours.card)}`);
    }
    for (const colour of [colours.text, colours.muted]) assert.ok(contrast(colour, colours.card) >= 4.5, colour);
  });

  test(`colours of a ${scheme} figure differ for every kind of sight`, () => {
    for (const sight of Object.keys(SIGHTS)) {
      colours.category.forEach((one, at) => {
        for (const other of colours.category.slice(at + 1)) {
          const seen = difference(one, other, sight);
          assert.ok(seen >= 8, `${sight}: ${one} and ${other} differ by ${seen.toFixed(1)}`);
        }
      });
    }
  });

  test(`numbers are readable on the cells of a ${scheme} heat map`, () => {
    for (const colour of [...colours.diverging, ...colours.sequential]) {
      assert.ok(contrast(colours.text, colour) >= 4.5, `${colour}: ${contrast(colours.text, colour)}`);
    }
  });
}
