"""Throughput of the batch grader beside plain `nbgrader autograde`, on the same submissions.

    python benchmarks/grading_throughput.py [--sizes 20 60] [--workers 2]

A class of two sizes is graded by one worker and by several, so that what a run costs before its
first submission is told apart from what a submission costs. Prints two tables, what bounds the
number of workers, and what 2,000 submissions would take, with the arithmetic. Nothing is written
down: the numbers are those of the machine that it runs on. CPU seconds are what to compare where
other work goes on beside.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from inferlab.grading.release import as_text, exercises_folder, read_source
from inferlab.grading.sample import write_class

FOLDER_OF_PYTHON = str(Path(sys.executable).parent)

# Starts, then grades one class after the other in one process, and says what each took: so the cost
# of starting, which varies, is not in their difference. What a learner's notebook takes is not added
# up for the parent of its sandbox: the grader says it.
GRADE = """
import json, resource, sys, time
from pathlib import Path
begun = time.perf_counter()
import matplotlib.figure
from inferlab.grading.grade import Options, grade
from inferlab.grading.release import exercises_folder, read_source
course, exercise, workers, *sizes = sys.argv[1:6]
files = list(map(Path, sys.argv[6:]))
read_source(exercises_folder(), exercise).released
clock, here, all = time.perf_counter(), time.process_time(), time.process_time()
print(json.dumps([clock - begun, here, here]))
for size in map(int, sizes):
    place = Path(course) / str(size)
    done = grade(
        Options(files[:size], exercises_folder(), place, workers=int(workers), quiet=True)
    )
    assert done.graded == size and not done.failed, done
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    before = clock, here, all
    clock, here = time.perf_counter(), time.process_time()
    all = here + children.ru_utime + children.ru_stime
    took = [clock - before[0], all - before[2] + done.cpu_s, here - before[1]]
    print(json.dumps(took))
"""


@dataclass
class Cost:
    """Seconds of one run: on the clock, of CPU in all, and of CPU in the one process that may
    write to the gradebook."""

    wall: float
    cpu: float
    serial: float = 0

    def per_submission(self, larger, difference):
        """What one submission more costs, from a run of so many more."""
        return Cost(
            *(
                (getattr(larger, name) - getattr(self, name)) / difference
                for name in ("wall", "cpu", "serial")
            )
        )


def timed(command, cwd):
    """What a command and all its children cost, and what it printed."""
    environment = os.environ | {"PATH": FOLDER_OF_PYTHON + os.pathsep + os.environ["PATH"]}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{command[:2]} failed:\n{done.stdout}\n{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu), done.stdout


def plain_nbgrader(folder, source, submissions):
    """`nbgrader autograde` and its feedback, in one process each."""
    place = folder / "source" / source.name
    place.mkdir(parents=True)
    (place / f"{source.name}.ipynb").write_text(as_text(source.reference))
    for path in submissions:
        learner = folder / "submitted" / path.parent.name / source.name
        learner.mkdir(parents=True)
        (learner / f"{source.name}.ipynb").write_text(path.read_text())
    timed(["nbgrader", "generate_assignment", source.name, "--create"], folder)
    graded, _ = timed(["nbgrader", "autograde", source.name, "--create"], folder)
    told, _ = timed(["nbgrader", "generate_feedback", source.name], folder)
    return Cost(graded.wall + told.wall, graded.cpu + told.cpu)


def ours(folder, exercise, submissions, sizes, workers):
    """The costs of starting, and of grading the first so many submissions, for each size."""
    course = folder / f"course-{workers}"
    arguments = [course, exercise, workers, *sizes, *submissions]
    _, printed = timed([sys.executable, "-c", GRADE, *map(str, arguments)], folder)
    return [Cost(*json.loads(line)) for line in printed.splitlines()]


def is_plain(path):
    """Whether plain nbgrader can grade it: whole, and with each cell once."""
    text = path.read_text()
    return text.endswith("}\n") and text.count('"grade_id": "axes"') <= 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs=2, default=(20, 60))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--exercise", default="3-roofline")
    options = parser.parse_args()
    source = read_source(exercises_folder(), options.exercise)
    small, large = options.sizes
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        # Three learners of each dozen hand in what plain nbgrader cannot take: leave them out.
        write_class(folder / "class", source, large * 12 // 9 + 12)
        named = sorted((folder / "class").glob(f"*/{source.name}.ipynb"))
        submissions = [path for path in named if is_plain(path)]
        plain = plain_nbgrader(folder / "nbgrader", source, submissions[:small])
        runs = {
            workers: ours(folder, source.name, submissions, (small, large), workers)
            for workers in (1, options.workers)
        }
    report(plain, runs, small, large)


def report(plain, runs, small, large):
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; seconds\n")
    print(f"{'way':26}{'submissions':>12}{'wall':>8}{'CPU':>8}{'CPU each':>10}")
    line("nbgrader, all included", small, plain)
    for workers, (start, *costs) in runs.items():
        for size, cost in zip((small, large), costs, strict=True):
            whole = Cost(start.wall + cost.wall, start.cpu + cost.cpu)
            line(f"inferlab, {workers} worker{'s' * (workers > 1)}", size, whole)

    print(f"\none submission more, from the runs of {small} and {large}:\n")
    print(f"{'way':26}{'wall':>8}{'CPU':>8}{'of that serial':>16}{'fixed CPU':>12}")
    more = {n: runs[n][1].per_submission(runs[n][2], large - small) for n in runs}
    fixed = {n: runs[n][0].cpu + runs[n][1].cpu - small * more[n].cpu for n in runs}
    for n, cost in more.items():
        way = f"inferlab, {n} worker{'s' * (n > 1)}"
        print(f"{way:26}{cost.wall:8.3f}{cost.cpu:8.3f}{cost.serial:16.3f}{fixed[n]:12.1f}")

    one, several = more[1], max(more)
    whole = runs[1][0].cpu + runs[1][1].cpu
    print(f"\nCPU of plain nbgrader / ours, {small} submissions, all included:", end=" ")
    print(f"{plain.cpu / whole:.1f}; one submission more: {plain.cpu / small / one.cpu:.1f}")
    faster = one.wall / more[several].wall
    print(f"wall of 1 worker / {several} workers, one submission more: {faster:.2f}")
    serial, shared = one.serial, one.cpu - one.serial
    print(
        f"\nserial S = {serial:.3f} s, shared E = {shared:.3f} s a submission. S is done beside E, so"
    )
    print("n workers on n cores take max(S, (S + E) / n), and are at best so much faster than one:")
    for n in (2, 8, 16):
        print(f"  {n:3} workers: {(serial + shared) / max(serial, (serial + shared) / n):.1f} x")
    for n in (1, 2, 16):
        each = max(serial, (serial + shared) / n)
        print(
            f"2,000 on {n} core{'s' * (n > 1)}: {fixed[1]:.0f} + 2000 x {each:.3f}"
            f" = {(fixed[1] + 2000 * each) / 60:.1f} min, if nothing else runs there"
        )


def line(way, count, cost):
    print(f"{way:26}{count:12}{cost.wall:8.1f}{cost.cpu:8.1f}{cost.cpu / count:10.2f}")


if __name__ == "__main__":
    main()
