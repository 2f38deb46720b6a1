// Light and dark: the colours of figures, and the switch between the two.

// After Okabe and Ito, with lightness moved so that each colour has a contrast of at least 3 against the
// card that it stands on, and any two differ for readers who see no red, no green or no blue
// (browser-tests/tests/palette.test.js computes both). Numbers stand on the cells of heat maps: there every
// colour has a contrast of at least 4.5 to the text. Words that judge have colours by what they mean, which
// src/spec/meaning.rs has too: what holds is green, what fails is red, what nobody can tell is grey. The middle is grey without a hue, so that colours between it
// and either end have the hue of that end.
const PALETTES = {
  light: {
    category: ["#145099", "#aa5200", "#117f6c", "#713153", "#b48d28", "#4f98de", "#1d1a15", "#8b9497"],
    diverging: ["#5b9bdb", "#a9caec", "#f5f5f5", "#f3c48f", "#e08c33"],
    // Behind lines, which keep their contrast.
    pale: ["#d9e7f6", "#fbe6cf", "#f8d3d8", "#dcefe2", "#e8dff2"],
    sequential: ["#f3f7fb", "#c6dcf2", "#8fbbe6", "#5496d6"],
    meaning: {
      "holds": "#0f7a66",
      "reproduced": "#0f7a66",
      "depends on the set-up": "#b88d10",
      "direction only": "#b4560c",
      "fails": "#94102a",
      "not reproduced": "#94102a",
      "unclear": "#8b929b",
      "not testable here": "#4b525b",
      "error": "#4a1f63",
    },
    card: "#ffffff",
    text: "#1d2129",
    muted: "#59616d",
    grid: "#e6e9ed",
    line: "#9aa3ae",
  },
  dark: {
    category: ["#3c98ee", "#d9560f", "#208c6f", "#e6a8ce", "#d99337", "#a9e5ff", "#fefdff", "#939e9a"],
    diverging: ["#1c65b0", "#274a73", "#2e2e2e", "#6b4220", "#9c500d"],
    pale: ["#1b2c40", "#3a2b18", "#401e26", "#18332a", "#2f2440"],
    sequential: ["#1f252d", "#223f5f", "#22558a", "#1f68b4"],
    meaning: {
      "holds": "#34c9a3",
      "reproduced": "#34c9a3",
      "depends on the set-up": "#f2cf63",
      "direction only": "#ee8f3c",
      "fails": "#d42f3f",
      "not reproduced": "#d42f3f",
      "unclear": "#707882",
      "not testable here": "#d8dde3",
      "error": "#c58cf0",
    },
    card: "#171a1f",
    text: "#e6e8eb",
    muted: "#a2abb7",
    grid: "#2a2f37",
    line: "#68717d",
  },
};

/** What Vega-Lite takes as `config`, for a figure of this width in pixels; `font` is a list of families. */
function chartConfig(scheme, width, font) {
  const colours = PALETTES[scheme];
  const narrow = width < 520;
  const label = { labelColor: colours.muted, labelFont: font, labelFontSize: 12 };
  const title = { titleColor: colours.text, titleFont: font, titleFontSize: 12.5, titleFontWeight: 500 };
  return {
    background: "transparent",
    font,
    // The last number of an axis may reach beyond it.
    padding: { left: 2, right: 24, top: 2, bottom: 2 },
    view: { stroke: null, continuousHeight: narrow ? 260 : 320 },
    range: {
      category: colours.category,
      diverging: colours.diverging,
      heatmap: colours.sequential,
      ramp: colours.sequential,
      ordinal: colours.pale,
    },
    axis: {
      titleLineHeight: TITLE_LINE,
      ...label,
      ...title,
      domainColor: colours.line,
      tickColor: colours.line,
      gridColor: colours.grid,
      labelLimit: narrow ? 112 : 200,
      labelPadding: 5,
      titlePadding: 9,
      tickSize: 4,
      labelOverlap: true,
      labelSeparation: 6,
    },
    axisX: { labelFlush: false },
    axisQuantitative: { grid: true },
    axisBand: { grid: false, ticks: false, domain: false },
    // Rows are as high as their names: each has its own.
    axisYBand: { labelSeparation: 0 },
    // The title of the vertical axis stands above it, where it is read without turning the head.
    axisY: { titleAngle: 0, titleAlign: "left", titleAnchor: "start", titleBaseline: "bottom", titleX: 0, titleY: LEFT_TITLE.y },
    axisYQuantitative: { domain: false, ticks: false },
    legend: {
      ...label,
      ...title,
      labelColor: colours.text,
      orient: "top",
      // Leaves room for the title of the vertical axis, which stands between legend and plot.
      offset: LEFT_TITLE.legend,
      symbolSize: 90,
      symbolStrokeWidth: 2,
      labelLimit: narrow ? 240 : 320,
      gradientLength: Math.min(240, width * 0.6),
      gradientThickness: 12,
      titleLimit: 420,
      rowPadding: 4,
      columnPadding: 16,
    },
    title: { color: colours.text, font, fontSize: 15, fontWeight: 600, anchor: "start", offset: 14 },
    mark: { color: colours.category[0] },
    // Round caps would close the gaps of dashes.
    line: { strokeWidth: 2, strokeCap: "butt", strokeJoin: "round" },
    point: { size: 46, filled: true },
    circle: { size: 46 },
    bar: { cornerRadiusEnd: 2 },
    rule: { color: colours.line },
    tick: { color: colours.text, thickness: 2 },
    text: { color: colours.text, font, fontSize: 11.5 },
    rect: { stroke: colours.card, strokeWidth: 1 },
    // Bands behind marks: no hue, as hues stand for policies.
    style: {
      band: { color: colours.muted, strokeWidth: 0 },
      end: { color: colours.grid, strokeWidth: 0 },
      behind: { strokeWidth: 0 },
      critical: { color: colours.text, strokeWidth: 2.5 },
      event: { color: colours.text, strokeWidth: 1.2 },
      duration: { color: colours.muted, fontSize: 10 },
    },
    errorbar: { rule: { strokeWidth: 1.5 } },
    boxplot: {
      box: { fillOpacity: 0.55 },
      median: { color: colours.text, strokeWidth: 2 },
      rule: { color: colours.text, strokeWidth: 1 },
      outliers: { size: 14, opacity: 0.7 },
      ticks: false,
    },
  };
}

const systemScheme = window.matchMedia("(prefers-color-scheme: dark)");

/** The scheme that is on: what the reader chose, or else what the system says. */
function currentScheme() {
  return document.documentElement.dataset.scheme ?? (systemScheme.matches ? "dark" : "light");
}

/** A switch between light and dark; `changed` is called after each change, the system's included. */
function schemeSwitch(changed) {
  const button = element("button", { type: "button", class: "quiet scheme" });
  const show = () => {
    const other = currentScheme() === "dark" ? "light" : "dark";
    const drawing =
      other === "light"
        ? "M8 4.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM8 .7v2M8 13.3v2M.7 8h2M13.3 8h2M2.8 2.8l1.4 1.4M11.8 11.8l1.4 1.4M2.8 13.2l1.4-1.4M11.8 4.2l1.4-1.4"
        : "M13.6 9.7A6 6 0 0 1 6.3 2.4a6 6 0 1 0 7.3 7.3z";
    button.replaceChildren(icon(drawing), element("span", { text: `${other === "light" ? "Light" : "Dark"} colours` }));
  };
  // The choice holds for other reports too, where the browser lets a page remember.
  const remembered = remember();
  if (remembered === "light" || remembered === "dark") document.documentElement.dataset.scheme = remembered;
  show();
  button.addEventListener("click", () => {
    const next = currentScheme() === "dark" ? "light" : "dark";
    document.documentElement.dataset.scheme = next;
    remember(next);
    show();
    changed();
  });
  systemScheme.addEventListener("change", () => {
    show();
    changed();
  });
  return button;
}

/** Reads or writes the remembered scheme; a browser that forbids it remembers nothing. */
function remember(scheme) {
  const key = "quipu-report-scheme";
  try {
    if (scheme === undefined) return localStorage.getItem(key);
    localStorage.setItem(key, scheme);
  } catch {
    // Storage is forbidden here.
  }
  return null;
}
