/* Each task of each model: as values, or as differences to one of them. */
const MOST_HEAT = 40;
const heatView = { against: board.reference, shown: isKnown(board.reference) ? "differences" : "values" };

const heatPicture = {
  id: "picture-tasks",
  title: "Task by task",
  wide: true,
  controls: (changed) => {
    const models = board.models.map((model, place) => [String(place), model.label]);
    heatView.against ??= page.visible[0] ?? 0;
    return [
      choiceBox("Show", [["differences", "Differences"], ["values", "Values"]], heatView.shown, (value) => {
        heatView.shown = value;
        changed();
      }),
      choiceBox("Compared with", models, String(heatView.against), (value) => {
        heatView.against = Number(value);
        heatView.shown = "differences";
        document.querySelector("#picture-tasks select").value = "differences";
        changed();
      }),
    ];
  },
  make: ({ palette, width }) => {
    const columns = inGroups(page.chosen);
    const rows = page.visible.slice(0, MOST_HEAT);
    if (!columns.length || !rows.length) return { words: "Nothing is chosen that could be shown." };
    const isDifference = heatView.shown === "differences";
    const cells = rows.map((place) => columns.map((column) => heatCell(place, column, isDifference)));
    return {
      words: heatWords(rows, cells, isDifference),
      ...heatDrawing({ rows, columns, cells, isDifference, palette, width }),
      table: () => ({
        headings: ["Model", ...columns.map((column) => board.columns[column].heading)],
        rows: rows.map((place, row) => [labelOf(place), ...cells[row].map(({ number }) => (isDifference ? signed(number) : score(number)))]),
      }),
    };
  },
};

/* {number: what is told, good: the same with better above, value} */
function heatCell(place, column, isDifference) {
  const value = VALUES[column][place];
  const base = VALUES[column][heatView.against];
  const number = !isDifference ? value : isKnown(value) && isKnown(base) ? value - base : null;
  return { number, value, good: isKnown(number) ? (board.columns[column].higher_is_better ? number : -number) : null };
}

/* Values of unlike tasks have no scale in common: each column is shaded within itself. Differences of scores have. */
function shades(cells, columns, isDifference) {
  const inColumn = (number) => cells.map((row) => row[number].good).filter(isKnown);
  if (!isDifference) {
    return columns.map((_, number) => {
      const found = inColumn(number);
      const [low, high] = [Math.min(...found), Math.max(...found)];
      return (good) => (high > low ? (2 * (good - low)) / (high - low) - 1 : 0);
    });
  }
  const areScores = columns.map((column) => VALUES[column].every((value) => Math.abs(value ?? 0) <= 1));
  const largest = (numbers) => Math.max(1e-12, ...numbers.flatMap(inColumn).map(Math.abs));
  const shared = largest([...columns.keys()].filter((number) => areScores[number]));
  return columns.map((_, number) => {
    const most = areScores[number] ? shared : largest([number]);
    // The root lets small differences be seen beside large ones.
    return (good) => Math.sign(good) * Math.sqrt(Math.abs(good) / most);
  });
}

function heatDrawing({ rows, columns, cells, isDifference, palette, width }) {
  const names = rows.map((place) => labelOf(place) + (isDifference && place === heatView.against ? " (this one)" : ""));
  const room = Math.min(roomFor(names.map((name) => shortened(name, 60)), width), Math.max(width * 0.34, 110));
  const cellWidth = Math.max((width - room - 12) / columns.length, isPrinting ? 8 : 26);
  const hasTexts = cellWidth >= 46;
  const headings = columns.map((column) => shortened(board.columns[column].heading, LONGEST_HEADING));
  const isSlanted = headings.some((text) => textWidth(text, 11) > cellWidth - 4);
  const top = isSlanted ? slantedRoom(headings) : 26;
  const shade = shades(cells, columns, isDifference);
  const z = cells.map((row) => row.map(({ good }, number) => (isKnown(good) ? shade[number](good) : null)));
  const texts = cells.map((row) => row.map(({ number }) => (isKnown(number) ? heatText(number, isDifference) : GAP)));
  const inks = z.map((row) => row.map((each) => (isKnown(each) && (isDifference ? Math.abs(each) : each) > 0.6 ? palette.ground : palette.text)));
  const total = room + cellWidth * columns.length + 12;
  return {
    traces: [{
      type: "heatmap", z, zmin: -1, zmax: 1, xgap: 1, ygap: 1, showscale: false, hoverongaps: true, hoverinfo: "text",
      x: columns.map((_, number) => number), y: rows.map((_, row) => row), customdata: rows.map((place) => columns.map(() => place)),
      hovertext: rows.map((place, row) => columns.map((column, number) => heatHover(place, column, cells[row][number]))),
      colorscale: isDifference ? [[0, palette.worse], [0.5, palette.middle], [1, palette.better]] : [[0, palette.middle], [1, palette.better]],
    }],
    legend: heatLegend(isDifference, palette),
    layout: {
      width: Math.max(total, width),
      height: rows.length * 26 + top + 34,
      margin: { l: room, r: Math.max(width - total, 0) + 12, t: top, b: 34 },
      plot_bgcolor: palette.faint,
      annotations: [...(hasTexts ? heatTexts(texts, inks) : []), ...groupLabels(columns, cellWidth, palette)],
      shapes: groupEdges(columns, palette),
      xaxis: { side: "top", range: [-0.5, columns.length - 0.5], showgrid: false, ticks: "", tickangle: isSlanted ? 40 : 0, tickvals: columns.map((_, number) => number), ticktext: headings.map((text) => plotted(text)), tickfont: { size: 11, color: palette.text } },
      yaxis: { range: [rows.length - 0.5, -0.5], showgrid: false, ticks: "", tickvals: rows.map((_, row) => row), ticktext: names.map((name) => plotted(fitting(name, room - 12))), tickfont: { size: 11, color: palette.text } },
    },
  };
}

/* .812 and +.012: four characters fit where six don't. */
function heatText(number, isDifference) {
  const size = Math.abs(number);
  if (size > 1) return `${number < 0 ? "−" : isDifference ? "+" : ""}${digits(size)}`;
  const text = size.toFixed(3).replace(/^0/, "");
  if (!isDifference) return (number < 0 ? "−" : "") + text;
  return size === 0 ? "0" : `${number < 0 ? "−" : "+"}${text}`;
}

function heatTexts(texts, inks) {
  return texts.flatMap((row, y) => row.map((text, x) => ({ x, y, text, showarrow: false, font: { size: 11, color: inks[y][x] } })));
}

function groupRuns(columns) {
  const runs = [];
  columns.forEach((column, number) => {
    const { group } = board.columns[column];
    if (runs.at(-1)?.group === group) runs.at(-1).end = number;
    else runs.push({ group, start: number, end: number });
  });
  return runs;
}

function groupLabels(columns, cellWidth, palette) {
  const roomOf = ({ start, end }) => cellWidth * (end - start + 1) - 4;
  const fits = (run) => textWidth(fitting(run.group, roomOf(run)), 11) <= roomOf(run);
  return groupRuns(columns).filter(fits).map(({ group, start, end }) => ({
    x: (start + end) / 2, yref: "paper", y: 0, yanchor: "top", yshift: -6, showarrow: false, font: { size: 11, color: palette.muted },
    text: plotted(fitting(group, roomOf({ start, end }))),
  }));
}

function groupEdges(columns, palette) {
  return groupRuns(columns).slice(1).map(({ start }) => ({
    type: "line", x0: start - 0.5, x1: start - 0.5, yref: "paper", y0: 0, y1: 1, line: { color: palette.muted, width: 1.5 },
  }));
}

function heatLegend(isDifference, palette) {
  const [low, high] = isDifference ? ["worse", "better"] : ["worst of the task", "best"];
  const ramp = element("span", { class: "ramp" });
  ramp.style.background = `linear-gradient(to right, ${isDifference ? `${palette.worse}, ` : ""}${palette.middle}, ${palette.better})`;
  return [element("li", {}, low, ramp, high)];
}

function heatHover(place, column, { number, value }) {
  const { heading, metric } = board.columns[column];
  const cell = board.models[place].cells[column];
  const lines = [`<b>${plotted(labelOf(place))}</b>`, `${plotted(heading)} ${plotted(metric)}: ${isKnown(value) ? score(value) : "no value"} ${interval(cell?.low, cell?.high)}`];
  if (heatView.shown === "differences" && place !== heatView.against && isKnown(number)) {
    const test = pairTest(place, heatView.against, [column]);
    lines.push(`${signed(number)} to ${plotted(labelOf(heatView.against))}${test ? `, p ${probability(test.p).replace("<", "&lt;")} (of this pair alone)` : ""}`);
  }
  return lines.join("<br>");
}

function heatWords(rows, cells, isDifference) {
  const part = rows.length < page.visible.length ? `The first ${rows.length} of ${plural(page.visible.length, "model")} shown. ` : "";
  if (!isDifference) return `${part}Values; each task is shaded from its worst to its best model here.`;
  const found = cells.filter((_, row) => rows[row] !== heatView.against).flat().map(({ good }) => good).filter(isKnown);
  const [better, worse] = [found.filter((good) => good > 0), found.filter((good) => good < 0)].map(({ length }) => length.toLocaleString("en"));
  const told = found.length ? `of ${plural(found.length, "value")}, ${better} are better and ${worse} worse` : "no other model shown has a value to hold against it";
  return `${part}Differences to ${shortened(labelOf(heatView.against), 60)}: ${told}.`;
}
