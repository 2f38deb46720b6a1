// Numbers and elements as people read them.

const NONE = "–";

/** A number with `digits` after the point (as many as it needs if left out), thousands apart. */
function formatNumber(value, digits) {
  const options =
    digits === undefined
      ? { maximumSignificantDigits: 6 }
      : { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return value.toLocaleString("en-US", options).replaceAll("-", "−");
}

/** A text as it is, or with six digits that mean something if it is a number with more. */
function shortNumber(text) {
  return /^[−-]?\d+\.\d{4,}$/.test(text) ? formatNumber(Number(text.replace("−", "-"))) : text;
}

/** Bytes in decimal units, three significant digits. */
function formatBytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let scaled = value;
  let unit = 0;
  while (Math.abs(scaled) >= 999.5 && unit < units.length - 1) {
    scaled /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || Math.abs(scaled) >= 99.95 ? 0 : Math.abs(scaled) >= 9.995 ? 1 : 2;
  return `${formatNumber(scaled, digits)} ${units[unit]}`;
}

/** What a cell of a table shows. */
function formatCell(value, column) {
  if (value === null || value === undefined || value === "") return NONE;
  if (typeof value !== "number") return String(value);
  return column.unit === "bytes" ? formatBytes(value) : formatNumber(value, column.digits);
}

/** How a unit is written in a heading; bytes stand beside each number. */
function formatUnit(unit) {
  return { x: "×", bytes: "", "": "" }[unit ?? ""] ?? unit;
}

/** An element with attributes (`on…` are listeners, `text` is its text) and children. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false || value === null) continue;
    if (key === "text") made.textContent = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A small drawing of 16 by 16; `path` is what an SVG path has as `d`. */
function icon(path) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" })) {
    svg.setAttribute(key, value);
  }
  const drawn = document.createElementNS(space, "path");
  drawn.setAttribute("d", path);
  svg.append(drawn);
  return svg;
}

/** A sentence whose measured numbers (those with a unit) stand out. */
function emphasised(sentence) {
  const measured = /[−+-]?\d[\d,]*(?:\.\d+)?(?:\s?(?:ms|s|%(?! interval)|×|kB|MB|Mbit\/s)(?![\p{L}\d])| times(?![\p{L}\d]))/gu;
  const parts = [];
  let end = 0;
  for (const match of sentence.matchAll(measured)) {
    parts.push(sentence.slice(end, match.index), element("strong", { text: match[0] }));
    end = match.index + match[0].length;
  }
  parts.push(sentence.slice(end));
  return parts;
}
