// A browser that stalls fails no test by that alone.
import assert from "node:assert/strict";
import { after } from "node:test";
import { test } from "../lib/browser.js";

let tried = 0;

test("a test whose page gives no frame is tried again", () => {
  tried += 1;
  if (tried < 3) throw Object.assign(new Error("no frame"), { name: "TimeoutError" });
});

after(() => assert.equal(tried, 3));
