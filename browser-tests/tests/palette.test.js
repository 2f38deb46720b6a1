// The colours of figures hold what scheme.js says of them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { contrast, difference, parse, SIGHTS } from "../lib/color.js";

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

  test(`colours of verdicts on a ${scheme} card stand out, differ and mean what they say`, () => {
    const judged = [...new Set(Object.values(colours.meaning))];
    for (const colour of judged) assert.ok(contrast(colour, colours.card) >= 3, `${colour}: ${contrast(colour, colours.card)}`);
    for (const sight of Object.keys(SIGHTS)) {
      judged.forEach((one, at) => {
        for (const other of judged.slice(at + 1)) {
          assert.ok(difference(one, other, sight) >= 8, `${sight}: ${one} and ${other} differ by ${difference(one, other, sight).toFixed(1)}`);
        }
      });
    }
    for (const [word, colour] of Object.entries(colours.meaning)) {
      const [red, green, blue] = parse(colour);
      const isGreen = green > red && green > blue;
      if (word === "holds" || word === "reproduced") assert.ok(isGreen, `${word}: ${colour}`);
      if (word === "fails" || word === "not reproduced") assert.ok(red > 2 * green && red > 2 * blue, `${word}: ${colour}`);
      if (word === "unclear") assert.ok(Math.max(red, green, blue) - Math.min(red, green, blue) < 0.1, `${word}: ${colour}`);
    }
  });

  test(`numbers are readable on the cells of a ${scheme} heat map`, () => {
    for (const colour of [...colours.diverging, ...colours.sequential]) {
      assert.ok(contrast(colours.text, colour) >= 4.5, `${colour}: ${contrast(colours.text, colour)}`);
    }
  });
}
