"""What does the cache of vectors save, and what does it take?

- SciFact with all-MiniLM-L6-v2 by ``embeval run``, cold and then warm in a new process each: seconds of the whole
  command, start of Python and confidence intervals included.
- Another list of metrics, and one more task on the same texts: texts that go through the model.
- 1,000,000 short texts with the hashing backend into the cache: memory of the process and bytes on disk.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import data_folder, write

TEXTS = 1_000_000
BLOCK = 20_000
DIM = 256


def main() -> None:
    """Measures and writes the figures."""
    folder = data_folder()
    if folder is None:
        sys.exit("bench_cache.py needs SciFact: set EMBEVAL_TEST_DATA.")
    with tempfile.TemporaryDirectory() as place:
        scifact = _scifact(folder, Path(place))
    with tempfile.TemporaryDirectory() as place:
        million = _million(Path(place))
    write("cache", {"scifact": scifact, "million_texts": million})


def _scifact(data: Path, place: Path) -> dict[str, Any]:
    def run(*words: str) -> tuple[float, list[int]]:
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "embeval", "run", "-m", "demo", "--data", str(data), "--json", "--quiet", *words],
            cwd=place,
            env={**os.environ, "EMBEVAL_CACHE": str(place / "cache"), "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        seconds = time.perf_counter() - began
        return seconds, [each["timings"]["texts_encoded"] for each in json.loads(done.stdout)["results"]]

    cold_s, cold = run("-t", "SciFact")
    warm = [run("-t", "SciFact", "--overwrite") for _ in range(3)]
    warm_s = min(seconds for seconds, _ in warm)
    _, other_metrics = run("-t", "SciFact,cutoffs=[2, 7]", "--overwrite")
    _, other_task = run("-t", f"{data / 'retrieval' / 'SciFact'},name=again,ties=average")
    return {
        "cold_s": round(cold_s, 1),
        "warm_s": [round(seconds, 2) for seconds, _ in warm],
        "times_as_fast_when_warm": round(cold_s / warm_s, 1),
        "texts_encoded": {
            "cold": cold,
            "warm": warm[0][1],
            "other metrics": other_metrics,
            "one more task": other_task,
        },
    }


CHILD = f"""
import re, sys, threading, time
from pathlib import Path
from embeval.core.specs import ModelSpec, Role
from embeval.encoders import loading
from embeval.encoders.cache import VectorCache

peak = 0
def watch():
    global peak
    while True:
        found = re.search(r"RssAnon:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
        peak = max(peak, int(found[1]))
        time.sleep(0.05)

threading.Thread(target=watch, daemon=True).start()
cache = VectorCache(Path(sys.argv[1]), max_bytes=1 << 40)
spec = ModelSpec(name="hashing", backend="hashing", args={{"dim": {DIM}}})
encoder = loading.load(loading.resolve(spec), None, cache)
began = time.perf_counter()
for start in range(0, {TEXTS}, {BLOCK}):
    encoder.encode([f"short text number {{n}}" for n in range(start, start + {BLOCK})], role=Role.DOCUMENT)
print(peak, time.perf_counter() - began, cache.trouble)
"""


def _million(place: Path) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", CHILD, str(place)], capture_output=True, text=True, check=True)
    found = re.fullmatch(r"(\d+) ([\d.]+) None", done.stdout.strip())
    assert found is not None, done.stdout
    on_disk = sum(file.stat().st_blocks * 512 for file in place.rglob("*") if file.is_file())
    return {
        "texts": TEXTS,
        "dimensions": DIM,
        "seconds": round(float(found[2]), 1),
        "peak_anonymous_mib": round(int(found[1]) / 1024),
        "bytes_per_vector": round(on_disk / TEXTS, 1),
        "times_the_raw_vectors": round(on_disk / (TEXTS * DIM * 4), 3),
    }


if __name__ == "__main__":
    main()
