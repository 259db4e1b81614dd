/* Texts of pictures, details and comparisons. */
const TURNING = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g; // would turn the direction of what follows in a label

/* A text from data in one line; the middle of a long one goes, since names of variants differ at their ends. */
function shortened(text, length = 30) {
  const line = visibleText(text).replace(TURNING, "\ufffd").replace(/\s+/g, " ").trim();
  if (line.length <= length) return line;
  const characters = [...line]; // some take two places in a string
  if (characters.length <= length) return line;
  const end = Math.floor((length - 1) * 0.45);
  return `${characters.slice(0, length - 1 - end).join("").trimEnd()}…${characters.slice(-end).join("").trimStart()}`;
}

/* plotly reads tags and entities in every label: none are left in a text from data. */
function plotted(text, length = 60) {
  return shortened(text, length).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function interval(low, high) {
  return isKnown(low) && isKnown(high) ? `[${score(low)}, ${score(high)}]` : "";
}

function probability(p) {
  if (!isKnown(p)) return GAP;
  return p < 0.0001 ? "< 0.0001" : p.toFixed(4);
}

function listed(names, most = 3) {
  const shown = names.slice(0, most).map((name) => shortened(name, 60));
  if (names.length > most) return `${shown.join(", ")} and ${(names.length - most).toLocaleString("en")} more`;
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}

const labelOf = (place) => board.models[place].label;

/* A choice with its name beside it; `choices` are [value, name]. */
function choiceBox(name, choices, chosen, changed) {
  const select = element(
    "select",
    { "aria-label": name, onchange: (event) => changed(event.target.value) },
    choices.map(([value, text]) => element("option", { value, selected: value === chosen }, shortened(text, 48))),
  );
  return element("label", { class: "choice" }, element("span", {}, name), select);
}

/* A table that scrolls within its own width: `rows` of texts or nodes; numbers stand to the right, `texts` are places
   of columns without. */
function plainTable(caption, headings, rows, texts = [0]) {
  const side = (place) => (texts.includes(place) ? null : "number");
  const inside = (value) => (value instanceof Node ? value : dataText(value ?? GAP));
  const cell = (value, place) =>
    element(place ? "td" : "th", { class: side(place), scope: place ? null : "row" }, inside(value));
  return element(
    "div",
    { class: "numbers-box", tabindex: 0, role: "group", "aria-label": caption },
    element(
      "table",
      { class: "numbers" },
      element("caption", {}, dataText(caption)),
      element("thead", {}, element("tr", {}, headings.map((text, place) =>
        element("th", { scope: "col", class: side(place) }, dataText(text))))),
      element("tbody", {}, rows.map((row) => element("tr", {}, row.map(cell)))),
    ),
  );
}

function svgElement(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
