// Legends as buttons: each name hides its series and shows it again. Pictures to be saved have Vega's own legends.

/** Size of a swatch in pixels. */
const SWATCH = { width: 22, height: 12 };
/** Symbols of Vega as SVG paths around the middle of a swatch. */
const SYMBOLS = {
  "circle": "M11 2a4 4 0 1 0 .01 0z",
  "square": "M7.5 2.5h7v7h-7z",
  "cross": "M9.5 2h3v2.5H15v3h-2.5V10h-3V7.5H7v-3h2.5z",
  "diamond": "M11 1l4 5-4 5-4-5z",
  "triangle-up": "M11 1.5l4.5 8h-9z",
  "triangle-down": "M11 10.5l-4.5-8h9z",
  "triangle-right": "M15.5 6l-8 4.5v-9z",
  "triangle-left": "M6.5 6l8-4.5v9z",
};
/** Marks whose swatch is a filled box, and those whose swatch is a line. */
const BOXES = ["bar", "rect", "area", "square"];
const LINES = ["line", "rule", "trail"];

/** Every view of a specification with the encoding that it has from those around it: `{ mark, encoding }`. */
function* views(spec, above = {}) {
  const encoding = { ...above, ...spec.encoding };
  if (spec.mark) yield { mark: typeof spec.mark === "string" ? { type: spec.mark } : spec.mark, encoding };
  for (const layer of spec.layer ?? []) yield* views(layer, encoding);
}

/** Whether a channel tells series apart by name, with a legend. */
function isSeries(channel) {
  return Boolean(channel?.field) && channel.type !== "quantitative" && channel.legend !== null;
}

/** The columns that tell series apart: `{ field, title, domain, channels, marks }` for each. */
function seriesOf(spec) {
  const found = new Map();
  for (const { mark, encoding } of views(spec)) {
    for (const name of SERIES_CHANNELS) {
      const channel = encoding[name];
      if (!isSeries(channel)) continue;
      const { field, title, scale } = channel;
      if (!found.has(field)) found.set(field, { field, title: title ?? field, channels: new Set(), marks: new Set() });
      const group = found.get(field);
      group.channels.add(name);
      group.marks.add(mark.type);
      if (mark.style) group.style = mark.style;
      if (Array.isArray(scale?.domain)) group.domain = scale.domain.map(String);
    }
  }
  return [...found.values()];
}

/**
 * The specification without Vega's legends of names, and with the names of `groups` as domains, so that a series
 * keeps its colour when another is hidden.
 */
function withButtons(spec, groups) {
  const made = { ...spec };
  if (made.encoding) {
    made.encoding = { ...made.encoding };
    for (const name of SERIES_CHANNELS) {
      const channel = made.encoding[name];
      if (!isSeries(channel)) continue;
      const domain = groups.find(({ field }) => field === channel.field)?.names ?? [];
      const scale = Array.isArray(channel.scale?.domain) ? channel.scale : { ...channel.scale, domain };
      made.encoding[name] = { ...channel, scale, legend: null };
    }
  }
  if (made.layer) made.layer = made.layer.map((layer) => withButtons(layer, groups));
  return made;
}

class Legend {
  #groups;
  #buttons = new Map();
  #all;
  #changed;
  /** Names that are hidden, by column. */
  #hidden = new Map();

  /** `changed` is called after each change. */
  constructor(spec, title, changed) {
    this.#groups = seriesOf(spec).map((group) => ({ ...group, names: [] }));
    this.#changed = changed;
    this.#all = element("button", { type: "button", class: "quiet", text: "Show all", hidden: true });
    this.#all.addEventListener("click", () => {
      this.#hidden.clear();
      const [first] = this.#buttons.values();
      this.#show();
      first?.button.focus();
    });
    this.element = this.#groups.length ? element("div", { class: "legend", role: "group", "aria-label": `Series of ${title}` }) : null;
  }

  get groups() {
    return this.#groups;
  }

  /** Whether `row` belongs to no hidden series. */
  isShown(row) {
    for (const [field, names] of this.#hidden) if (names.has(String(row[field]))) return false;
    return true;
  }

  /** Whether series are hidden. */
  get isNarrowed() {
    return [...this.#hidden.values()].some((names) => names.size > 0);
  }

  /** Has a button for each name in `rows`, hidden or not; rows are lists by dataset. */
  fill(rows) {
    for (const group of this.#groups) {
      const found = new Set();
      for (const list of Object.values(rows)) {
        for (const row of list) if (row[group.field] !== undefined && row[group.field] !== null) found.add(String(row[group.field]));
      }
      group.names = group.domain ? group.domain.filter((name) => found.has(name)) : [...found].sort();
    }
    if (this.element === null) return;
    const keys = this.#groups.flatMap(({ field, names }) => names.map((name) => `${field}\n${name}`));
    if (keys.join("\n\n") === [...this.#buttons.keys()].join("\n\n")) return;
    this.#buttons.clear();
    const parts = this.#groups.filter(({ names }) => names.length > 0).map((group) => this.#part(group));
    this.element.replaceChildren(...parts, this.#all);
  }

  #part(group) {
    const entries = group.names.map((name) => {
      const swatch = element("span", { class: "swatch" });
      const label = element("span", { text: name });
      // What is alone cannot be hidden: nothing would be left.
      const button =
        group.names.length > 1
          ? element("button", { type: "button", class: "entry", onclick: () => this.#toggle(group.field, name) }, swatch, label)
          : element("span", { class: "entry" }, swatch, label);
      if (group.names.length > 1) button.setAttribute("aria-pressed", String(!this.#hidden.get(group.field)?.has(name)));
      this.#buttons.set(`${group.field}\n${name}`, { button, swatch, group, name });
      return button;
    });
    return element("div", { class: "entries" }, element("span", { class: "entries-title", text: group.title }), ...entries);
  }

  #toggle(field, name) {
    if (!this.#hidden.has(field)) this.#hidden.set(field, new Set());
    const names = this.#hidden.get(field);
    if (!names.delete(name)) names.add(name);
    this.#show();
  }

  #show() {
    for (const { button, group, name } of this.#buttons.values()) {
      if (button.matches("button")) button.setAttribute("aria-pressed", String(!this.#hidden.get(group.field)?.has(name)));
    }
    this.#all.hidden = !this.isNarrowed;
    this.#changed();
  }

  /** Draws the swatches in the colours, dashes and shapes of `view`. */
  paint(view, scheme) {
    const scales = new Map();
    const scale = (channel) => {
      if (!scales.has(channel)) scales.set(channel, scaleOf(view, channel));
      return scales.get(channel);
    };
    for (const { swatch, group, name } of this.#buttons.values()) {
      const value = (channel) => (group.channels.has(channel) ? scale(channel)?.(name) : undefined);
      const style = group.style ? chartConfig(scheme, 0, "").style[group.style] : undefined;
      const colour = value("color") ?? value("fill") ?? value("stroke") ?? style?.color ?? PALETTES[scheme].text;
      swatch.replaceChildren(swatchOf(group.marks, colour, value("strokeDash"), value("shape")));
    }
  }
}

/** A scale of a view, or nothing if it has none of this name. */
function scaleOf(view, name) {
  try {
    return view.scale(name);
  } catch {
    return undefined;
  }
}

function swatchOf(marks, colour, dash, shape) {
  const is = (kinds) => [...marks].some((mark) => kinds.includes(mark));
  if (is(BOXES)) return swatch("M5 1h12v10H5z", { fill: colour });
  if (is(LINES) && shape === undefined) return swatch("M0 6h22", { stroke: colour, "stroke-width": 2.2, "stroke-dasharray": (dash ?? []).join(" ") });
  return swatch(SYMBOLS[shape] ?? SYMBOLS.circle, { fill: colour });
}

function swatch(path, looks) {
  const made = icon(path);
  made.setAttribute("class", "");
  made.setAttribute("viewBox", `0 0 ${SWATCH.width} ${SWATCH.height}`);
  for (const [key, value] of Object.entries({ ...SWATCH, fill: "none", ...looks })) made.setAttribute(key, value);
  return made;
}
