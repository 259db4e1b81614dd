/* Numbers as people read them. A number that isn't there is a dash. */
const GAP = "—";
// Made once: to make one for each number takes longer than all the rest of a table.
const GROUPED = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const FINE = new Intl.NumberFormat("en", { maximumFractionDigits: 20 });

function isKnown(value) {
  return value !== null && value !== undefined && !Number.isNaN(value);
}

/* A score: four decimals, or as many digits as a number of another size needs. */
function score(value) {
  if (!isKnown(value)) return GAP;
  return Math.abs(value) < 1000 ? value.toFixed(4) : value.toPrecision(6);
}

/* With a sign, always: of differences. */
function signed(value) {
  if (!isKnown(value)) return GAP;
  return `${value < 0 ? "−" : "+"}${score(Math.abs(value))}`;
}

function whole(value) {
  return isKnown(value) ? String(value) : GAP;
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
  if (Math.abs(value) >= 100) return GROUPED.format(value);
  return FINE.format(Number(value.toPrecision(3)));
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
  return `${(value * 100).toFixed(1)} %`;
}

function times(value) {
  return isKnown(value) ? `${digits(value)}×` : GAP;
}

function plural(number, one, several = `${one}s`) {
  return `${GROUPED.format(number)} ${number === 1 ? one : several}`;
}
