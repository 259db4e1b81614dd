/* The board's data in the shape of Snapshot (leaderboard/snapshot.py), as the other scripts read it. In the page the
   cells lie by column, and what all models of a column share is told once (leaderboard/render/html.py). */
"use strict";
const board = unpacked(JSON.parse(document.getElementById("data").textContent));

function unpacked(packed) {
  const { cells, ...rest } = packed;
  packed.models.forEach((model, row) => {
    model.cells = cells.map((column) => cellOf(column, row));
  });
  return rest;
}

function cellOf({ there, ...fields }, row) {
  if (there !== null && !there[row]) return null;
  const cell = {};
  for (const name in fields) cell[name] = Array.isArray(fields[name]) ? fields[name][row] : fields[name];
  return cell;
}
