/* The board's data in the shape of Snapshot (leaderboard/snapshot.py), as the other scripts read it. */
"use strict";
const board = JSON.parse(document.getElementById("data").textContent);
