// Figures and tables as files. Pictures are for papers and slides: light colours, a title, one size.

const PICTURE_WIDTH = 800;

/** Lets the reader save bytes as a file. */
function save(name, type, content) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = element("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A view of the figure that is not on the page. */
async function pictureView(figure, spec, rows) {
  const made = completeSpec(spec, rows, PICTURE_WIDTH, "light");
  made.background = PALETTES.light.card;
  made.padding = 12;
  made.title = { text: figure.title };
  const view = makeView(made);
  await view.runAsync();
  return view;
}

/** The figure as an SVG file. */
async function saveSvg(figure, spec, rows) {
  const view = await pictureView(figure, spec, rows);
  save(`${figure.id}.svg`, "image/svg+xml", await view.toSVG());
  view.finalize();
}

/** The figure as a PNG file, two pixels for each unit of length. */
async function savePng(figure, spec, rows) {
  const view = await pictureView(figure, spec, rows);
  const canvas = await view.toCanvas(2);
  view.finalize();
  canvas.toBlob((blob) => save(`${figure.id}.png`, "image/png", blob), "image/png");
}

/** The figure's specification with its data, as editors and notebooks of Vega-Lite read it. */
function saveSpec(figure, spec, rows) {
  const whole = {
    $schema: spec.$schema ?? "https://vega.github.io/schema/vega-lite/v6.json",
    title: figure.title,
    description: figure.alt,
    ...spec,
    datasets: rows,
  };
  save(`${figure.id}.vl.json`, "application/json", JSON.stringify(whole, null, 1));
}

/** A button that opens a list of actions; `entries` are of `[label, action]`. */
function downloadMenu(name, entries) {
  const menu = element(
    "details",
    { class: "menu" },
    element("summary", { class: "quiet", "aria-label": `Download: ${name}` }, icon("M8 2v8M4.5 7 8 10.5 11.5 7M3 13.5h10"), element("span", { text: "Download" })),
    element(
      "ul",
      {},
      ...entries.map(([label, action]) =>
        element(
          "li",
          {},
          element("button", {
            type: "button",
            text: label,
            onclick: async () => {
              menu.open = false;
              menu.querySelector("summary").focus();
              try {
                await action();
              } catch (error) {
                console.error(error);
              }
            },
          }),
        ),
      ),
    ),
  );
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
  });
  document.addEventListener("pointerdown", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  return menu;
}
