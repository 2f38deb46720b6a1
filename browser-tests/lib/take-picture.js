// The top of a report as a picture: `take-picture.js REPORT PICTURE`.
import { statSync } from "node:fs";
import { launch, open, until } from "./browser.js";

const LARGEST = 300_000;

const [report, picture] = process.argv.slice(2);
const browser = await launch();
const { page, wrong } = await open(browser, report, { width: 1280, height: 1320 });
await until(page, () => document.querySelector('figure[data-state="drawn"]'));
await page.screenshot({ path: picture });
await browser.close();
if (wrong.length > 0) throw new Error(wrong.join("\n"));
const { size } = statSync(picture);
if (size > LARGEST) throw new Error(`${picture}: ${size} bytes, at most ${LARGEST}`);
console.log(`${picture}: ${size} bytes`);
