/* How far the data leaves each rank open. */
const MOST_RANKS = 50;

const ranksPicture = {
  id: "picture-ranks",
  title: "Ranks, and how far they are open",
  wide: true,
  make: ({ palette, width }) => {
    const all = page.visible.filter((place) => isKnown(page.standings[place].rank));
    if (!all.length) return { words: "No model shown has a rank." };
    const rows = foremostRanks(all);
    const tested = rows.filter((place) => isKnown(page.standings[place].rank_low));
    return {
      words: ranksWords(rows, tested, all.length),
      legend: ranksLegend(rows, tested, palette),
      ...ranksDrawing(rows, tested, palette, width),
      table: () => ({
        headings: ["Model", "Rank", "Best possible", "Worst possible", "Ties"],
        rows: rows.map((place) => {
          const { rank, rank_low: low, rank_high: high, letters } = page.standings[place];
          return [labelOf(place), String(rank), ...[low, high].map((each) => (isKnown(each) ? String(each) : GAP)), letters ?? GAP];
        }),
      }),
    };
  },
};

/* By rank; of many models those with an interval come before others. */
function foremostRanks(places) {
  const order = [...places].sort((one, other) => page.standings[one].rank - page.standings[other].rank);
  const tested = order.filter((place) => isKnown(page.standings[place].rank_low));
  const kept = new Set([...new Set([...tested, ...order])].slice(0, MOST_RANKS));
  return order.filter((place) => kept.has(place));
}

function ranksWords(rows, tested, n) {
  const left = rows.length < n ? `${rows.length} of ${plural(n, "ranked model")}, those with an interval first. ` : "";
  if (!tested.length) return `${left}No interval of a rank: models without items can't be tested.`;
  const level = `${Number((board.level * 100).toPrecision(4))} %`;
  return `${left}${leadersWords(tested, n)} Bars reach from the best to the worst rank that the data leaves open (${level}, all pairs corrected by Holm).`;
}

/* Which of these models may be the best; empty where none is tested. */
function leadersWords(places = board.models.keys(), n = null) {
  const ranked = [...places].filter((place) => isKnown(page.standings[place].rank));
  const tested = ranked.filter((place) => isKnown(page.standings[place].rank_low));
  if (!tested.length) return "";
  const leaders = tested.filter((place) => page.standings[place].rank_low === 1).map(labelOf);
  const among = tested.length < (n ?? ranked.length) ? `Of the ${plural(tested.length, "model")} tested, ` : "";
  return leaders.length === 1 ? `${among}${listed(leaders)} is the best by the data.` : `${among}${listed(leaders, 4)} may each be the best.`;
}

function ranksLegend(rows, tested, palette) {
  const found = [];
  if (tested.length) found.push([legendMark({ color: palette.accent, dash: "solid" }), "rank with its interval"]);
  if (tested.length < rows.length) found.push([legendMark({ color: palette.muted, hollow: true }), "no items, no interval"]);
  if (tested.length) found.push([element("span", { class: "letters" }, "a b"), "models that share a letter can't be told apart"]);
  return found.map(([mark, text]) => legendEntry(mark, text));
}

function ranksDrawing(rows, tested, palette, width) {
  const place = (model) => rows.indexOf(model);
  const standings = rows.map((model) => page.standings[model]);
  const names = rows.map(labelOf);
  const room = roomFor(names.map((name) => shortened(name, 60)), width);
  const last = Math.max(...standings.map(({ rank, rank_high: high }) => Math.max(rank, high ?? 0)));
  const letters = standings.map((standing) => standing.letters ?? "");
  const right = Math.min(Math.max(...letters.map((each) => textWidth(each, 11)), 0) + 16, width * 0.25);
  const bars = tested.flatMap((model) => [page.standings[model].rank_low, page.standings[model].rank_high, null]);
  const dots = (models, marker) => ({
    x: models.map((model) => page.standings[model].rank), y: models.map(place), mode: "markers", customdata: models, cliponaxis: false,
    hoverinfo: "text", hovertext: models.map(rankHover), marker,
  });
  return {
    traces: [
      { x: bars, y: tested.flatMap((model) => [place(model), place(model), null]), mode: "lines", hoverinfo: "skip", cliponaxis: false, line: { color: palette.accent, width: 5 }, opacity: 0.4 },
      dots(tested, { color: palette.accent, size: 9 }),
      dots(rows.filter((model) => !tested.includes(model)), { color: palette.muted, size: 9, symbol: "circle-open" }),
    ],
    layout: {
      height: rows.length * (rows.length > 20 ? 20 : 24) + 56,
      margin: { l: room, r: right, t: 34, b: 10 },
      annotations: letters.map((text, row) => ({
        xref: "paper", x: 1, xanchor: "left", xshift: 6, y: row, text: plotted(fitting(text, right - 10)), showarrow: false, font: { size: 11, color: palette.muted },
      })),
      xaxis: { side: "top", range: [0.5, last + 0.5], tickvals: wholeTicks(last), showline: false, title: { text: "Rank", standoff: 4, font: { size: 12, color: palette.muted } } },
      yaxis: {
        range: [rows.length - 0.4, -0.6], tickvals: rows.map((_, row) => row), tickfont: { size: 11, color: palette.text },
        ticktext: names.map((name) => plotted(fitting(name, room - 12))),
      },
    },
  };
}

function wholeTicks(last) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((each) => last / each <= 14) ?? 1000;
  return [1, ...Array.from({ length: Math.floor(last / step) }, (_, number) => (number + 1) * step).filter((rank) => rank > 1)];
}

function rankHover(place) {
  const { rank, rank_low: low, rank_high: high, letters, untested } = page.standings[place];
  const open = isKnown(low) ? `between ${low} and ${high}, letters ${letters}` : `no interval: ${plotted(untested ?? "not tested", 80)}`;
  return `<b>${plotted(labelOf(place))}</b><br>rank ${rank}<br>${open}`;
}
