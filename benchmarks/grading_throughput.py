"""Throughput of the batch grader beside plain `nbgrader autograde`, on the same submissions.

    python benchmarks/grading_throughput.py [--submissions 20] [--workers 2]

Prints one table: seconds and CPU seconds a submission for each way, the ratio, and what 2,000 submissions would take
with the arithmetic. Nothing is committed: the numbers are those of the machine that it runs on.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from inferlab.grading.release import as_text, exercises_folder, read_source
from inferlab.grading.sample import write_class

FOLDER_OF_PYTHON = str(Path(sys.executable).parent)


def timed(command, cwd):
    """Wall seconds, and CPU seconds of a command and all its children."""
    environment = os.environ | {"PATH": FOLDER_OF_PYTHON + os.pathsep + os.environ["PATH"]}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def plain_nbgrader(folder, source, submissions):
    """`nbgrader autograde` in one process on the submissions that it can read at all."""
    course = folder / "nbgrader"
    place = course / "source" / source.name
    place.mkdir(parents=True)
    (place / f"{source.name}.ipynb").write_text(as_text(source.reference))
    for path in submissions:
        learner = course / "submitted" / path.parent.name / source.name
        learner.mkdir(parents=True)
        (learner / f"{source.name}.ipynb").write_text(path.read_text())
    timed(["nbgrader", "generate_assignment", source.name, "--create"], course)
    graded = timed(["nbgrader", "autograde", source.name, "--create"], course)
    told = timed(["nbgrader", "generate_feedback", source.name], course)
    return graded[0] + told[0], graded[1] + told[1]


def ours(folder, name, submissions, workers):
    command = [sys.executable, "-m", "inferlab.cli", "grade", *map(str, submissions), "--quiet"]
    command += ["--course", str(folder / name), "--workers", str(workers)]
    command += ["--exercises", str(exercises_folder())]
    return timed(command, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--exercise", default="3-roofline")
    options = parser.parse_args()
    source = read_source(exercises_folder(), options.exercise)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        # Three learners of each dozen hand in what plain nbgrader cannot take: leave them out.
        write_class(folder / "class", source, options.submissions * 12 // 9 + 12)
        names = [f"{source.name}.ipynb"]
        readable = [p for p in sorted((folder / "class").glob("*/*.ipynb")) if p.name in names]
        submissions = [p for p in readable if is_plain(p)][: options.submissions]
        rows = [("nbgrader, one process", *plain_nbgrader(folder, source, submissions))]
        for workers in (1, options.workers):
            label = f"inferlab grade, {workers} worker{'s' if workers > 1 else ''}"
            # What a run costs before and after the submissions is measured with a single one.
            start = ours(folder, f"start-{workers}", submissions[:1], workers)
            rows.append((label, *ours(folder, f"all-{workers}", submissions, workers), *start))
    report(rows, len(submissions))


def is_plain(path):
    """Whether plain nbgrader can grade it: whole, and with each cell once."""
    text = path.read_text()
    return text.endswith("}\n") and text.count('"grade_id": "axes"') <= 1


def report(rows, count):
    print(f"{count} submissions, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print(f"{'way':28} {'wall s':>8} {'CPU s':>8} {'CPU s each':>11} {'of that fixed':>14}")
    for way, wall, cpu, *start in rows:
        fixed = f"{start[1]:.1f} s" if start else ""
        print(f"{way:28} {wall:8.1f} {cpu:8.1f} {cpu / count:11.2f} {fixed:>14}")
    (_, wall, cpu), one, many = rows
    each = (one[2] - one[4]) / (count - 1)
    print(f"\nCPU of plain nbgrader / ours, one worker, all included: {cpu / one[2]:.1f}")
    print(f"the same for one submission more: {cpu / count / each:.1f}")
    print(f"wall, 1 worker / {many[0].split()[2]} workers: {one[1] / many[1]:.2f}")
    print(
        f"2,000 submissions on one core: {one[4]:.0f} + 1999 x {each:.2f} ="
        f" {(one[4] + 1999 * each) / 60:.0f} min of CPU; on 16 cores a sixteenth of the second term"
    )


if __name__ == "__main__":
    main()
