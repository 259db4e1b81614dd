/* The score of each model over its revisions. */
const MOST_HISTORY = 6; // as many as look unlike each other

const historyPicture = {
  id: "picture-history",
  title: "Revisions over time",
  wide: true,
  make: ({ palette, width }) => {
    const all = historyLines();
    const lines = all.slice(0, MOST_HISTORY);
    if (!lines.length) return { words: "No model here was evaluated in more than one revision." };
    const looks = lines.map((_, number) => ({
      color: palette.series[number], symbol: SYMBOLS[number], dash: "solid",
    }));
    return {
      words: historyWords(lines, all.length),
      legend: lines.map(([name], number) => legendEntry(legendMark(looks[number]), name)),
      ...historyDrawing(lines, looks, palette, width),
      table: () => ({
        headings: ["Model", "Revision", "Date", "Mean"],
        rows: lines.flatMap(([, points]) => points.map(({ point, value }) => [point.label, shortRevision(point.revision), point.date.slice(0, 10), score(value)])),
      }),
    };
  },
};

/* [name, points] of models with several revisions, by date, for the tasks chosen now. */
function historyLines() {
  const columns = rankedPlaces();
  if (!columns.length || !haveMean(columns)) return [];
  const shares = sharesOfPlaces(columns, false);
  const mean = (point) => columns.reduce((total, place, number) => total + shares[number] * (point.values[place] ?? NaN), 0);
  const points = board.history.map((point) => ({ point, place: placeOfPoint(point), value: mean(point) }));
  const lines = [...Map.groupBy(points.filter(({ value }) => !Number.isNaN(value)), ({ point }) => point.model)];
  return lines.filter(([, found]) => found.length > 1 && isShown(found)).sort(([, one], [, other]) => standsAt(one) - standsAt(other));
}

/* Those that stand first in the table come first, and those picked before them. */
function standsAt(points) {
  const order = [...page.picked, ...page.visible];
  return Math.min(...points.map(({ place }) => order.indexOf(place)).filter((at) => at >= 0), order.length);
}

/* Filters hide a model's line once none of its revisions is left in the table. */
function isShown(points) {
  const places = points.map(({ place }) => place).filter((place) => place >= 0);
  return places.length === 0 || places.some((place) => page.visible.includes(place));
}

function placeOfPoint(point) {
  return board.models.findIndex((model) => model.label === point.label);
}

function shortRevision(revision) {
  return visibleText(revision.replace(/^(sha256|builtin):/, "")).slice(0, 8);
}

function historyWords(lines, n) {
  const columns = rankedPlaces();
  const higher = board.columns[columns[0]].higher_is_better;
  const told = lines.slice(0, 3).map(([name, points]) => {
    const change = points.at(-1).value - points[0].value;
    return `${shortened(name, 60)}: ${signed(change)} over ${plural(points.length, "revision")}`;
  });
  const part = lines.length < n ? `The first ${lines.length} of ${plural(n, "model")} with several revisions. ` : "";
  return `${part}Mean over the chosen tasks, ${higher ? "more" : "less"} being better. ${told.join("; ")}.`;
}

function historyDrawing(lines, looks, palette, width) {
  const hover = ({ point, value }) => `<b>${plotted(point.label)}</b><br>${plotted(shortRevision(point.revision))}, ${plotted(point.date.slice(0, 10))}<br>mean ${score(value)}`;
  const marks = width > 520 && lines.flatMap(([, points]) => points).length <= 24;
  const values = lines.flatMap(([, points]) => points.map(({ value }) => value));
  return {
    traces: lines.map(([, points], number) => ({
      x: points.map(({ point }) => point.date.slice(0, 19)), y: points.map(({ value }) => value), mode: marks ? "lines+markers+text" : "lines+markers",
      customdata: points.map(({ place }) => (place < 0 ? null : place)),
      text: points.map(({ point }) => plotted(shortRevision(point.revision))), textposition: "top center", textfont: { size: 10, color: palette.muted }, cliponaxis: false,
      hoverinfo: "text", hovertext: points.map(hover), line: { color: looks[number].color, width: 1.8 }, marker: { color: looks[number].color, symbol: looks[number].symbol, size: 8 },
    })),
    layout: {
      height: 300,
      margin: { l: 52, r: 40, t: 24, b: 34 },
      xaxis: { type: "date", nticks: Math.max(3, Math.round(width / 130)) },
      yaxis: { range: padded(values), nticks: 6 },
    },
  };
}
