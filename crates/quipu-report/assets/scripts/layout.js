// How a figure's specification is fitted to the width that there is.

const COLOUR_CHANNELS = ["color", "fill", "stroke"];
const SERIES_CHANNELS = ["color", "fill", "stroke", "shape", "strokeDash", "opacity"];

/** All encodings of a specification and of its layers. */
function* encodings(spec) {
  if (spec.encoding) yield spec.encoding;
  for (const layer of spec.layer ?? []) yield* encodings(layer);
}

/** Choices that depend on the width, which a specification makes for readers who lack this page. */
const OF_WIDTH = { legend: ["orient", "columns", "labelLimit"], axis: ["labelLimit"] };

/** A channel that leaves to this page what depends on the width. */
function withoutWidth(channel) {
  const made = { ...channel };
  for (const [part, keys] of Object.entries(OF_WIDTH)) {
    if (made[part]) made[part] = Object.fromEntries(Object.entries(made[part]).filter(([key]) => !keys.includes(key)));
  }
  return made;
}

/** The specification, `width` pixels wide with all its labels. */
function withWidth(spec, width) {
  const made = { ...spec };
  if (made.encoding) {
    const channels = Object.entries(made.encoding);
    made.encoding = Object.fromEntries(channels.map(([name, given]) => [name, Array.isArray(given) ? given : withoutWidth(given)]));
  }
  if (made.layer) made.layer = made.layer.map((layer) => withWidth(layer, undefined));
  if (width !== undefined && (made.width === undefined || made.width === "container")) {
    made.width = width;
    made.autosize = { type: "fit-x", contains: "padding" };
  }
  return made;
}

/**
 * The specification with colours of words that judge from `meaning`, and with legends of those names that
 * `values` gives for their column: of what is drawn, not of all that has a colour.
 */
function withLegends(spec, meaning, values) {
  const made = { ...spec };
  if (made.encoding) {
    made.encoding = { ...made.encoding };
    for (const name of SERIES_CHANNELS) {
      const channel = made.encoding[name];
      const domain = channel?.scale?.domain;
      if (!channel?.field || channel.type === "quantitative" || !Array.isArray(domain)) continue;
      const shown = values(channel.field);
      const legend = channel.legend === null ? null : { ...channel.legend, values: domain.filter((one) => shown.has(one)) };
      const scale = COLOUR_CHANNELS.includes(name) && domain.every((one) => one in meaning) ? { ...channel.scale, range: domain.map((one) => meaning[one]) } : channel.scale;
      made.encoding[name] = { ...channel, legend, scale };
    }
  }
  if (made.layer) made.layer = made.layer.map((layer) => withLegends(layer, meaning, values));
  return made;
}

/** The specification without layers that have no number along the horizontal axis in `rows`, lists by dataset. */
function withMarks(spec, rows, above) {
  if (!spec.layer) return spec;
  const name = spec.data?.name ?? above;
  const isDrawn = (layer) => {
    const { field, type } = layer.encoding?.x ?? {};
    if (!field || type !== "quantitative") return true;
    return (rows[layer.data?.name ?? name] ?? []).some((row) => typeof row[field] === "number");
  };
  const layer = spec.layer.filter(isDrawn).map((one) => withMarks(one, rows, name));
  return layer.length ? { ...spec, layer } : spec;
}

/** Pixels that the names of rows may take: legends begin right of them. */
const ROW_LABELS = 140;

/**
 * How many entries of a legend fit beside each other: from the longest name of what colours, shapes or
 * dashes tell apart. `values` gives those of a column.
 */
function legendColumns(spec, width, values) {
  let longest = 0;
  for (const encoding of encodings(spec)) {
    for (const channel of SERIES_CHANNELS) {
      const { field, legend, scale, type } = encoding[channel] ?? {};
      if (!field || type === "quantitative" || legend === null) continue;
      const names = legend?.values ?? (Array.isArray(scale?.domain) ? scale.domain : values(field));
      for (const name of names) longest = Math.max(longest, String(name).length);
    }
  }
  return longest === 0 ? undefined : Math.max(1, Math.floor((width - ROW_LABELS) / (longest * 7 + 44)));
}

/** Pixels from a line of a title to the next. */
const TITLE_LINE = 15;
/** Where the title of the vertical axis is: above it, with the legend so far above the plot. */
const LEFT_TITLE = { y: -9, legend: 32 };

/** `text` in lines of at most `letters`, broken between words. */
function wrapped(text, letters) {
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && longer.length <= letters) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Breaks the titles of axes that are longer than the plot is wide; `compiled` is a specification of Vega. */
function wrapTitles(compiled, width) {
  const rows = compiled.scales?.some(({ name, type }) => name === "y" && (type === "band" || type === "point"));
  const letters = Math.floor((width - (rows ? 130 : 56)) / 7);
  for (const axis of compiled.axes ?? []) {
    if (typeof axis.title !== "string" || axis.title.length <= letters) continue;
    axis.title = wrapped(axis.title, letters);
    if (axis.orient !== "left") continue;
    // It grows upwards, and the legend above it makes room.
    const more = (axis.title.length - 1) * TITLE_LINE;
    axis.titleY = LEFT_TITLE.y - more;
    for (const legend of compiled.legends ?? []) legend.offset = LEFT_TITLE.legend + more;
  }
}
