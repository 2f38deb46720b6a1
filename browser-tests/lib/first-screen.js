// The first screen of the page of verdicts: everything before the claims of its first figure.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Its text as Markdown, with pictures in it. */
export function firstScreen(file) {
  const text = readFileSync(file, "utf8");
  const end = text.indexOf("\n| claim |");
  if (end === -1) throw new Error(`${file}: there is no figure in it`);
  return text.slice(0, end).replace(/!\[(.*?)\]\((.*?\.svg)\)/g, (_, name, picture) => {
    const svg = readFileSync(join(dirname(file), picture));
    return `![${name}](data:image/svg+xml;base64,${svg.toString("base64")})`;
  });
}
