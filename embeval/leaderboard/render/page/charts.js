/* Pictures: drawn when they come into view, and again when what the page shows has changed. Each is
   {id, title, wide, controls(changed), make({palette, width})}; `make` gives {words, traces, layout, legend, table()},
   or words alone where there is nothing to draw. */
const PALETTES = {
  light: {
    ground: "#ffffff", text: "#1b1f24", muted: "#57606a", line: "#d5d9df", faint: "#eceff2", point: "#7d8794", veil: "rgba(255,255,255,0.75)",
    accent: "#0a53a8", better: "#1a6fb5", worse: "#c05621", middle: "#f3f4f6",
    series: ["#0a53a8", "#c2410c", "#0f766e", "#7e3aa8", "#8a5a00", "#b4236c"],
  },
  dark: {
    ground: "#121519", text: "#e7eaee", muted: "#a4adb8", line: "#3a414a", faint: "#262c34", point: "#8f99a6", veil: "rgba(18,21,25,0.75)",
    accent: "#7fb8f5", better: "#4f9fe8", worse: "#e08a4f", middle: "#20262d",
    series: ["#7fb8f5", "#ffa470", "#5fd3bc", "#cfa6ff", "#f2c766", "#ff9ccb"],
  },
};
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "star"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const CONFIG = { displayModeBar: false, doubleClick: false, scrollZoom: false, showTips: false, responsive: false };
const pictures = []; // those on the page, with their elements
const PAPER = 940; // pixels: what a sheet across leaves between its margins, be it A4 or letter
let isPrinting = false;

/* The palette that fits the page as it is now: whatever made it light or dark. */
function currentPalette() {
  const parts = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g) ?? [];
  const [red, green, blue] = parts.map(Number);
  return !isPrinting && 0.3 * red + 0.6 * green + 0.1 * blue < 128 ? PALETTES.dark : PALETTES.light;
}

/* Called once the table stands: nothing of the pictures may keep it waiting. */
function startCharts() {
  const part = document.getElementById("pictures");
  part.classList.add("part");
  part.append(element("h2", {}, "Pictures"));
  const near = new IntersectionObserver(seen, { rootMargin: "50px" });
  for (const picture of [paretoPicture("speed"), paretoPicture("size"), ranksPicture, heatPicture, profilePicture, historyPicture]) {
    const there = framed(picture);
    part.append(there.node);
    pictures.push(there);
    near.observe(there.node);
    new ResizeObserver(() => there.width !== there.plot.clientWidth && drawLater(there)).observe(there.plot);
  }
  page.listen(() => pictures.forEach(drawLater));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => pictures.forEach(drawLater));
  new MutationObserver(() => pictures.forEach(drawLater)).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme", "class"],
  });
  addEventListener("beforeprint", () => drawForPaper(true));
  addEventListener("afterprint", () => drawForPaper(false));
}

function framed(picture) {
  const words = element("p", { class: "words", id: `${picture.id}-words` });
  const plot = element("div", { class: "plot", role: "img", "aria-label": picture.title, "aria-describedby": words.id });
  const there = { ...picture, words, plot, isNear: false, isStale: true, waits: false, width: 0 };
  there.legend = element("ul", { class: "marks" });
  there.numbers = element("details", { ontoggle: () => tell(there) }, element("summary", {}, "As a table"));
  there.node = element(
    "figure",
    { class: picture.wide ? "picture wide" : "picture", id: picture.id },
    element("figcaption", {}, element("h3", {}, picture.title), words),
    element("div", { class: "choices" }, picture.controls?.(() => drawPicture(there)) ?? []),
    there.legend,
    // Wider than a small screen it scrolls, also by keyboard.
    element("div", { class: "canvas", tabindex: 0, role: "group", "aria-label": `${picture.title}, scrolls` }, plot),
    there.numbers,
  );
  return there;
}

function seen(entries) {
  for (const entry of entries) {
    const there = pictures.find((each) => each.node === entry.target);
    there.isNear = entry.isIntersecting;
    if (there.isNear && there.isStale) drawLater(there);
  }
}

/* Not at once: the table answers first, and of ten changes in a row one is drawn. */
function drawLater(there) {
  there.isStale = true;
  if (!there.isNear || there.waits) return;
  there.waits = true;
  const draw = () => {
    there.waits = false;
    if (there.isNear && there.isStale) drawPicture(there);
  };
  // The library takes a moment to start: the browser chooses one in which nobody waits.
  if (startedCharts === null && "requestIdleCallback" in window) requestIdleCallback(draw, { timeout: 1000 });
  else setTimeout(draw, 60);
}

/* All of them, whether or not they came into view. */
function drawForPaper(isPaper) {
  isPrinting = isPaper;
  pictures.forEach(drawPicture);
}

function drawPicture(there) {
  there.isStale = false;
  there.plot.hidden = false;
  const palette = currentPalette();
  const width = isPrinting ? PAPER : Math.max(there.plot.parentElement.clientWidth, 240);
  const made = there.make({ palette, width });
  there.table = made.table ?? null;
  there.words.replaceChildren(dataText(made.words, { dir: "ltr" }));
  there.legend.replaceChildren(...(made.legend ?? []));
  there.plot.hidden = !made.traces;
  there.numbers.hidden = there.table === null;
  if (made.traces) {
    chartLibrary().react(there.plot, made.traces, laidOut({ width, ...made.layout }, palette), CONFIG);
    followClicks(there);
  }
  there.width = there.plot.clientWidth;
  if (there.numbers.open) tell(there);
}

function laidOut(layout, palette) {
  const axis = (given) => ({
    gridcolor: palette.faint, linecolor: palette.line, zeroline: false, fixedrange: true, automargin: false,
    tickfont: { color: palette.muted, size: 11 }, ...given,
  });
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: fontFamily, size: 12, color: palette.text },
    hoverlabel: { bgcolor: palette.ground, bordercolor: palette.muted, align: "left", font: { size: 12, color: palette.text } },
    hovermode: "closest",
    dragmode: false,
    showlegend: false,
    ...layout,
    xaxis: axis(layout.xaxis),
    yaxis: axis(layout.yaxis),
  };
}

/* A click on a model in a picture opens its details: points carry the model's place. */
function followClicks(there) {
  if (there.follows) return;
  there.follows = true;
  there.plot.on("plotly_click", ({ points }) => {
    const place = points[0]?.customdata;
    if (Number.isInteger(place)) openDetail(place);
  });
}

/* The picture's numbers as a table, made when somebody opens it. */
function tell(there) {
  there.numbers.querySelector(".numbers-box")?.remove();
  if (!there.numbers.open || !there.table) return;
  const { headings, rows } = there.table();
  there.numbers.append(plainTable(there.title, headings, rows));
}

function legendEntry(mark, text) {
  return element("li", {}, mark, dataText(shortened(text, 60)));
}

/* A line with a symbol on it, as plotly draws them; without `dash` the symbol alone. */
function legendMark({ color, symbol = "circle", dash = null, hollow = false }) {
  const middle = dash ? 14 : 7;
  const around = { circle: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", square: "M-3.6-3.6h7.2v7.2h-7.2z",
    diamond: "M0-5L5 0L0 5L-5 0z", "triangle-up": "M0-4.6L4.6 3.8H-4.6z", x: "M-4-2.2L-2.2-4L0-1.8L2.2-4L4-2.2L1.8 0L4 2.2L2.2 4L0 1.8L-2.2 4L-4 2.2L-1.8 0z",
    star: "M0-5L1.4-1.6L5-1.5L2.2 .8L3.1 4.4L0 2.4L-3.1 4.4L-2.2 .8L-5-1.5L-1.4-1.6z", line: "M-7 0h14" }[symbol];
  const lengths = { solid: "none", dash: "6 3", dot: "2 3", dashdot: "6 3 2 3", longdash: "9 3", longdashdot: "9 3 2 3" };
  const parts = [svgElement("path", { d: around, transform: `translate(${middle} 6)`, stroke: color, "stroke-width": 1.5, fill: hollow ? "none" : color })];
  if (dash) parts.unshift(svgElement("path", { d: "M0 6h28", stroke: color, "stroke-width": 2, "stroke-dasharray": lengths[dash] }));
  return svgElement("svg", { viewBox: `0 0 ${2 * middle} 12`, width: 2 * middle, height: 12, "aria-hidden": "true" }, ...parts);
}

/* Visible models that are picked, the reference, then the first ones: those that pictures show by name first. */
function foremost(places, most) {
  const first = [...page.picked, board.reference].filter((place) => places.includes(place));
  return [...new Set([...first, ...places])].slice(0, most);
}

function isReference(place) {
  return place === board.reference;
}

/* Room for names beside a plot: as wide as the longest, a third of the whole at most. */
function roomFor(texts, width, size = 11) {
  const needed = Math.max(0, ...texts.map((text) => textWidth(text, size)));
  return Math.ceil(Math.min(needed + 14, width * 0.4));
}

/* Room for headings that stand at 40 degrees. */
const LONGEST_HEADING = 22;
function slantedRoom(texts) {
  return Math.ceil(Math.max(...texts.map((text) => textWidth(shortened(text, LONGEST_HEADING), 11))) * 0.66 + 22);
}

const ruler = document.createElement("canvas").getContext("2d");
const fontFamily = getComputedStyle(document.body).fontFamily;
function textWidth(text, size) {
  const font = `${size}px ${fontFamily}`;
  if (ruler.font !== font) ruler.font = font;
  return ruler.measureText(text).width;
}

/* The longest beginning and end of a name that fit. */
function fitting(text, room, size = 11) {
  if (textWidth(shortened(text, 60), size) <= room) return shortened(text, 60);
  for (let length = Math.min(text.length, 60); length > 6; length -= 2) {
    const found = shortened(text, length);
    if (textWidth(found, size) <= room) return found;
  }
  return shortened(text, 6);
}
