/* Where models stand by the columns chosen, as embeval/leaderboard/{ranking,standings,apart}.py work it out: a test
   holds both to each other. Values are rows of numbers, NaN for a gap; of K models, pairs are kept for j < i at
   i * (i - 1) / 2 + j. */

const ROUNDING = 1e-12; // in parts of the largest: values that differ by no more are equal
const TWO_WAYS = "higher is better in some columns and lower in others, so there is no mean to test";
const UNITS = "the columns have different units, so there is no mean to test";

function sum(numbers) {
  let total = 0;
  for (const each of numbers) total += each;
  return total;
}

function taskShares(weights) {
  const total = sum(weights);
  return weights.map((weight) => weight / total);
}

function typeShares(weights, groups) {
  const within = new Map();
  groups.forEach((group, place) => within.set(group, (within.get(group) ?? 0) + weights[place]));
  return weights.map((weight, place) => weight / within.get(groups[place]) / within.size);
}

/* Weighted mean of a row, added up task by task as Python does; NaN with a gap. */
function meanOf(row, shares) {
  let total = 0;
  for (let place = 0; place < shares.length; place += 1) total += shares[place] * row[place];
  return total;
}

/* The rows with each gap as the worst that any of them has there; 0 where none has a value. */
function atWorst(rows) {
  const worst = (rows[0] ?? []).map((_, task) =>
    rows.reduce((least, row) => (Number.isNaN(row[task]) ? least : Math.min(least, row[task])), Infinity));
  return rows.map((row) => row.map((value, task) => {
    if (!Number.isNaN(value)) return value;
    return worst[task] === Infinity ? 0 : worst[task];
  }));
}

/* Ranks from 1, smallest first; ones that are equal, but for rounding, share the better: 1, 2, 2, 4. */
function competitionRanks(values) {
  const order = Array.from(values, (_, place) => place).sort((one, other) => values[one] - values[other]);
  const smallest = ROUNDING * values.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
  const ranks = new Array(values.length);
  order.forEach((place, number) => {
    const before = order[number - 1];
    const isNew = number === 0 || values[place] - values[before] > smallest;
    ranks[place] = isNew ? number + 1 : ranks[before];
  });
  return ranks;
}

/* Rank by Borda's count; a gap gets no points, ties the average. */
function borda(rows) {
  const points = new Float64Array(rows.length);
  const nTasks = rows.length ? rows[0].length : 0;
  for (let task = 0; task < nTasks; task += 1) {
    // Numbers sort many times faster by themselves than by what a function says of them.
    const values = Float64Array.from(rows, (row) => -row[task]).filter((value) => !Number.isNaN(value)).sort();
    rows.forEach((row, place) => {
      if (Number.isNaN(row[task])) return;
      const average = (countBelow(values, -row[task], false) + 1 + countBelow(values, -row[task], true)) / 2;
      points[place] += rows.length - average;
    });
  }
  return competitionRanks(points.map((each) => -each));
}

/* How many of sorted numbers lie below a value, or no higher. */
function countBelow(sorted, value, orEqual) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value || (orEqual && sorted[middle] === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The natural logarithm of the gamma function, for positive numbers. Source: Abramowitz & Stegun 6.1.41. */
function logGamma(x) {
  let shift = 0;
  while (x < 20) {
    shift += Math.log(x);
    x += 1;
  }
  const inverse = 1 / (x * x);
  const series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse / 1188)))) / x;
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series - shift;
}

/* P(|T| >= statistic), as embeval/stats/student.py. */
function twoSided(statistic, freedom) {
  const t = Math.abs(statistic);
  if (t === Infinity) return 0;
  return incompleteBeta(freedom / (freedom + t * t), (t * t) / (freedom + t * t), freedom / 2, 0.5);
}

function incompleteBeta(x, rest, a, b) {
  if (x <= 0) return 0;
  if (rest <= 0) return 1;
  const power = x < 0.5 ? Math.log(x) : Math.log1p(-rest);
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * power + b * Math.log(rest));
  if (x < (a + 1) / (a + b + 2)) return (front * betaFraction(x, a, b)) / a;
  return 1 - (front * betaFraction(rest, b, a)) / b;
}

function betaFraction(x, a, b) {
  const kept = (value) => (Math.abs(value) > 1e-300 ? value : 1e-300);
  let c = 1;
  let d = 1 / kept(1 - ((a + b) * x) / (a + 1));
  let value = d;
  for (let m = 1; m < 500; m += 1) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    for (const step of [even, odd]) {
      d = 1 / kept(1 + step * d);
      c = kept(1 + step / c);
      value *= d * c;
    }
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return value;
}

/* P-values adjusted by Holm; NaN is no test. */
function holm(p) {
  const order = [...p.keys()].filter((place) => !Number.isNaN(p[place])).sort((one, other) => p[one] - p[other]);
  const adjusted = new Float64Array(p.length).fill(NaN);
  let largest = 0;
  order.forEach((place, number) => {
    largest = Math.max(largest, Math.min(1, p[place] * (order.length - number)));
    adjusted[place] = largest;
  });
  return adjusted;
}

/* For each pair of the models tested whether, and which way, they are told apart: 1 where the first, i, is shown to be
   better than j, -1 where it is worse. */
function toldApart(means, counted, shares, level) {
  const together = columnsByTask(counted, shares);
  const smallest = ROUNDING * Math.max(...means.map(Math.abs));
  const gaps = [];
  const raw = [];
  for (let i = 1; i < means.length; i += 1) {
    for (let j = 0; j < i; j += 1) {
      const gap = Math.abs(means[i] - means[j]) <= smallest ? 0 : means[i] - means[j];
      raw.push(pairP(gap, gaps.length, together));
      gaps.push(gap);
    }
  }
  const adjusted = holm(raw);
  return gaps.map((gap, at) => (adjusted[at] <= 1 - level ? Math.sign(gap) : 0));
}

/* Columns of one task and split may hold the same items: their pairs and shares, side by side. */
function columnsByTask(counted, shares) {
  const found = new Map();
  counted.forEach((place, number) => {
    const key = taskOf(place);
    found.set(key, [...(found.get(key) ?? []), { ...board.pairs[place], share: shares[number] }]);
  });
  return [...found.values()];
}

/* What columns have in common that may hold the same items. */
function taskOf(place) {
  const { task, split } = board.columns[place];
  return JSON.stringify([task, split]);
}

/* The p-value of the pair at this place: standard errors of one task are added up, variances of several. */
function pairP(gap, at, together) {
  let total = 0;
  let below = 0;
  let units = 0;
  for (const alike of together) {
    const square = squareOf(alike, at);
    total += square;
    below += square ** 2 / fewest(alike);
    units += alike.reduce((most, { different }) => Math.max(most, different[at]), 0);
  }
  if (Number.isNaN(total)) return NaN;
  const statistic = Math.abs(gap) / Math.sqrt(total);
  if (units === 0 || Number.isNaN(statistic)) return 1;
  return Math.max(twoSided(statistic, total ** 2 / below), 2 ** (1 - units));
}

function squareOf(alike, at) {
  const own = ({ variances, share }) => share ** 2 * (variances[at] ?? NaN);
  return alike.length === 1 ? own(alike[0]) : sum(alike.map((each) => Math.sqrt(own(each)))) ** 2;
}

function fewest(alike) {
  return alike.reduce((least, { freedom }) => Math.min(least, freedom), Infinity);
}

/* Letters of K models, in their order: two share one exactly where they aren't apart. `order` lists them best first. */
function lettersOf(order, apart) {
  const at = (one, other) => (one < other ? (other * (other - 1)) / 2 + one : (one * (one - 1)) / 2 + other);
  const isApart = (one, other) => one !== other && apart[at(one, other)] !== 0;
  const told = order.map(() => new Set());
  const groups = [];
  const pairs = order.flatMap((one, rank) => order.slice(rank + 1).map((other) => [one, other]));
  for (const [one, other] of [...pairs, ...order.map((model) => [model, model])]) {
    if (isApart(one, other) || told[one].has(other)) continue;
    const group = grown(one === other ? [one] : [one, other], order, isApart, told);
    for (const each of group) for (const model of group) told[each].add(model);
    groups.push(group);
  }
  return lettersByGroup(groups, order);
}

/* The group with all that fit in, first those that share no letter yet with most of it, the best of them first. */
function grown(start, order, isApart, told) {
  const group = [...start];
  let fitting = order.filter((model) => !group.includes(model) && !group.some((other) => isApart(model, other)));
  while (fitting.length) {
    const news = fitting.map((model) => group.filter((other) => !told[model].has(other)).length);
    const chosen = fitting[news.indexOf(Math.max(...news))];
    group.push(chosen);
    fitting = fitting.filter((model) => model !== chosen && !isApart(model, chosen));
  }
  return group;
}

/* The letters of each model: a for the group of the best. */
function lettersByGroup(groups, order) {
  const rankOf = new Map(order.map((model, rank) => [model, rank]));
  const sorted = groups.map((group) => group.map((model) => rankOf.get(model)).sort((one, other) => one - other));
  sorted.sort(byFirstDifference);
  const names = order.map(() => "");
  sorted.forEach((group, number) => {
    for (const rank of group) names[order[rank]] += letter(number);
  });
  return names;
}

function byFirstDifference(one, other) {
  for (let place = 0; place < Math.min(one.length, other.length); place += 1) {
    if (one[place] !== other[place]) return one[place] - other[place];
  }
  return one.length - other.length;
}

function letter(number) {
  return String.fromCharCode(97 + (number % 26)) + (number >= 26 ? Math.floor(number / 26) : "");
}

/* The standings of all models by these columns. */
function standingsOf(chosen) {
  const counted = chosen.filter((place) => board.columns[place].refused === null);
  const columns = counted.map((place) => board.columns[place]);
  if (!columns.length) return board.models.map(() => ({ ...EMPTY, groups: {}, untested: "no column is ranked" }));
  const signs = columns.map((column) => (column.higher_is_better ? 1 : -1));
  const hasMean = areAlike(columns);
  const known = board.models.map((_, row) => counted.map((place, number) => (VALUES[place][row] ?? NaN) * signs[number]));
  const gaps = known.map((row) => row.filter(Number.isNaN).length);
  const [ranks, bordaRanks] = ranksOf(known, gaps, columns, hasMean);
  const means = meansOf(columns, signs);
  const otherwise = whyNothingIsTested(columns);
  const found = known.map((row, place) => ({
    ...EMPTY, ...means(row), gaps: gaps[place], rank: ranks[place], borda: bordaRanks[place],
    untested: board.models[place].standing.untested ?? whyUntested(row, columns, otherwise),
  }));
  if (hasMean) addIntervals(found, known, counted, rankShares(columns));
  return found;
}

/* Whether columns have a mean: of one direction, and of one unit where they are losses, times or perplexities. */
function areAlike(columns) {
  const isOneWay = new Set(columns.map((column) => column.higher_is_better)).size === 1;
  return isOneWay && (columns[0].higher_is_better || new Set(columns.map((column) => column.metric)).size === 1);
}

const EMPTY = {
  rank: null, rank_low: null, rank_high: null, letters: null, mean_task: null, mean_type: null, borda: null, gaps: 0,
};

/* What each column counts in the mean that is tested. */
function rankShares(columns) {
  const weights = columns.map((column) => column.weight);
  return board.rank_by === "mean_type" ? typeShares(weights, columns.map((column) => column.group)) : taskShares(weights);
}

/* [rank, rank by Borda's count] of all models; null for those that have none. */
function ranksOf(known, gaps, columns, hasMean) {
  const most = board.gaps === "rank" ? columns.length - 1 : 0;
  const eligible = [...known.keys()].filter((row) => gaps[row] <= most);
  const rows = eligible.map((row) => known[row]);
  const within = (ranks) => {
    const found = new Array(known.length).fill(null);
    eligible.forEach((row, number) => {
      found[row] = ranks[number];
    });
    return found;
  };
  const byBorda = within(borda(rows));
  if (board.rank_by === "borda") return [byBorda, byBorda];
  if (!hasMean) return [within([]).map(() => null), byBorda];
  const shares = rankShares(columns);
  return [within(competitionRanks(atWorst(rows).map((row) => -meanOf(row, shares)))), byBorda];
}

function whyUntested(row, columns, otherwise) {
  const missing = columns.filter((_, place) => Number.isNaN(row[place])).map((column) => column.heading);
  if (missing.length === 1) return `a gap on ${missing[0]}`;
  if (missing.length) return `gaps on ${missing[0]} and ${plural(missing.length - 1, "more column")}`;
  return otherwise;
}

/* Why a model without a gap has no interval, unless somebody says it better. */
function whyNothingIsTested(columns) {
  if (areAlike(columns)) return "no interval: fewer than two models have items";
  return new Set(columns.map((column) => column.higher_is_better)).size > 1 ? TWO_WAYS : UNITS;
}

/* Makes the means of a row by task, by type and within each group; null with a gap, or of columns that have none. */
function meansOf(columns, signs) {
  const weights = columns.map((column) => column.weight);
  const groups = columns.map((column) => column.group);
  const hasMean = areAlike(columns);
  const [byTask, byType] = [taskShares(weights), typeShares(weights, groups)];
  const within = [...new Set(groups)].map((name) => {
    const inside = [...groups.keys()].filter((place) => groups[place] === name);
    const hasOwn = areAlike(inside.map((place) => columns[place]));
    return { name, inside, hasOwn, shares: taskShares(inside.map((place) => weights[place])) };
  });
  return (row) => ({
    mean_task: hasMean ? orNull(meanOf(row, byTask) * signs[0]) : null,
    mean_type: hasMean ? orNull(meanOf(row, byType) * signs[0]) : null,
    groups: Object.fromEntries(within.map(({ name, inside, hasOwn, shares }) => [
      name, hasOwn ? orNull(meanOf(inside.map((place) => row[place] * signs[place]), shares)) : null,
    ])),
  });
}

function orNull(value) {
  return Number.isNaN(value) ? null : value;
}

function addIntervals(found, known, counted, shares) {
  const { tested } = board;
  if (tested.length < 2) return;
  const apart = toldApart(tested.map((row) => meanOf(known[row], shares)), counted, shares, board.level);
  const above = tested.map(() => 0);
  const below = tested.map(() => 0);
  for (let i = 1; i < tested.length; i += 1) {
    for (let j = 0; j < i; j += 1) {
      const way = apart[(i * (i - 1)) / 2 + j];
      if (way > 0) [above[j], below[i]] = [above[j] + 1, below[i] + 1];
      if (way < 0) [above[i], below[j]] = [above[i] + 1, below[j] + 1];
    }
  }
  const rankOf = (place) => found[tested[place]].rank;
  const order = [...tested.keys()].sort((one, other) => rankOf(one) - rankOf(other) || one - other);
  const names = lettersOf(order, apart);
  const nRanked = found.filter((standing) => standing.rank !== null).length;
  tested.forEach((row, place) => {
    found[row].rank_low = Math.min(rankOf(place), 1 + above[place]);
    found[row].rank_high = Math.max(rankOf(place), nRanked - below[place]);
    found[row].letters = names[place];
    found[row].untested = null;
  });
}
