// Prints the hash of what a report says: its document, whatever commit made it.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const page = readFileSync(process.argv[2], "utf8");
const [, text] = page.match(/<script type="application\/json" id="report-data">(.*?)<\/script>/s) ?? [];
if (text === undefined) {
  console.error(`${process.argv[2]}: there is no document in it`);
  process.exit(1);
}
const report = JSON.parse(text);
delete report.generated_by;
console.log(createHash("sha256").update(JSON.stringify(report)).digest("hex"));
