// Prints the hash of what a picture shows: of a report its document, whatever commit made it; of the page of verdicts
// its first screen.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { firstScreen } from "./first-screen.js";

const source = process.argv[2];
console.log(createHash("sha256").update(source.endsWith(".md") ? firstScreen(source) : document()).digest("hex"));

function document() {
  const page = readFileSync(source, "utf8");
  const [, text] = page.match(/<script type="application\/json" id="report-data">(.*?)<\/script>/s) ?? [];
  if (text === undefined) {
    console.error(`${source}: there is no document in it`);
    process.exit(1);
  }
  const report = JSON.parse(text);
  delete report.generated_by;
  return JSON.stringify(report);
}
