// Colour arithmetic: contrast, and what readers with one kind of cone less see.

/** Red, green and blue from 0 to 1 of `#rrggbb`, `rgb(…)` or `rgba(…)`; the fourth is opacity. */
export function parse(text) {
  if (text.startsWith("#")) return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16) / 255).concat(1);
  const [red, green, blue, opacity = 1] = text.match(/[\d.]+/g).map(Number);
  return [red / 255, green / 255, blue / 255, opacity];
}

const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);

/** Relative luminance of WCAG 2. */
export function luminance(text) {
  const [red, green, blue] = parse(text).map(linear);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Contrast of WCAG 2, from 1 to 21. */
export function contrast(a, b) {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

/** What is seen, on linear red, green and blue (Machado, Oliveira and Fernandes 2009, severity 1). */
export const SIGHTS = {
  "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

function oklab([red, green, blue]) {
  const long = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue);
  const middle = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue);
  const short = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue);
  return [
    0.2104542553 * long + 0.793617785 * middle - 0.0040720468 * short,
    1.9779984951 * long - 2.428592205 * middle + 0.4505937099 * short,
    0.0259040371 * long + 0.7827717662 * middle - 0.808675766 * short,
  ];
}

/** Distance of two colours in OKLab, times 100, as somebody with `sight` sees them. */
export function difference(a, b, sight) {
  const seen = [a, b].map((text) => {
    const colour = parse(text).slice(0, 3).map(linear);
    return oklab(SIGHTS[sight].map((row) => Math.min(1, Math.max(0, row.reduce((sum, part, at) => sum + part * colour[at], 0)))));
  });
  return 100 * Math.hypot(...seen[0].map((part, at) => part - seen[1][at]));
}
