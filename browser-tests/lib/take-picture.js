// The top of a report, or of the page of verdicts, as a picture: `take-picture.js SOURCE PICTURE`. With a third argument,
// the id of a figure, the picture is of this figure of the report alone.
import { mkdtempSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { marked } from "marked";
import { launch, open, until } from "./browser.js";
import { firstScreen } from "./first-screen.js";

const LARGEST = 300_000;
const LARGEST_FIGURE = 200_000;
const STYLE = `
  body { max-width: 1100px; margin: 24px auto; padding: 0 32px; font: 16px/1.5 sans-serif; color: #1f2328 }
  h1, h2 { border-bottom: 1px solid #d1d9e0; padding-bottom: 0.3em }
  table { border-collapse: collapse } th, td { border: 1px solid #d1d9e0; padding: 6px 13px }
  code { background: #eff1f3; padding: 2px 5px } img { max-width: 100% }`;

const [source, picture, figure] = process.argv.slice(2);
const browser = await launch();
const isPage = source.endsWith(".md");
const { page, wrong } = await open(browser, isPage ? rendered() : source, { width: 1280, height: 1320 });
await until(page, isPage
  ? () => [...document.images].every((image) => image.complete)
  : () => document.querySelector('figure[data-state="drawn"]'));
if (figure) await screenshot(page.locator(`figure[id="${figure}"]`));
else await page.screenshot({ path: picture });
await browser.close();
if (wrong.length > 0) throw new Error(wrong.join("\n"));
const { size } = statSync(picture);
const largest = figure ? LARGEST_FIGURE : LARGEST;
if (size > largest) throw new Error(`${picture}: ${size} bytes, at most ${largest}`);
console.log(`${picture}: ${size} bytes`);

/** The picture of one figure, which is drawn once it is in sight. */
async function screenshot(located) {
  await located.scrollIntoViewIfNeeded();
  await until(page, (id) => document.getElementById(id).dataset.state === "drawn", figure);
  await located.screenshot({ path: picture });
}

/** The page of verdicts as a file that a browser opens. */
function rendered() {
  const file = join(mkdtempSync(join(tmpdir(), "quipu-")), "page.html");
  writeFileSync(file, `<!doctype html><html data-ready><meta charset="utf-8"><style>${STYLE}</style>${marked.parse(firstScreen(source))}`);
  return file;
}
