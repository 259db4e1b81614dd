/* Where models stand by the columns chosen, as embeval/leaderboard/{ranking,standings,apart}.py work it out: a test
   holds both to each other. Values are rows of numbers, NaN for a gap; of K models, pairs are kept for j < i at
   i * (i - 1) / 2 + j. */

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

/* Weighted mean of a row; NaN with a gap. */
function meanOf(row, shares) {
  let total = 0;
  for (let place = 0; place < row.length; place += 1) total += row[place] * shares[place];
  return row.length ? total : NaN;
}

/* Weighted mean of what a row has; NaN for a row with nothing. */
function meanOfKnown(row, shares) {
  let total = 0;
  let weight = 0;
  for (let place = 0; place < row.length; place += 1) {
    if (Number.isNaN(row[place])) continue;
    total += row[place] * shares[place];
    weight += shares[place];
  }
  return total / weight;
}

/* Ranks from 1, smallest first; equal ones share the better: 1, 2, 2, 4. */
function competitionRanks(values) {
  const sorted = Float64Array.from(values).sort();
  const first = new Map();
  sorted.forEach((value, place) => {
    if (!first.has(value)) first.set(value, place + 1);
  });
  return values.map((value) => first.get(value));
}

/* Rank by Borda's count; a gap gets no points, ties the average. */
function borda(rows) {
  const points = new Float64Array(rows.length);
  const nTasks = rows.length ? rows[0].length : 0;
  for (let task = 0; task < nTasks; task += 1) {
    const there = [...rows.keys()].filter((row) => !Number.isNaN(rows[row][task]));
    there.sort((one, other) => rows[other][task] - rows[one][task]);
    for (let start = 0, end; start < there.length; start = end) {
      for (end = start + 1; end < there.length && rows[there[end]][task] === rows[there[start]][task]; ) end += 1;
      for (let place = start; place < end; place += 1) points[there[place]] += rows.length - (start + 1 + end) / 2;
    }
  }
  return competitionRanks(Array.from(points, (each) => -each));
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
  const spreads = counted.map((place) => board.pairs[place]);
  const gaps = [];
  const raw = [];
  for (let i = 1; i < means.length; i += 1) {
    for (let j = 0; j < i; j += 1) {
      const gap = means[i] - means[j];
      raw.push(pairP(gap, gaps.length, spreads, shares));
      gaps.push(gap);
    }
  }
  const adjusted = holm(raw);
  return gaps.map((gap, at) => (adjusted[at] <= 1 - level ? Math.sign(gap) : 0));
}

/* The p-value of the pair at this place: its gap, the spreads of the columns and what each column counts. */
function pairP(gap, at, spreads, shares) {
  let total = 0;
  let below = 0;
  let units = 0;
  for (let number = 0; number < spreads.length; number += 1) {
    const { variances, different, freedom } = spreads[number];
    const square = shares[number] ** 2 * (variances[at] ?? NaN);
    total += square;
    below += square ** 2 / freedom;
    units += different[at];
  }
  const statistic = Math.abs(gap) / Math.sqrt(total);
  if (Number.isNaN(statistic) && !(units === 0 && gap === 0)) return NaN;
  if (units === 0) return 1;
  return Math.max(twoSided(statistic, total ** 2 / below), 2 ** (1 - units));
}

/* Letters of K models, in their order: two share one exactly where they aren't apart. `order` lists them best first. */
function lettersOf(order, apart) {
  const isApart = (one, other) => {
    const [low, high] = one < other ? [one, other] : [other, one];
    return apart[(high * (high - 1)) / 2 + low] !== 0;
  };
  let groups = [new Set(order)];
  for (const i of order) {
    for (const j of order) if (i < j && isApart(i, j)) groups = withoutPair(groups, i, j);
  }
  const place = new Map(order.map((model, rank) => [model, rank]));
  const sorted = groups.map((group) => Array.from(group, (model) => place.get(model)).sort((a, b) => a - b));
  sorted.sort(byFirstDifference);
  const names = order.map(() => "");
  sorted.forEach((group, number) => {
    for (const rank of group) names[order[rank]] += letter(number);
  });
  return names;
}

function withoutPair(groups, i, j) {
  const split = groups.flatMap((group) => {
    if (!group.has(i) || !group.has(j)) return [group];
    return [i, j].map((left) => new Set([...group].filter((model) => model !== left)));
  });
  split.sort((one, other) => other.size - one.size);
  const found = [];
  for (const group of split) {
    if (!found.some((other) => isWithin(group, other))) found.push(group);
  }
  return found;
}

function isWithin(group, other) {
  for (const model of group) if (!other.has(model)) return false;
  return true;
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
  if (!columns.length) return board.models.map(() => emptyStanding());
  const weights = columns.map((column) => column.weight);
  const groups = columns.map((column) => column.group);
  const signs = columns.map((column) => (column.higher_is_better ? 1 : -1));
  const known = board.models.map((model) => counted.map((place, number) => valueAt(model, place) * signs[number]));
  const gaps = known.map((row) => row.filter(Number.isNaN).length);
  const shares = board.rank_by === "mean_type" ? typeShares(weights, groups) : taskShares(weights);
  const eligible = [...known.keys()].filter((row) => gaps[row] === 0 || (board.gaps === "rank" && gaps[row] < columns.length));
  const bordaRanks = borda(eligible.map((row) => known[row]));
  const keys = eligible.map((row, number) =>
    board.rank_by === "borda" ? bordaRanks[number] : -meanOfKnown(known[row], shares),
  );
  const ranks = competitionRanks(keys);
  const found = known.map((row, place) => ({
    ...emptyStanding(),
    ...means(row, columns, signs),
    gaps: gaps[place],
    untested: board.models[place].standing.untested ?? "no interval",
  }));
  eligible.forEach((row, number) => {
    found[row].rank = ranks[number];
    found[row].borda = bordaRanks[number];
  });
  addIntervals(found, known, counted, shares, eligible.length);
  return found;
}

function emptyStanding() {
  return {
    rank: null, rank_low: null, rank_high: null, letters: null, mean_task: null, mean_type: null, borda: null,
    groups: {}, gaps: 0, untested: null,
  };
}

function valueAt(model, place) {
  return model.cells[place]?.value ?? NaN;
}

/* The means of a row by task, by type and within each group; values of less-is-better count with their sign turned. */
function means(row, columns, signs) {
  const weights = columns.map((column) => column.weight);
  const groups = columns.map((column) => column.group);
  const isOneWay = new Set(signs).size === 1;
  const within = {};
  for (const group of new Set(groups)) {
    const inside = [...row.keys()].filter((place) => groups[place] === group);
    within[group] = orNull(
      meanOf(inside.map((place) => row[place] * signs[place]), taskShares(inside.map((place) => weights[place]))),
    );
  }
  return {
    mean_task: isOneWay ? orNull(meanOf(row, taskShares(weights)) * signs[0]) : null,
    mean_type: isOneWay ? orNull(meanOf(row, typeShares(weights, groups)) * signs[0]) : null,
    groups: within,
  };
}

function orNull(value) {
  return Number.isNaN(value) ? null : value;
}

function addIntervals(found, known, counted, shares, nRanked) {
  if (board.tested.length < 2) return;
  const tested = board.tested;
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
  const order = [...tested.keys()].sort((one, other) => found[tested[one]].rank - found[tested[other]].rank || one - other);
  const names = lettersOf(order, apart);
  tested.forEach((row, place) => {
    found[row].rank_low = 1 + above[place];
    found[row].rank_high = nRanked - below[place];
    found[row].letters = names[place];
    found[row].untested = null;
  });
}
