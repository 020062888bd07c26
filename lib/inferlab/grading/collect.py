"""Find the submissions in what a learning platform hands over: files, folders, archives."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from inferlab.grading.normalise import LARGEST_FILE
from inferlab.quantities import InputError

# `Ada Lovelace_123_assignsubmission_file/3-roofline.ipynb` (Moodle) and
# `lovelaceada_LATE_123_456_3-roofline.ipynb` (Canvas).
_MOODLE = re.compile(r"(?P<student>.+?)_\d+_assignsubmission_file\w*$")
_CANVAS = re.compile(r"(?P<student>[^_]+)(_LATE)?_\d+_\d+_.+\.ipynb$", re.IGNORECASE)


@dataclass(frozen=True)
class Submission:
    """One file that a learner handed in. raw is None where a learner's folder holds no notebook."""

    student: str
    path: str
    raw: bytes | None
    timestamp: datetime | None = None
    guess: str = ""  # what the path says of the exercise


@dataclass(frozen=True)
class _File:
    path: PurePosixPath
    read: object
    size: int


def collect(
    places: Iterable[Path], exercises: Iterable[str], pattern: str | None = None
) -> list[Submission]:
    """Every submission in the given files, folders and zip archives, in a fixed order.

    The learner is known by, in this order: `pattern` (a regular expression with a group `student`,
    searched in the path), nbgrader's STUDENT/EXERCISE/NOTEBOOK, the names that Moodle and Canvas
    give, the folder that holds the notebook, the notebook's own name. `timestamp.txt` beside a
    notebook says when it was handed in.

    Raises InputError for a place that is not there and a pattern without the group.
    """
    exercises = list(exercises)
    expression = _compiled(pattern)
    found = []
    for place in places:
        if not place.exists():
            raise InputError(
                f"{place} is not there: expected a notebook, a folder or a zip archive"
            )
        found += _from_place(place, exercises, expression)
    return sorted(found, key=lambda s: (s.student, s.path))


def _compiled(pattern: str | None):
    if pattern is None:
        return None
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise InputError(f"{pattern!r} is no regular expression ({error})") from None
    if "student" not in expression.groupindex:
        raise InputError(f"{pattern!r} has no group (?P<student>...), which names the learner")
    return expression


def _from_place(place: Path, exercises, expression) -> Iterator[Submission]:
    if place.is_file() and place.suffix.lower() != ".zip":
        files = [_File(PurePosixPath(place.name), place.read_bytes, place.stat().st_size)]
    elif place.is_file():
        files = list(_in_archive(place))
    else:
        files = [
            _File(
                PurePosixPath(path.relative_to(place).as_posix()),
                path.read_bytes,
                path.stat().st_size,
            )
            for path in sorted(place.rglob("*"))
            if path.is_file() and not path.is_symlink() and ".ipynb_checkpoints" not in path.parts
        ]
    times = {file.path.parent: _time(file) for file in files if file.path.name == "timestamp.txt"}
    used = set()
    for file in files:
        if file.path.suffix.lower() != ".ipynb":
            continue
        student = _student(file.path, place, exercises, expression)
        used.update(file.path.parents)
        raw = file.read() if file.size <= LARGEST_FILE else b" " * (LARGEST_FILE + 1) + b"x"
        guess = next((name for name in exercises if name in file.path.as_posix()), "")
        yield Submission(student, file.path.as_posix(), raw, times.get(file.path.parent), guess)
    # A learner's folder without any notebook is a submission too, and not a silent absence.
    for folder in sorted({file.path.parents[-2] for file in files if len(file.path.parts) > 1}):
        if folder not in used:
            student = _student(folder / "none.ipynb", place, exercises, expression)
            names = ", ".join(f.path.name for f in files if folder in f.path.parents)[:200]
            yield Submission(student, f"{folder.as_posix()}/ ({names})", None)


def _in_archive(place: Path) -> Iterator[_File]:
    try:
        archive = zipfile.ZipFile(place)
    except zipfile.BadZipFile:
        raise InputError(f"{place} cannot be read as a zip archive: download it again") from None
    for item in archive.infolist():
        path = PurePosixPath(item.filename.replace("\\", "/"))
        if (
            not item.is_dir()
            and ".ipynb_checkpoints" not in path.parts
            and "__MACOSX" not in path.parts
        ):

            def read(item=item) -> bytes:
                with archive.open(item) as file:  # never more than this, whatever it claims
                    return file.read(LARGEST_FILE + 1)

            yield _File(path, read, item.file_size)


def _time(file: _File) -> datetime | None:
    text = file.read()[:100].decode(errors="replace").strip().removesuffix(" UTC")
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time


def _student(path: PurePosixPath, place: Path, exercises, expression) -> str:
    matched = expression.search(path.as_posix()) if expression else None
    if matched:
        return _safe(matched["student"])
    folders = list(path.parts[:-1])
    for place, folder in enumerate(folders):
        moodle = _MOODLE.match(folder)
        if moodle:
            return _safe(moodle["student"])
        if folder in exercises and place > 0:
            return _safe(folders[place - 1])
    canvas = _CANVAS.match(path.name)
    if canvas:
        return _safe(canvas["student"])
    if folders:
        return _safe(folders[-1])
    stem = path.stem
    for name in exercises:
        stem = re.sub(rf"[-_ ]*{re.escape(name)}[-_ ]*", "", stem)
    # A file that is named after the exercise alone: the learner's own folder was given.
    above = place.resolve().parent if place.is_file() else place.resolve()
    moodle = _MOODLE.match(above.name)
    return _safe(stem or (moodle["student"] if moodle else above.name))


def _safe(name: str) -> str:
    """A name that is safe as a folder's name: nothing that leads elsewhere."""
    name = re.sub(r"[^\w@.-]+", "-", name).strip("-.")[:100]
    return name or "unnamed"
