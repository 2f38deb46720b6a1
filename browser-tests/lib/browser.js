// The browser, and what every test wants of a page.
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { test as registered } from "node:test";
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
    args: [
      "--no-sandbox", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ],
  });
}

/** What is open, so that a test that is tried again begins with nothing. */
const contexts = new Set();

/** How often a test is tried if the browser stalls. */
const TRIES = 4;

/**
 * A test with pages. Without a window the browser at times gives no frame to a page any more, about once in fifty
 * pages on some machines: then whatever waits for one runs out of time, and the test is tried again with new pages.
 * What is wrong on a page fails it at once.
 */
export function test(name, body) {
  registered(name, async (context) => {
    for (let tried = 1; ; tried++) {
      try {
        return await body(context);
      } catch (error) {
        if (error.name !== "TimeoutError" || tried === TRIES) throw error;
        context.diagnostic(`tried again: ${error.message.split("\n")[0]}`);
        await Promise.all([...contexts].map(closed));
      }
    }
  });
}

/** Closes what may not answer any more. */
async function closed(context) {
  const late = new Promise((resolve) => setTimeout(resolve, 5_000));
  await Promise.race([context.close().catch(() => {}), late]);
  contexts.delete(context);
}

/**
 * In the page: keeps what would be saved as a file, in `saved`. The browser's own saving is left out, since without a
 * window it at times begins no download for as long as it runs.
 */
function keepSaved() {
  globalThis.saved = [];
  const blobs = new Map();
  const { createObjectURL } = URL;
  URL.createObjectURL = (blob) => {
    const address = createObjectURL.call(URL, blob);
    blobs.set(address, blob);
    return address;
  };
  const { click } = HTMLAnchorElement.prototype;
  HTMLAnchorElement.prototype.click = function () {
    if (!this.download) return click.call(this);
    globalThis.saved.push({ name: this.download, content: blobs.get(this.href).text() });
  };
}

/**
 * Opens a report; gives the page, and a list of all that went wrong or asked for something else than the
 * file, as one line each.
 */
export async function open(browser, file, { width = 1280, scheme = "light", height = 900, hash = "", saves = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: "reduce" });
  context.setDefaultTimeout(20_000);
  contexts.add(context);
  context.on("close", () => contexts.delete(context));
  if (saves) await context.addInitScript(keepSaved);
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
    await card.evaluate((card) => card.scrollIntoView());
    await until(page, (card) => card.dataset.state !== "waiting", card);
  }
}

/** Waits until `condition` holds in the page. Asked by a timer: frames may not come while nothing moves. */
export function until(page, condition, argument) {
  return page.waitForFunction(condition, argument, { polling: 50 });
}

/** Waits until nothing on the page has changed for a while: what is numbered before must not be drawn again. */
export async function settled(page) {
  await page.evaluate(() => {
    globalThis.changedAt = performance.now();
    const watch = new MutationObserver(() => (globalThis.changedAt = performance.now()));
    watch.observe(document.body, { subtree: true, childList: true, attributes: true });
  });
  await until(page, () => performance.now() - globalThis.changedAt > 300);
}

/** Saves a picture of the whole page, or of one part of it, where people look at it. */
export async function picture(page, name, locator) {
  const folder = join(OUT, "screenshots");
  mkdirSync(folder, { recursive: true });
  await page.evaluate(() => scrollTo(0, 0));
  const options = { path: join(folder, `${name}.png`) };
  await (locator ? locator.screenshot(options) : page.screenshot({ ...options, fullPage: true }));
}
