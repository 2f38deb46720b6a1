// The browser, and what every test wants of a page.
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
/** Where reports under test and screenshots lie. */
export const OUT = process.env.QUIPU_BROWSER_OUT ?? join(ROOT, "target/browser");
export const WIDTHS = [390, 1280];
export const SCHEMES = ["light", "dark"];

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    // Not --disable-gpu: with it about one page in sixty got no frame for half a minute, without it none of 220.
    args: [
      "--no-sandbox", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ],
  });
}

/**
 * Opens a report; gives the page, and a list of all that went wrong or asked for something else than the
 * file, as one line each.
 */
export async function open(browser, file, { width = 1280, scheme = "light", height = 900, hash = "", downloads = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, acceptDownloads: downloads, reducedMotion: "reduce" });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const wrong = [];
  const address = pathToFileURL(file).href;
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) wrong.push(`console ${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const asked = request.url();
    if (asked.split("#")[0] !== address && !/^(data|blob):/.test(asked)) wrong.push(`request: ${asked}`);
  });
  await page.goto(address + hash);
  await page.waitForSelector("html[data-ready]", { state: "attached" });
  return { page, context, wrong };
}

/**
 * Draws all figures, as scrolling past them does. What clicks in a report wants them drawn: one that is drawn
 * between press and release may move what is below it, and the click is lost.
 */
export async function drawAll(page) {
  for (const figure of await page.locator("figure.card").all()) {
    const card = await figure.elementHandle();
    for (let tried = 1; ; tried++) {
      await card.evaluate((card) => card.scrollIntoView());
      const drawn = until(page, (card) => card.dataset.state !== "waiting", card, 5_000);
      if (await drawn.then(() => true, (error) => tried === 6 ? Promise.reject(error) : false)) break;
      // Without a window the browser at times gives no frame: to look elsewhere asks for one.
      await page.evaluate(() => scrollTo(0, 0));
      await page.screenshot();
    }
  }
}

/** Waits until `condition` holds in the page. Asked by a timer: frames may not come while nothing moves. */
export function until(page, condition, argument, timeout = 30_000) {
  return page.waitForFunction(condition, argument, { polling: 50, timeout });
}

/** Saves a picture of the whole page, or of one part of it, where people look at it. */
export async function picture(page, name, locator) {
  const folder = join(OUT, "screenshots");
  mkdirSync(folder, { recursive: true });
  await page.evaluate(() => scrollTo(0, 0));
  const options = { path: join(folder, `${name}.png`) };
  await (locator ? locator.screenshot(options) : page.screenshot({ ...options, fullPage: true }));
}
