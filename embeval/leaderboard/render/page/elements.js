/* Elements made by hand: whatever comes from data becomes text, never markup. */

/* An element; attributes null or false are left out, true ones are empty; children are texts or nodes, null is none. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) made.append(child);
  return made;
}

function svgElement(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/* A text from data, kept from turning the direction of what stands beside it. */
function dataText(text, attributes = {}) {
  return element("bdi", attributes, visibleText(text));
}

/* U+FFFD for characters that steer or aren't shown, as embeval/core/characters.py has it. */
function visibleText(text) {
  return String(text).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]/gu, "\ufffd");
}

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

/* For those who hear the page: told once, when it changes. */
function announce(sentence) {
  document.getElementById("announcement").textContent = sentence;
}
