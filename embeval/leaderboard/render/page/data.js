/* The board's data in the shape of Snapshot (leaderboard/snapshot.py), as the other scripts read it. In the page values
   and cells lie by column, and what all models of a column share is told once (leaderboard/render/html.py). Values are
   read at once; what else is known of cells, and the pairs of models, when somebody asks for it. */
"use strict";
const { values: VALUES, ...board } = readData("data"); // VALUES[column][place], null for a gap
const details = { read: null };

unpack();

function readData(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

function unpack() {
  later(board, "pairs", () => readDetails().pairs);
  board.models.forEach((model, place) => later(model, "cells", () => VALUES.map((_, column) => cellOf(place, column))));
}

/* A property that is worked out once, when somebody asks for it. */
function later(owner, name, make) {
  const property = { configurable: true, enumerable: true };
  const get = () => {
    const value = make();
    Object.defineProperty(owner, name, { ...property, value, writable: true });
    return value;
  };
  Object.defineProperty(owner, name, { ...property, get });
}

function readDetails() {
  details.read ??= readData("details");
  return details.read;
}

function cellOf(place, column) {
  const { there, ...fields } = readDetails().cells[column];
  if (there !== null && !there[place]) return null;
  const cell = { value: VALUES[column][place] };
  for (const name in fields) cell[name] = ofModel(fields[name], place);
  return cell;
}

function ofModel(told, place) {
  return Array.isArray(told) ? told[place] : told;
}

/* Whether a model's makers say that it was trained on the data of a column. */
function isTrainedOn(place, column) {
  const { there, trained_on: told } = readDetails().cells[column];
  return (there === null || Boolean(there[place])) && ofModel(told, place) === "declared";
}
