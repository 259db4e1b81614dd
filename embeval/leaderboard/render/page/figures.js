/* Numbers as people read them. A number that isn't there is a dash. */
const GAP = "—";
// Made once: to make one for each number takes longer than all the rest of a table.
const FINE = new Intl.NumberFormat("en", { maximumFractionDigits: 20 });
const SMALLEST = 0.5e-4; // below, four decimals would show a zero
const LARGE = 100; // from here on two decimals
const HUGE = 1e9; // from here on a power of ten

function isKnown(value) {
  return value !== null && value !== undefined && !Number.isNaN(value);
}

/* With so many decimals, as Python writes it: what lies just between two, such as 0.28125, goes to the even digit. */
function fixed(value, decimals) {
  const text = value.toFixed(decimals);
  const isBetween = Math.abs((value * 2 ** (decimals + 1)) % 2) === 1;
  const last = Number(text.at(-1));
  return isBetween && last % 2 ? text.slice(0, -1) + (last - 1) : text;
}

/* 1,234 and 1,234.50. */
function grouped(text) {
  return text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function rounded(value) {
  return grouped(fixed(value, 0));
}

/* A score: four decimals, or as many digits as a number of another size needs. The same in every form of a board: this
   mirrors embeval/core/figures.py, and a test holds them to each other. */
function score(value) {
  if (!isKnown(value)) return GAP;
  const size = Math.abs(value);
  if (size >= HUGE || (size > 0 && size < SMALLEST)) {
    return value.toExponential(size < 1 ? 1 : 4).replace(/e([+-])(\d)$/, "e$10$2");
  }
  if (size >= LARGE) return grouped(fixed(value, Number.isInteger(value) ? 0 : 2));
  return fixed(value, 4);
}

/* With a sign, unless it is 0: of differences. */
function signed(value) {
  if (!isKnown(value)) return GAP;
  return `${value < 0 ? "−" : value > 0 ? "+" : ""}${score(Math.abs(value))}`;
}

/* 22.7 M, 1.5 B. */
function count(value) {
  if (!isKnown(value)) return GAP;
  for (const [size, unit] of [[1e9, "B"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size) return `${digits(value / size)} ${unit}`;
  }
  return String(value);
}

/* 86.6 MiB, 1.2 GiB, from MiB. */
function mebibytes(value) {
  if (!isKnown(value)) return GAP;
  return value >= 1024 ? `${digits(value / 1024)} GiB` : `${digits(value)} MiB`;
}

function inMib(bytes) {
  return isKnown(bytes) ? bytes / 2 ** 20 : null;
}

/* Three digits, none of them made up: 1,234 and 12.3 and 0.0123. */
function digits(value) {
  if (!isKnown(value)) return GAP;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 100) return rounded(value);
  if (size < 1e-6) return FINE.format(Number(value.toPrecision(3)));
  return FINE.format(Number(fixed(value, 2 - Math.floor(Math.log10(size)))));
}

function interval(low, high) {
  return isKnown(low) && isKnown(high) ? `[${score(low)}, ${score(high)}]` : "";
}

function probability(p) {
  if (!isKnown(p)) return GAP;
  return p < 0.0001 ? "< 0.0001" : p.toFixed(4);
}

function percent(value) {
  if (!isKnown(value)) return GAP;
  return `${fixed(value * 100, 1)} %`;
}

function times(value) {
  return isKnown(value) ? `${digits(value)}×` : GAP;
}

function plural(number, one, several = `${one}s`) {
  return `${rounded(number)} ${number === 1 ? one : several}`;
}
