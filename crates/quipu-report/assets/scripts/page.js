// The page: heading, contents, sections; figures are drawn when they come near.

/** How far below the visible part figures are drawn already. */
const AHEAD = "600px";

function pageHead(report, figures) {
  const { version, commit, program, profile } = report.generated_by ?? {};
  const short = String(commit ?? "").replace(/^([0-9a-f]{10})[0-9a-f]+/, "$1");
  const details = [program, profile].filter(Boolean).join(", ");
  const made = [
    report.world ? element("span", { class: "badge", text: report.world }) : null,
    version ? element("span", { text: `quipu ${version}${short ? ` (${short})` : ""}`, ...(details ? { title: details } : {}) }) : null,
  ];
  const toggle = schemeSwitch(() => figures.forEach((figure) => figure.refresh()));
  return [
    element("div", { class: "bar" }, element("p", { class: "made" }, element("span", { class: "name", text: "Quipu report" }), ...made), toggle),
    element("h1", { text: report.title }),
    report.subtitle ? element("p", { class: "subtitle", text: report.subtitle }) : null,
  ].filter(Boolean);
}

function notices(list) {
  if (!list?.length) return null;
  return element(
    "aside",
    { class: "notices", "aria-label": "Notices" },
    ...list.map((text) => element("p", { class: "notice" }, icon("M8 1.5 15 14H1zM8 6v4M8 11.6v.8"), element("span", { text }))),
  );
}

function summary(sentences) {
  if (!sentences?.length) return null;
  const [first, ...others] = sentences;
  return element(
    "section",
    { class: "summary", id: "summary", "aria-labelledby": "summary-title" },
    element("h2", { id: "summary-title", text: "Summary" }),
    element("p", { class: "first" }, ...emphasised(first)),
    others.length ? element("ul", {}, ...others.map((text) => element("li", {}, ...emphasised(text)))) : null,
  );
}

function section(part, datasets, figures) {
  const name = `${part.id}-title`;
  const cards = (part.figures ?? []).map((figure) => {
    const made = new Figure(figure, datasets);
    figures.set(made.element, made);
    return made.element;
  });
  return element(
    "section",
    { class: "part", id: part.id, "aria-labelledby": name },
    element("h2", { id: name }, part.title, element("a", { class: "anchor", href: `#${part.id}`, "aria-label": `Link to ${part.title}`, text: "#" })),
    ...(part.text ?? []).map((text) => element("p", { class: "prose" }, ...withOptions(text))),
    ...cards,
    ...(part.tables ?? []).map(tableCard),
  );
}

/** A text in parts, of which options of commands, such as `--out`, stay on one line. */
function withOptions(text) {
  return text.split(/(--[\w-]+)/).map((part) => (part.startsWith("--") ? element("span", { class: "option", text: part }) : part));
}

/** The list of sections: beside the text where there is room, folded above it on a phone. */
function contents(report) {
  const links = new Map();
  const link = (id, text, level) => {
    const made = element("a", { href: `#${id}`, class: level, text });
    links.set(id, made);
    return made;
  };
  const parts = report.sections.map((part) =>
    element(
      "li",
      {},
      link(part.id, part.title, "of-part"),
      element("ul", {}, ...[...(part.figures ?? []), ...(part.tables ?? [])].map((one) => element("li", {}, link(one.id, one.title, "of-figure")))),
    ),
  );
  const first = report.summary?.length ? [element("li", {}, link("summary", "Summary", "of-part"))] : [];
  const fold = element("details", {}, element("summary", { text: "Contents" }), element("ol", {}, ...first, ...parts));
  const wide = matchMedia("(min-width: 66rem)");
  const place = () => (fold.open = wide.matches);
  wide.addEventListener("change", place);
  place();
  fold.addEventListener("click", (event) => {
    if (event.target.closest("a") && !wide.matches) fold.open = false;
  });
  return { fold, links };
}

/** Marks in the contents the section that is being read. */
function followReading(links, main) {
  const seen = new Set();
  const watch = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) seen.add(target.id);
        else seen.delete(target.id);
      }
      let current = false;
      for (const [id, link] of links) {
        if (!link.classList.contains("of-part")) continue;
        const isHere = !current && seen.has(id);
        current ||= isHere;
        if (isHere) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
        link.parentElement.classList.toggle("here", isHere);
      }
    },
    { rootMargin: "-15% 0px -60% 0px" },
  );
  for (const part of main.querySelectorAll(":scope > section")) watch.observe(part);
}

/** Draws figures when they come near, when their width changes, and all of them before printing. */
function drawFigures(figures) {
  // One after the other: in between the page answers.
  const queue = [];
  const drawNext = () => {
    queue.shift().draw();
    if (queue.length > 0) setTimeout(drawNext);
  };
  const near = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        near.unobserve(target);
        if (queue.push(figures.get(target)) === 1) setTimeout(drawNext);
      }
    },
    { rootMargin: AHEAD },
  );
  let waiting = 0;
  const width = new ResizeObserver(() => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => figures.forEach((figure) => figure.fit()));
  });
  for (const card of figures.keys()) near.observe(card);
  width.observe(document.getElementById("main"));
  // Paper is white, whatever the screen is.
  addEventListener("beforeprint", () => figures.forEach((figure) => figure.redraw("light")));
  addEventListener("afterprint", () => figures.forEach((figure) => figure.redraw()));
}

/** A link to a place that is only now there is followed again. */
function followHash() {
  if (location.hash.length < 2) return;
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

function showReport() {
  const main = document.getElementById("main");
  let report;
  try {
    report = readDocument();
  } catch (error) {
    console.error(error);
    main.append(element("p", { class: "notice", role: "alert", text: `This report cannot be shown: ${error.message}.` }));
    return;
  }
  const datasets = new Datasets(report.datasets);
  const figures = new Map();
  document.getElementById("top").append(...pageHead(report, figures));
  const blocks = [notices(report.notices), summary(report.summary), ...report.sections.map((part) => section(part, datasets, figures))];
  main.append(...blocks.filter(Boolean));
  const { fold, links } = contents(report);
  document.querySelector("nav.contents").append(fold);
  document.querySelector("footer").append(
    element("p", { text: "This file contains all data of the figures (see Download at each one); the result folder has the rows of every run." }),
  );
  followReading(links, main);
  drawFigures(figures);
  followHash();
  performance.mark("report-ready");
  document.documentElement.dataset.ready = "true";
}

showReport();
