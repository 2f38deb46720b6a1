// Drawing with Vega. The specification stays as it came; data, width and colours are added here.

/** Nothing is ever loaded: all data are in the page. */
const noLoader = {
  load: () => Promise.reject(new Error("a report loads nothing")),
  sanitize: () => Promise.reject(new Error("a report links to nothing")),
};

/** Passes what Vega says on to the console, where tests look. */
const chartLog = {
  level: () => chartLog,
  error: (...said) => (console.error(...said), chartLog),
  // A plot with a step for each row fits its width alone, which is what is wanted.
  warn: (...said) => (String(said[0]).startsWith('Dropping "fit-') || console.warn(...said), chartLog),
  info: () => chartLog,
  debug: () => chartLog,
};

const tooltip = element("div", { class: "tooltip", "aria-hidden": "true", hidden: true });

/** Shows what a mark says beside the pointer; hides it where there is no mark. */
function showTooltip(_handler, event, _item, value) {
  if (value === null || value === undefined || value === "") {
    tooltip.hidden = true;
    return;
  }
  if (typeof value === "object") {
    const rows = Object.entries(value).filter(([name]) => !name.startsWith("__"));
    tooltip.replaceChildren(
      element(
        "dl",
        {},
        ...rows.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text: shortNumber(String(text)) })]),
      ),
    );
  } else {
    tooltip.textContent = String(value);
  }
  if (!tooltip.isConnected) document.body.append(tooltip);
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect();
  const left = event.clientX + 14 + width > innerWidth ? event.clientX - width - 14 : event.clientX + 14;
  const top = event.clientY + 14 + height > innerHeight ? event.clientY - height - 14 : event.clientY + 14;
  tooltip.style.left = `${Math.max(4, left)}px`;
  tooltip.style.top = `${Math.max(4, top)}px`;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") tooltip.hidden = true;
});
document.addEventListener("scroll", () => (tooltip.hidden = true), { passive: true });

/** The complete Vega-Lite specification: data inline, `width` pixels wide, in the colours of `scheme`. */
function completeSpec(spec, rows, width, scheme) {
  const values = (field) => {
    const found = new Set();
    for (const list of Object.values(rows)) {
      for (const row of list) if (row[field] !== undefined && row[field] !== null) found.add(row[field]);
    }
    return found;
  };
  const config = chartConfig(scheme, width, getComputedStyle(document.body).fontFamily);
  const fitted = withLegends(spec, PALETTES[scheme].meaning, values);
  const columns = legendColumns(fitted, width, values);
  if (columns !== undefined) config.legend.columns = columns;
  return {
    ...withWidth(fitted, width),
    config,
    // Copies, as Vega writes into its rows.
    datasets: Object.fromEntries(Object.entries(rows).map(([name, list]) => [name, list.map((row) => ({ ...row }))])),
  };
}

/** A Vega view of a specification; `container` may be left out for one that is only exported. */
function makeView(spec, container) {
  const compiled = vegaLite.compile(spec, { logger: chartLog }).spec;
  wrapTitles(compiled, spec.width);
  return new vega.View(vega.parse(compiled), {
    renderer: container ? "svg" : "none",
    container,
    hover: Boolean(container),
    loader: noLoader,
    logger: chartLog,
    tooltip: showTooltip,
  });
}

/**
 * Draws into `container`, `width` pixels wide, in place of what is there. What is drawn when this returns is
 * complete: all data are there, so nothing waits. Gives the view, of which `finalize()` frees what it holds.
 */
function draw(container, spec, rows, width, scheme) {
  // The container says in words what is seen; Vega would write its own words there.
  const canvas = element("div", { "aria-hidden": "true" });
  container.replaceChildren(canvas);
  const view = makeView(completeSpec(spec, rows, width, scheme), canvas);
  view.run();
  return view;
}
