/* Texts of pictures, details and comparisons. */
const TURNING = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g; // would turn the direction of what follows in a label

/* A text from data in one line; the middle of a long one goes, since names of variants differ at their ends. */
function shortened(text, length = 30) {
  const line = visibleText(text).replace(TURNING, "\ufffd").replace(/\s+/g, " ").trim();
  if (line.length <= length) return line;
  const end = Math.floor((length - 1) * 0.45);
  return `${line.slice(0, length - 1 - end).trimEnd()}…${line.slice(-end).trimStart()}`;
}

/* plotly reads tags and entities in every label: none are left in a text from data. */
function plotted(text, length = 60) {
  return shortened(text, length).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function listed(names, most = 3) {
  const shown = names.slice(0, most).map((name) => shortened(name, 60));
  if (names.length > most) return `${shown.join(", ")} and ${(names.length - most).toLocaleString("en")} more`;
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}

const labelOf = (place) => board.models[place].label;
