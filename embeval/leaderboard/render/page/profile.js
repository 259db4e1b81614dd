/* A few models over the kinds of tasks: parallel axes. */
const MOST_LINES = 6;

const profilePicture = {
  id: "picture-groups",
  title: "Strengths by kind of task",
  wide: true,
  make: ({ palette, width }) => {
    const { axes, left, isByTask } = profileAxes();
    if (axes.length < 2) return { words: left.length ? "Fewer than two kinds of tasks have scores up to 1 of which more is better." : "One kind of task alone makes no profile." };
    const rows = foremost(page.visible.filter((place) => axes.some((axis) => isKnown(axis.value(place)))), MOST_LINES);
    if (!rows.length) return { words: "No model shown has a value on these tasks." };
    const looks = rows.map((_, row) => ({ color: palette.series[row], symbol: SYMBOLS[row], dash: DASHES[row] }));
    return {
      words: profileWords(rows, axes, left, isByTask),
      legend: rows.map((place, row) => legendEntry(legendMark(looks[row]), labelOf(place) + (isReference(place) ? " (reference)" : ""))),
      ...profileDrawing(rows, axes, looks, palette, width),
      table: () => ({ headings: ["Model", ...axes.map((axis) => axis.name)], rows: rows.map((place) => [labelOf(place), ...axes.map((axis) => score(axis.value(place)))]) }),
    };
  },
};

/* Means of groups, or tasks where there are few groups; only scores, which have a scale in common. */
function profileAxes() {
  const columns = rankedPlaces();
  const groups = [...Map.groupBy(columns, (place) => board.columns[place].group)];
  const isByTask = groups.length < 3 && columns.length <= 24;
  const all = isByTask
    ? inGroups(columns).map((place) => ({ name: board.columns[place].heading, columns: [place], value: (model) => VALUES[place][model] }))
    : groups.map(([name, inside]) => ({ name, columns: inside, value: (model) => page.standings[model].groups?.[name] }));
  const fits = (axis) => axis.columns.every((place) => board.columns[place].higher_is_better && VALUES[place].every((value) => Math.abs(value ?? 0) <= 1));
  return { axes: all.filter(fits), left: all.filter((axis) => !fits(axis)), isByTask };
}

function profileWords(rows, axes, left, isByTask) {
  const first = axes.map((axis) => [axis, rows.filter((place) => isKnown(axis.value(place))).sort((one, other) => axis.value(other) - axis.value(one))[0]]);
  const wins = Map.groupBy(first.filter(([, place]) => place !== undefined), ([, place]) => place);
  const [leader, won] = [...wins].sort(([, one], [, other]) => other.length - one.length)[0];
  const parts = [`${whoIsShown(rows)}, by ${isByTask ? "task" : "mean of each kind of task"}.`];
  if (rows.length > 1) parts.push(`${shortened(labelOf(leader), 60)} is the best of them on ${won.length} of ${plural(axes.length, isByTask ? "task" : "kind")}.`);
  if (left.length) parts.push(`Left out, not being scores up to 1 of which more is better: ${listed(left.map((axis) => axis.name))}.`);
  return parts.join(" ");
}

function whoIsShown(rows) {
  if (rows.length === 1) return shortened(labelOf(rows[0]), 60);
  if (rows.length === page.visible.length) return "All models shown";
  const isPicked = page.picked.some((place) => rows.includes(place));
  const named = [isPicked ? "those picked" : null, rows.some(isReference) ? "the reference" : null, "the first models"].filter(Boolean);
  const sentence = listed(named);
  return sentence[0].toUpperCase() + sentence.slice(1);
}

function profileDrawing(rows, axes, looks, palette, width) {
  const names = axes.map((axis) => axis.name);
  const each = (width - 70) / axes.length;
  const isSlanted = names.some((name) => textWidth(shortened(name, LONGEST_HEADING), 11) > each - 6);
  const below = isSlanted ? slantedRoom(names) : 34;
  const values = rows.flatMap((place) => axes.map((axis) => axis.value(place))).filter(isKnown);
  return {
    traces: rows.map((place, row) => ({
      x: axes.map((_, number) => number), y: axes.map((axis) => axis.value(place) ?? null), mode: "lines+markers", customdata: axes.map(() => place),
      connectgaps: false, cliponaxis: false, hoverinfo: "text",
      hovertext: axes.map((axis) => `<b>${plotted(labelOf(place))}</b><br>${plotted(axis.name)}: ${score(axis.value(place))}`),
      line: { color: looks[row].color, width: 1.8, dash: looks[row].dash }, marker: { color: looks[row].color, symbol: looks[row].symbol, size: 8 },
    })),
    layout: {
      height: 300 + below,
      margin: { l: 52, r: 26, t: 10, b: below },
      xaxis: { range: [-0.25, axes.length - 0.75], tickvals: names.map((_, number) => number), ticktext: names.map((name) => plotted(name, LONGEST_HEADING)), tickangle: isSlanted ? -40 : 0, gridcolor: palette.line, tickfont: { size: 11, color: palette.text } },
      yaxis: { range: padded(values), nticks: 8 },
    },
  };
}
