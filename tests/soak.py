"""A soak: `python -m tests.soak [KILLS] [SEED]` hits a run of shd_m10 with SIGKILL at random, then lets it finish.

Hit are the run itself, which is then started again, one of its workers, or the server that they are forked from. At
the end the records must be those of an undisturbed run, and nothing finished may have been computed twice. That is
counted: each run writes down which (trial, score) pairs it asks for and which it has kept, in this order. None may be
asked for that was kept before, no pair may be in two pieces, and no piece may have been written again.
"""

import json
import random
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

STUDY = ["+experiment=shd_m10", "stages=[run]", "parallel.n_jobs=2"]
PAIRS = 900 * 4

# Batches of one trial, so that there are many moments; notes are [what, key of the store, replicate].
NOTING = """
import json, os, sys
from benchmark import __main__, records, runner
runner.BATCH_SECONDS = 0.0
keys, targets = {}, {}
pieces, score_key, save, arguments = runner.pieces, runner.score_key, records.Pieces.save, runner._arguments
notes = open(sys.argv.pop(1), "a", buffering=1)

def note(what, key, replicates):
    notes.write("".join(json.dumps([what, key, replicate]) + chr(10) for replicate in replicates))

def noted_score_key(config):
    key = score_key(config)
    targets[key] = config["_target_"]
    return key

def noted_pieces(store, study, cell, score):
    found = pieces(store, study, cell, score)
    keys[cell, targets[score]] = found.folder.name
    return found

def noted_save(self, columns):
    save(self, columns)
    note("kept", self.folder.name, columns["replicate"])

def noted_arguments(batch, *rest):
    for name in batch.scorers:
        note("asked", keys[batch.cell, "scorers." + name.upper()], batch.replicates)
    return arguments(batch, *rest)

runner.score_key, runner.pieces = noted_score_key, noted_pieces
records.Pieces.save, runner._arguments = noted_save, noted_arguments
__main__.whole()
"""


def kept(folder: Path) -> dict[tuple[str, int], tuple[str, int, int]]:
    """The pairs that are in the store, with the file that each is in, its inode and the time of its writing."""
    found: dict[tuple[str, int], tuple[str, int, int]] = {}
    for file in (folder / ".store").rglob("*.json"):
        status = file.stat()
        for replicate in json.loads(file.read_text().partition("\n")[2])["replicate"]:
            pair = file.parent.name, replicate
            assert pair not in found, f"{pair} is in {file} and in {found[pair]}"
            found[pair] = file.name, status.st_ino, status.st_mtime_ns
    return found


def count(notes: Path, what: str) -> int:
    return notes.read_text().count(f'["{what}"') if notes.exists() else 0


def soak(folder: Path, kills: int, rng: random.Random) -> None:
    """Kill, continue, and count."""
    undisturbed, disturbed = folder / "undisturbed", folder / "disturbed"
    subprocess.run([sys.executable, "-m", "benchmark", *STUDY, f"results_dir={undisturbed}"], check=True)
    hits: dict[str, int] = {"run": 0, "worker": 0, "server": 0}
    runs = asked = 0
    while True:
        before, notes = kept(disturbed), folder / f"notes.{runs}"
        arguments = [sys.executable, "-c", NOTING, str(notes), *STUDY, f"results_dir={disturbed}"]
        process = subprocess.Popen(arguments)
        runs += 1
        while sum(hits.values()) < kills and process.poll() is None:
            wanted = count(notes, "kept") + rng.randint(1, PAIRS // kills)
            while process.poll() is None and count(notes, "kept") < wanted:
                time.sleep(rng.uniform(0, 0.01))
            if process.poll() is not None:
                break
            run = psutil.Process(process.pid)
            children = run.children(recursive=True)
            of = {"run": [run], "worker": [], "server": []}
            of["worker"] = [child for child in children if child.ppid() != process.pid]
            of["server"] = [child for child in children if child.pid in {worker.ppid() for worker in of["worker"]}]
            target = rng.choices(["run", "worker", "server"], [5, 4, 1])[0]
            if of[target]:
                rng.choice(of[target]).kill()
                hits[target] += 1
            if target == "run":
                process.wait()
        code = process.wait()
        # in the order of the notes, nothing is asked for that was kept, in this run or before
        done = set(before)
        for line in notes.read_text().splitlines() if notes.exists() else ():
            what, key, replicate = json.loads(line)
            if what == "asked":
                asked += 1
                assert (key, replicate) not in done, f"{key}, {replicate} was finished, and is computed again"
            else:
                done.add((key, replicate))
        after = kept(disturbed)
        assert before.items() <= after.items(), "a finished piece was written again"
        assert done <= set(after)
        if code == 0:
            break
        assert code == -9, code
    checksums = [
        sha256((each / "shd_m10" / "records.parquet").read_bytes()).hexdigest() for each in (undisturbed, disturbed)
    ]
    assert sum(hits.values()) == kills, f"the run has finished after {sum(hits.values())} hits"
    assert len(after) == PAIRS
    assert checksums[0] == checksums[1]
    print(
        f"{kills} kills ({', '.join(f'{number} of the {what}' for what, number in hits.items())}), {runs} runs: "
        f"{PAIRS:,} pairs of trial and score asked for {asked:,} times, {asked - PAIRS:,} of them lost while at work, "
        f"none that was finished; records {checksums[1][:16]}… as undisturbed"
    )


if __name__ == "__main__":
    numbers = [int(number) for number in sys.argv[1:]]
    with TemporaryDirectory() as place:
        soak(Path(place), numbers[0] if numbers else 50, random.Random(numbers[1] if len(numbers) > 1 else 1))
