/* Quality against speed or size, with the models that none beats on both: the Pareto front. */
const MOST_WHISKERS = 60;
const MOST_NAMED = 24;
const CROWD = 60; // points from which on only those that matter are named, and the others are small

const HOW_MEASURED = { speed: " Runs that encode at least 500 texts tell tokens per second; the option latency of a task times its queries." };

function paretoPicture(kind) {
  const known = costsOf(kind);
  const chosen = { cost: known[0]?.key, quality: null };
  const controls = (changed) => {
    const choose = (name) => (value) => {
      chosen[name] = value;
      changed();
    };
    const costs = choiceBox("Against", known.map((each) => [each.key, each.name]), chosen.cost, choose("cost"));
    const quality = choiceBox("Quality", qualities().map((each) => [each.key, each.name]), null, choose("quality"));
    return known.length ? [quality, costs] : [];
  };
  const make = ({ palette, width }) => {
    const cost = known.find((each) => each.key === chosen.cost);
    const offered = qualities();
    const quality = offered.find((each) => each.key === chosen.quality) ?? offered[0];
    if (!cost) return { words: `No model here has a measured ${kind}.${HOW_MEASURED[kind] ?? ""}` };
    if (!quality) return { words: "No task is chosen that could stand for quality." };
    return pareto(quality, cost, palette, width);
  };
  return { id: `picture-${kind}`, title: `Quality against ${kind}`, wide: false, controls, make };
}

function pareto(quality, cost, palette, width) {
  const points = page.visible
    .map((place) => ({ place, x: cost.value(board.models[place]), y: quality.value(place) }))
    .filter(({ x, y }) => isKnown(x) && isKnown(y));
  if (!points.length) return { words: `No model shown has both: ${quality.name} and ${cost.name}.` };
  const front = frontOf(points, cost.higher, quality.higher);
  const scale = logScale(points.map((point) => point.x));
  for (const point of points) {
    point.at = scale.at(point.x);
    point.isFront = front.includes(point);
    point.interval = points.length <= MOST_WHISKERS || point.isFront ? quality.interval(point.place) : null;
  }
  const height = 340;
  const margin = { l: 58, r: 16, t: 10, b: 46 };
  const [low, high] = padded(points.flatMap((p) => [p.y, p.interval?.low, p.interval?.high]).filter(isKnown));
  // Ranks count down: the best is always above.
  const yRange = quality.higher ? [low, high] : [high, low];
  const box = {
    x: (at) => ((at - scale.range[0]) / (scale.range[1] - scale.range[0])) * (width - margin.l - margin.r),
    y: (value) => ((yRange[1] - value) / (yRange[1] - yRange[0])) * (height - margin.t - margin.b),
    width: width - margin.l - margin.r,
    height: height - margin.t - margin.b,
  };
  return {
    words: paretoWords(points, front, quality, cost),
    legend: paretoLegend(points, palette),
    traces: [frontTrace(front, cost, palette), ...pointTraces(points, quality, cost, palette)],
    layout: {
      height,
      margin,
      annotations: pointNames(points, frontLine(front, cost), box, palette),
      xaxis: { title: { text: axisTitle(cost), standoff: 8, font: { size: 12, color: palette.muted } }, range: scale.range, tickvals: scale.ticks.map(scale.at), ticktext: scale.ticks.map(tickText) },
      yaxis: { title: { text: axisTitle(quality), standoff: 6, font: { size: 12, color: palette.muted } }, range: yRange, nticks: 7 },
    },
    table: () => ({
      headings: ["Model", quality.name, "Interval", cost.name, "On the front"],
      rows: points.map((p) => {
        const there = quality.interval(p.place);
        return [labelOf(p.place), qualityText(quality, p.y), interval(there?.low, there?.high) || GAP, digits(p.x), p.isFront ? "yes" : "no"];
      }),
    }),
  };
}

function axisTitle({ name, higher }) {
  return `${plotted(name)} <i>(${higher ? "more" : "less"} is better)</i>`;
}

function qualityText(quality, value) {
  return ["rank", "borda"].includes(quality.key) ? String(value) : score(value);
}

/* The points that no other one beats on both axes; by x, best first. */
function frontOf(points, moreX, moreY) {
  const order = [...points].sort((one, other) => (moreX ? other.x - one.x : one.x - other.x) || (moreY ? other.y - one.y : one.y - other.y));
  const found = [];
  let best = null;
  for (const point of order) {
    if (best !== null && !(moreY ? point.y > best : point.y < best)) continue;
    best = point.y;
    found.push(point);
  }
  return found;
}

/* A logarithmic axis of our own: a system without parameters stands left of all others, at 0. */
function logScale(values) {
  const positive = values.filter((value) => value > 0);
  const smallest = Math.min(...positive, ...(positive.length ? [] : [1]));
  const largest = Math.max(...positive, smallest);
  const hasZero = values.some((value) => value <= 0);
  const span = Math.max(Math.log10(largest / smallest), 0.3);
  const middle = (Math.log10(largest) + Math.log10(smallest)) / 2;
  const start = middle - span / 2;
  const zero = start - 0.3 * Math.max(span, 0.5);
  const at = (value) => (value > 0 ? Math.log10(value) : zero);
  const edges = [(hasZero ? zero : start) - 0.1 * span, middle + 0.6 * span];
  const ticks = logTicks(10 ** (start - 0.08 * span), 10 ** (middle + 0.58 * span));
  return { at, range: edges, ticks: hasZero ? [0, ...ticks] : ticks };
}

/* 1, 2, 5, 10 …, or powers of ten alone where there are many, or even steps within less than an octave. */
function logTicks(from, to) {
  const powers = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power += 1) powers.push(10 ** power);
  const inside = (list) => list.filter((value) => value >= from && value <= to);
  const steps = (factors) => inside(powers.flatMap((power) => factors.map((factor) => factor * power)));
  const tens = inside(powers);
  if (tens.length > 3) return tens.length > 7 ? tens.filter((_, place) => place % 2 === 0) : tens;
  return [steps([1, 3]), steps([1, 2, 5]), steps([1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9])].find((found) => found.length > 2) ?? tens;
}

function tickText(value) {
  return value >= 10000 || value === 0 ? count(value) : digits(Number(value.toPrecision(3)));
}

function padded(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  return [low - room, high + room];
}

function frontTrace(front, cost, palette) {
  const line = frontLine(front, cost);
  return {
    x: line.map((corner) => corner.at), y: line.map((corner) => corner.y), mode: "lines", hoverinfo: "skip",
    line: { color: palette.accent, width: 1.5, dash: "dot" },
  };
}

/* Steps: what is worse than some model of the front on both axes lies below them. */
function frontLine(front, cost) {
  const line = [...front].sort((one, other) => one.at - other.at);
  return line.flatMap((point, place) => {
    const next = line[place + 1];
    if (!next) return [point];
    return [point, cost.higher ? { at: point.at, y: next.y } : { at: next.at, y: point.y }];
  });
}

function pointTraces(points, quality, cost, palette) {
  const kinds = [
    [(p) => !p.isFront, { color: palette.point, ...(points.length > CROWD ? { size: 5, opacity: 0.55 } : { size: 8, opacity: 1 }) }],
    [(p) => p.isFront, { color: palette.accent, size: 10, opacity: 1 }],
  ];
  return kinds.map(([fits, { color, size, opacity }]) => {
    const inside = points.filter(fits);
    return {
      x: inside.map((p) => p.at), y: inside.map((p) => p.y), mode: "markers", customdata: inside.map((p) => p.place),
      hoverinfo: "text", hovertext: inside.map((p) => hoverOf(p, quality, cost)), cliponaxis: false,
      marker: {
        color, size: inside.map((p) => (page.picked.includes(p.place) ? size + 4 : size)), opacity,
        symbol: inside.map((p) => pointSymbol(p.place)), line: { width: 1.5, color: inside.map((p) => (page.picked.includes(p.place) ? palette.text : color)) },
      },
      error_y: {
        type: "data", symmetric: false, color, thickness: 1.2, width: 3,
        array: inside.map((p) => (p.interval ? p.interval.high - p.y : 0)),
        arrayminus: inside.map((p) => (p.interval ? p.y - p.interval.low : 0)),
        visible: inside.some((p) => p.interval),
      },
    };
  });
}

function pointSymbol(place) {
  const shape = isReference(place) ? "diamond" : "circle";
  return board.models[place].imported ? `${shape}-open` : shape;
}

function hoverOf(point, quality, cost) {
  const there = quality.interval(point.place);
  const lines = [`<b>${plotted(labelOf(point.place))}</b>`, `${plotted(quality.name)}: ${qualityText(quality, point.y)} ${interval(there?.low, there?.high)}`];
  return [...lines, `${plotted(cost.name)}: ${digits(point.x)}`, point.isFront ? "on the front" : ""].filter(Boolean).join("<br>");
}

function paretoLegend(points, palette) {
  const entries = [
    [legendMark({ color: palette.accent }), "none is better on both"],
    [legendMark({ color: palette.point }), "another is better on both, or as good"],
  ];
  if (points.some((p) => isReference(p.place))) entries.push([legendMark({ color: palette.muted, symbol: "diamond" }), "the reference"]);
  if (points.some((p) => board.models[p.place].imported)) entries.push([legendMark({ color: palette.muted, hollow: true }), "published, not measured here"]);
  return entries.map(([mark, text]) => legendEntry(mark, text));
}

function paretoWords(points, front, quality, cost) {
  const missing = page.visible.length - points.length;
  const names = front.map((point) => labelOf(point.place));
  const parts = [`${names.length === 1 ? `${listed(names)} is` : `${listed(names, 4)} are`} on the front of ${plural(points.length, "model")}: no other is better on both axes.`];
  if (missing) parts.push(`${plural(missing, "model")} without one of the two ${missing === 1 ? "is" : "are"} left out.`);
  if (points.some((point) => point.interval)) parts.push("Whiskers are confidence intervals.");
  return parts.join(" ");
}

/* Names beside points where they hide nothing: the front, the reference and those picked first. */
function pointNames(points, line, box, palette) {
  const isCrowd = points.length > CROWD;
  const weight = (p) => (page.picked.includes(p.place) ? 4 : 0) + (p.isFront ? 2 : 0) + (isReference(p.place) ? 3 : 0);
  const named = [...points].sort((one, other) => weight(other) - weight(one)).filter((p) => !isCrowd || weight(p) > 0);
  const taken = (isCrowd ? named : points).map((p) => around(box.x(p.at), box.y(p.y), 6));
  const stroke = (one, other) => spanning(box.x(one.at), box.x(other.at), box.y(one.y), box.y(other.y), 2);
  const crossed = [
    ...points.filter((p) => p.interval).map((p) => stroke({ at: p.at, y: p.interval.low }, { at: p.at, y: p.interval.high })),
    ...line.slice(1).map((corner, place) => stroke(line[place], corner)),
  ];
  const found = [];
  for (const point of named.slice(0, MOST_NAMED)) {
    const text = fitting(labelOf(point.place), Math.min(box.width * 0.5, 190));
    const spot = bestSpot(box.x(point.at), box.y(point.y), textWidth(text, 11) + 4, taken, crossed, box);
    if (!spot) continue;
    taken.push(spot.area);
    found.push({
      x: point.at, y: point.y, text: plotted(text), showarrow: false, xanchor: spot.xanchor, yanchor: spot.yanchor, xshift: spot.x, yshift: -spot.y,
      font: { size: 11, color: point.isFront ? palette.text : palette.muted }, bgcolor: palette.veil, borderpad: 0,
    });
  }
  return found;
}

function around(x, y, radius) {
  return spanning(x, x, y, y, radius);
}

function spanning(x1, x2, y1, y2, room) {
  return { left: Math.min(x1, x2) - room, right: Math.max(x1, x2) + room, top: Math.min(y1, y2) - room, bottom: Math.max(y1, y2) + room };
}

/* Where a name hides no point and no other name, and crosses as few lines as can be; null: nowhere. */
function bestSpot(x, y, wide, taken, crossed, box) {
  const sides = [["left", "middle", 8, 0], ["right", "middle", -8, 0]];
  for (const up of [-11, 11, -22, 22]) for (const [xanchor, away] of [["left", 5], ["right", -5]]) sides.push([xanchor, "middle", away, up]);
  let best = null;
  for (const [xanchor, yanchor, dx, dy] of sides) {
    const left = xanchor === "left" ? x + dx : x + dx - wide;
    const area = { left, right: left + wide, top: y + dy - 7, bottom: y + dy + 7 };
    const isOutside = area.left < 0 || area.right > box.width + 12 || area.top < -4 || area.bottom > box.height;
    if (isOutside || taken.some((other) => overlaps(area, other))) continue;
    const cost = 3 * crossed.filter((other) => overlaps(area, other)).length + Math.abs(dy) / 11;
    if (best === null || cost < best.cost) best = { cost, area, xanchor, yanchor, x: dx, y: dy };
  }
  return best;
}

function overlaps(one, other) {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}
