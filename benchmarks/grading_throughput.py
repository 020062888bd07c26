"""Throughput of the batch grader beside plain `nbgrader autograde`, on the same submissions.

    python benchmarks/grading_throughput.py [--sizes 20 50] [--workers 2] [--rounds 3]

Classes of two sizes are graded by one worker and by several, so that what a run costs before its
first submission is told apart from what a submission costs. Beside it, as many plain processes,
which share nothing, run the same cells: what they gain side by side is what the machine has to give.
All of it is done in turn, several rounds, and each number is the median of its rounds: on a machine
that others use too, the same work can take twice as long a minute later. Prints two tables, what
bounds the number of workers, and what 2,000 submissions would take, with the arithmetic. Nothing is
written down: the numbers are those of the machine that it runs on.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median

from inferlab.grading.execute import job
from inferlab.grading.normalise import normalise
from inferlab.grading.release import as_text, exercises_folder, read_source
from inferlab.grading.sample import write_class
from inferlab.grading.sandbox import Limits

FOLDER_OF_PYTHON = str(Path(sys.executable).parent)
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

# A grader that stays: for each line, a folder and a number of submissions, it grades so many and says
# what that took. What a learner's notebook takes is not added up for the parent of its sandbox: the
# grader says it.
GRADE = """
import json, resource, sys, time
from pathlib import Path
begun = time.perf_counter()
import matplotlib.figure
from inferlab.grading.grade import Options, grade
from inferlab.grading.release import exercises_folder, read_source
exercise, workers, *files = sys.argv[1:]
files = list(map(Path, files))
read_source(exercises_folder(), exercise).released
def now():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    here = time.process_time()
    return time.perf_counter(), here + children.ru_utime + children.ru_stime, here
wall, cpu, here = now()
print(json.dumps([wall - begun, cpu, here]), flush=True)
for line in sys.stdin:
    place, size = json.loads(line)
    before = now()
    done = grade(
        Options(files[:size], exercises_folder(), Path(place), workers=int(workers), quiet=True)
    )
    assert done.graded == size and not done.failed, done
    wall, cpu, here = (b - a for a, b in zip(before, now()))
    print(json.dumps([wall, cpu + done.cpu_s, here]), flush=True)
"""

# The same cells in a plain process: no fork, no sandbox, nothing recorded.
PLAIN = """
import json, os, sys
from sympy.core.cache import clear_cache
from inferlab.grading import runner
shell, job = runner.make_shell(), json.load(open(sys.argv[1]))
job |= {"skip": [], "cell_s": 60, "waiting_s": 240}
answers, null = os.fdopen(os.dup(1), "w"), os.open(os.devnull, os.O_WRONLY)
def run(times):
    for _ in range(times):
        clear_cache()  # each submission finds SymPy's cache as the first did
        runner.run(shell, job, null)
    print("done", file=answers, flush=True)
run(1)
for line in sys.stdin:
    run(int(line))
"""


@dataclass
class Cost:
    """Seconds of one run: on the clock, of CPU in all, and of CPU in the one process that may
    write to the gradebook."""

    wall: float
    cpu: float
    serial: float = 0

    @classmethod
    def of_each(cls, rule, *costs):
        """A rule for numbers, applied to each kind of cost."""
        return cls(*(rule(*(getattr(c, f.name) for c in costs)) for f in fields(cls)))

    @classmethod
    def middle(cls, costs):
        """The median of several rounds."""
        return cls.of_each(lambda *seconds: median(seconds), *costs)


class Asked:
    """A process that is told something and answers with a line."""

    def __init__(self, code, *arguments):
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | ONE_THREAD,
            text=True,
        )
        self.first = self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()

    def tell(self, *words):
        print(
            json.dumps(words if len(words) > 1 else words[0]), file=self._process.stdin, flush=True
        )

    def answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a process ended with code {self._process.wait()}, see above")
        return line


class Grader(Asked):
    """Our grader with so many workers; start: what its first import cost."""

    def __init__(self, exercise, workers, submissions):
        super().__init__(GRADE, exercise, workers, *submissions)
        self.start = Cost(*json.loads(self.first))

    def grade(self, place, size):
        self.tell(str(place), size)
        return Cost(*json.loads(self.answer()))


def beside(processes, times):
    """Seconds on the clock a run, where so many plain processes each run the cells so often."""
    started = time.perf_counter()
    for process in processes:
        process.tell(times)
    for process in processes:
        process.answer()
    return (time.perf_counter() - started) / times / len(processes)


def timed(command, cwd):
    """What a command and all its children cost."""
    environment = os.environ | {"PATH": FOLDER_OF_PYTHON + os.pathsep + os.environ["PATH"]}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{command[:2]} failed:\n{done.stdout}\n{done.stderr}")
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


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
    graded = timed(["nbgrader", "autograde", source.name, "--create"], folder)
    told = timed(["nbgrader", "generate_feedback", source.name], folder)
    return Cost.of_each(lambda a, b: a + b, graded, told)


def is_plain(path):
    """Whether plain nbgrader can grade it: whole, and with each cell once."""
    text = path.read_text()
    return text.endswith("}\n") and text.count('"grade_id": "axes"') <= 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs=2, default=(20, 50))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--exercise", default="3-roofline")
    options = parser.parse_args()
    source = read_source(exercises_folder(), options.exercise)
    small, large = options.sizes
    counts = 1, options.workers
    plain, alone = [], {n: [] for n in counts}
    costs = {(n, size): [] for n in counts for size in options.sizes}
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        # Three learners of each dozen hand in what plain nbgrader cannot take: leave them out.
        write_class(folder / "class", source, large * 12 // 9 + 12)
        named = sorted((folder / "class").glob(f"*/{source.name}.ipynb"))
        submissions = [path for path in named if is_plain(path)][:large]
        cells = folder / "cells.json"
        cells.write_text(job(normalise(source, source.reference), source.key, Limits()))
        graders = {n: stack.enter_context(Grader(source.name, n, submissions)) for n in counts}
        processes = [stack.enter_context(Asked(PLAIN, cells)) for _ in range(options.workers)]
        for turn in range(options.rounds):
            print(f"round {turn + 1} of {options.rounds} ...", file=sys.stderr, flush=True)
            plain.append(plain_nbgrader(folder / f"nbgrader-{turn}", source, submissions[:small]))
            for n in counts:
                alone[n].append(beside(processes[:n], (large - small) // n))
                for size in options.sizes:
                    place = folder / f"course-{turn}-{n}-{size}"
                    costs[n, size].append(graders[n].grade(place, size))
        starts = {n: graders[n].start for n in counts}
    report(Cost.middle(plain), starts, costs, alone, options)


def report(plain, starts, costs, alone, options):
    (small, large), (one, several) = options.sizes, (1, options.workers)
    names = {n: f"inferlab, {n} worker{'s' * (n > 1)}" for n in (one, several)}
    rounds = "1 round" if options.rounds == 1 else f"{options.rounds} rounds"
    print(f"{rounds}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; seconds\n")
    print(f"{'way':26}{'submissions':>12}{'wall':>8}{'CPU':>8}{'CPU each':>10}")
    line("nbgrader, all included", small, plain)
    whole = {
        (n, size): Cost.of_each(lambda a, b: a + b, starts[n], Cost.middle(costs[n, size]))
        for n, size in costs
    }
    for (n, size), cost in whole.items():
        line(names[n], size, cost)

    print(f"\none submission more, from the runs of {small} and {large}:\n")
    print(f"{'way':26}{'wall':>8}{'CPU':>8}{'of that serial':>16}{'fixed CPU':>12}")
    each = {
        n: [
            Cost.of_each(lambda less, more: (more - less) / (large - small), *pair)
            for pair in zip(costs[n, small], costs[n, large], strict=True)
        ]
        for n in names
    }
    more = {n: Cost.middle(each[n]) for n in names}
    fixed = {n: whole[n, small].cpu - small * more[n].cpu for n in names}
    for n, cost in more.items():
        print(f"{names[n]:26}{cost.wall:8.3f}{cost.cpu:8.3f}{cost.serial:16.3f}{fixed[n]:12.1f}")
    for n, seconds in alone.items():
        way = f"plain process{'es' * (n > 1)}, {n}"
        print(f"{way:26}{median(seconds):8.3f}")

    print(f"\nCPU of plain nbgrader / ours, {small} submissions, all included:", end=" ")
    print(f"{plain.cpu / whole[one, small].cpu:.1f};", end=" ")
    print(f"one submission more: {plain.cpu / small / more[one].cpu:.1f}")
    faster = median(a.wall / b.wall for a, b in zip(each[one], each[several], strict=True))
    machine = median(a / b for a, b in zip(alone[one], alone[several], strict=True))
    print(f"wall of 1 worker / {several} workers, one submission more: {faster:.2f};", end=" ")
    print(f"of plain processes: {machine:.2f}")
    serial, shared = more[one].serial, more[one].cpu - more[one].serial
    print(
        f"\nserial S = {serial:.3f} s, shared E = {shared:.3f} s a submission. S is done beside E, so"
    )
    print("n workers on n cores take max(S, (S + E) / n), and are at best so much faster than one:")
    for n in (2, 8, 16):
        print(f"  {n:3} workers: {(serial + shared) / max(serial, (serial + shared) / n):.1f} x")
    for n in (1, 2, 16):
        seconds = max(serial, (serial + shared) / n)
        print(
            f"2,000 on {n} core{'s' * (n > 1)}: {fixed[one]:.0f} + 2000 x {seconds:.3f}"
            f" = {(fixed[one] + 2000 * seconds) / 60:.1f} min, if nothing else runs there"
        )


def line(way, count, cost):
    print(f"{way:26}{count:12}{cost.wall:8.1f}{cost.cpu:8.1f}{cost.cpu / count:10.2f}")


if __name__ == "__main__":
    main()
