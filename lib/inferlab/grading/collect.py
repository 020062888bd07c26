"""Find the submissions in what a learning platform hands over: files, folders, archives."""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from inferlab.grading.normalise import LARGEST_FILE
from inferlab.grading.reported import whole_characters
from inferlab.quantities import InputError

# `Ada Lovelace_123_assignsubmission_file/3-roofline.ipynb` (Moodle) and
# `lovelaceada_LATE_123_456_3-roofline.ipynb` (Canvas).
_MOODLE = re.compile(r"(?P<student>.+?)_(?P<number>\d+)_assignsubmission_file\w*$")
_CANVAS = re.compile(r"(?P<student>[^_]+)(_LATE)?_(?P<number>\d+)_\d+_.+\.ipynb$", re.IGNORECASE)

# What a file in an archive, or on a disk, can do in place of giving its bytes.
_UNREADABLE = (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Submission:
    """One file that a learner handed in. raw is None where a learner's folder holds no notebook.

    guess: what the path says of the exercise. fault: why the file's bytes cannot be had.
    """

    student: str
    path: str
    raw: bytes | None
    timestamp: datetime | None = None
    guess: str = ""
    fault: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Learner:
    """name: as the platform writes it. number: by which it tells two of one name apart, if it does,
    among the files of one folder: Moodle gives a learner another number in each assignment."""

    name: str
    number: str = ""
    among: PurePosixPath | None = None


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
    notebook says when it was handed in. Learners of one place whose names would be one folder are told
    apart by the platform's number, else by four letters that come of the name.

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
                _no_file if path.is_symlink() else path.read_bytes,
                path.lstat().st_size,
            )
            for path in sorted(place.rglob("*"))
            if path.is_file() and ".ipynb_checkpoints" not in path.parts
        ]
    times = {file.path.parent: _time(file) for file in files if file.path.name == "timestamp.txt"}
    found: list[tuple[_Learner, Submission]] = []
    used = set()
    for file in files:
        if file.path.suffix.lower() != ".ipynb":
            continue
        used.update(file.path.parents)
        raw, fault = _bytes_of(file)
        guess = next((name for name in exercises if name in file.path.as_posix()), "")
        path = whole_characters(file.path.as_posix())
        learner = _learner(file.path, place, exercises, expression)
        time = times.get(file.path.parent)
        found.append((learner, Submission("", path, raw, time, guess, fault)))
    # A learner's folder without any notebook is a submission too, and not a silent absence.
    for folder in _folders(files):
        if folder not in used:
            learner = _learner(folder / "none.ipynb", place, exercises, expression)
            names = ", ".join(f.path.name for f in files if folder in f.path.parents)[:200]
            path = whole_characters(f"{folder.as_posix()}/ ({names})")
            found.append((learner, Submission("", path, None)))
    yield from _named(found)


def _no_file() -> bytes:
    raise OSError("it is a link to another file")


def _bytes_of(file: _File) -> tuple[bytes, str]:
    """What a file holds, or why that cannot be had."""
    if file.size > LARGEST_FILE:
        return b"", f"the file is larger than {LARGEST_FILE / 1e6:.0f} MB"
    try:
        return file.read(), ""
    except _UNREADABLE as error:
        return b"", whole_characters(f"the file cannot be read ({str(error)[:200]})")


def _folders(files: list[_File]) -> list[PurePosixPath]:
    """The learners' folders: those below what all files have in common."""
    inside = [file.path for file in files if len(file.path.parts) > 1]
    if not inside:
        return []
    parts = [path.parts[:-1] for path in inside]
    common = 0
    while all(len(p) > common and p[common] == parts[0][common] for p in parts):
        common += 1
    return sorted({PurePosixPath(*p[: common + 1]) for p in parts})


def _named(found: list[tuple[_Learner, Submission]]) -> Iterator[Submission]:
    """The submissions under names that are safe and that no two learners share."""
    spellings, numbers = defaultdict(set), defaultdict(set)
    for learner, _ in found:
        name = _safe(learner.name)
        spellings[name].add(unicodedata.normalize("NFC", learner.name))
        numbers[name, learner.among].add(learner.number)
    several = {name for name, spelt in spellings.items() if len(spelt) > 1}
    several |= {name for (name, _), given in numbers.items() if len(given) > 1}
    for learner, submission in found:
        name = _safe(learner.name)
        if name not in several:
            yield replace(submission, student=name)
        else:
            digest = hashlib.sha256(learner.name.encode("utf-8", "surrogatepass")).hexdigest()[:4]
            note = f"another learner is named {name} too: this is the one of {submission.path}"
            yield replace(submission, student=f"{name}-{learner.number or digest}", notes=(note,))


def _in_archive(place: Path) -> Iterator[_File]:
    try:
        archive = zipfile.ZipFile(place)
    except zipfile.BadZipFile:
        raise InputError(f"{place} cannot be read as a zip archive: download it again") from None
    for item in archive.infolist():
        given = PurePosixPath(_name(item).replace("\\", "/"))
        path = PurePosixPath(*(part for part in given.parts if part not in ("/", "//", "..")))
        if (
            not item.is_dir()
            and ".ipynb_checkpoints" not in path.parts
            and "__MACOSX" not in path.parts
        ):

            def read(item=item) -> bytes:
                with archive.open(item) as file:  # never more than this, whatever it claims
                    return file.read(LARGEST_FILE + 1)

            yield _File(path, read, item.file_size)


def _name(item: zipfile.ZipInfo) -> str:
    """The name of a file in an archive. Some programs, the Finder of macOS among them, write UTF-8
    and do not say so."""
    if item.flag_bits & 0x800:
        return item.filename
    try:
        return item.filename.encode("cp437").decode()
    except UnicodeError:
        return item.filename


def _time(file: _File) -> datetime | None:
    """The time in a `timestamp.txt`, as UTC; one that names no zone is UTC, as nbgrader writes it."""
    raw, _ = _bytes_of(file)
    text = raw[:100].decode(errors="replace").strip().removesuffix(" UTC")
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
    except (ValueError, OverflowError):  # no time, or one beyond the years that there are
        return None


def _learner(path: PurePosixPath, place: Path, exercises, expression) -> _Learner:
    matched = expression.search(path.as_posix()) if expression else None
    if matched and matched["student"]:
        return _Learner(matched["student"])
    folders = list(path.parts[:-1])
    for depth, folder in enumerate(folders):
        moodle = _MOODLE.match(folder)
        if moodle:
            return _Learner(moodle["student"], moodle["number"], PurePosixPath(*folders[:depth]))
        if folder in exercises and depth > 0:
            return _Learner(folders[depth - 1])
    canvas = _CANVAS.match(path.name)
    if canvas:
        return _Learner(canvas["student"], canvas["number"], path.parent)
    if folders:
        return _Learner(folders[-1])
    stem = path.stem
    for name in exercises:
        stem = re.sub(rf"[-_ ]*{re.escape(name)}[-_ ]*", "", stem)
    # A file that is named after the exercise alone: the learner's own folder was given.
    above = place.resolve().parent if place.is_file() else place.resolve()
    moodle = _MOODLE.match(above.name)
    return _Learner(stem or (moodle["student"] if moodle else above.name))


def _safe(name: str) -> str:
    """A name that is safe as a folder's name: nothing that leads elsewhere, nothing too long."""
    name = re.sub(r"[^\w@.-]+", "-", unicodedata.normalize("NFC", name)).strip("-.")
    return name.encode()[:100].decode(errors="ignore") or "unnamed"
