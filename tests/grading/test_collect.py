"""Who handed in what: the file names of learning platforms, archives, hostile names."""

import os
import zipfile

import pytest

from inferlab.grading.collect import collect
from inferlab.quantities import InputError

NAMES = ["3-roofline", "4-diagnose"]


@pytest.mark.parametrize(
    ("path", "student"),
    [
        ("ada/3-roofline/3-roofline.ipynb", "ada"),  # nbgrader
        ("Ada Lovelace_12345_assignsubmission_file/3-roofline.ipynb", "Ada-Lovelace"),  # Moodle
        ("Ada Lovelace_12345_assignsubmission_file_/3-roofline.ipynb", "Ada-Lovelace"),
        ("lovelaceada_12345_678901_3-roofline.ipynb", "lovelaceada"),  # Canvas
        ("lovelaceada_LATE_12345_678901_3-roofline-1.ipynb", "lovelaceada"),
        ("ada/work.ipynb", "ada"),
        ("ada.ipynb", "ada"),
        ("ada_3-roofline.ipynb", "ada"),
        ("ada@example.org/3-roofline.ipynb", "ada@example.org"),
        ("Zoë Müller/3-roofline.ipynb", "Zoë-Müller"),
    ],
)
def test_the_learner_is_known_by_the_path(tmp_path, path, student):
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("{}")
    (found,) = collect([tmp_path], NAMES)
    assert (found.student, found.raw) == (student, b"{}")
    assert found.guess == ("3-roofline" if "3-roofline" in path else "")


@pytest.mark.parametrize("name", ["ada", "ada_12_assignsubmission_file"])
def test_a_learners_own_folder_or_file_may_be_given(tmp_path, name):
    (tmp_path / name).mkdir()
    file = tmp_path / name / "3-roofline.ipynb"
    file.write_text("{}")
    for place in (tmp_path / name, file):
        (found,) = collect([place], NAMES)
        assert found.student == "ada"


def test_a_pattern_goes_first(tmp_path):
    (tmp_path / "group7").mkdir()
    (tmp_path / "group7" / "hw-ada-1.ipynb").write_text("{}")
    (found,) = collect([tmp_path], NAMES, r"hw-(?P<student>\w+)-\d")
    assert found.student == "ada"


def test_an_archive_is_read_without_unpacking_it(tmp_path):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr("../../etc/ada/3-roofline.ipynb", "{}")
        archive.writestr("ben/3-roofline.ipynb", b"0" * 30_000_000)
        archive.writestr("cy/report.pdf", "%PDF")
        archive.writestr("__MACOSX/ada/._3-roofline.ipynb", "x")
    found = {s.student: s for s in collect([tmp_path / "class.zip"], NAMES)}
    assert found["ada"].raw == b"{}"
    assert (found["ben"].raw, found["ben"].fault) == (b"", "the file is larger than 20 MB")
    assert found["cy"].raw is None
    assert len(found) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["class.zip"]


@pytest.mark.parametrize(
    "name", ["..", ".", "-", "a/../..", "\n", "$(reboot)", "x" * 300, "漢" * 300, "\udcff"]
)
def test_a_learners_name_never_leads_out_of_the_course(name):
    from inferlab.grading.collect import _safe

    safe = _safe(name)
    assert safe and "/" not in safe and safe not in (".", "..") and len(safe.encode()) <= 100


@pytest.mark.parametrize(
    ("paths", "students"),
    [
        (
            ["Ada Li_12_assignsubmission_file/a.ipynb", "Ada Li_34_assignsubmission_file/a.ipynb"],
            ["Ada-Li-12", "Ada-Li-34"],
        ),
        (["liada_12_56_a.ipynb", "liada_34_78_a.ipynb"], ["liada-12", "liada-34"]),
        # The first four letters of `printf 'Ada Li' | sha256sum`, and of 'Ada-Li'.
        (["Ada Li/a.ipynb", "Ada-Li/a.ipynb"], ["Ada-Li-4cf6", "Ada-Li-426f"]),
        (["liada_12_56_a.ipynb", "liada_12_57_b.ipynb"], ["liada", "liada"]),
        # Moodle numbers a learner anew in each assignment.
        (
            [
                "x/Ada Li_12_assignsubmission_file/a.ipynb",
                "y/Ada Li_34_assignsubmission_file/a.ipynb",
            ],
            ["Ada-Li", "Ada-Li"],
        ),
        (["Jose\u0301/a.ipynb", "Jos\u00e9/b.ipynb"], ["Jos\u00e9", "Jos\u00e9"]),
    ],
)
def test_learners_of_one_name_stay_two(tmp_path, paths, students):
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("{}")
    found = collect([tmp_path], NAMES)
    assert sorted(s.student for s in found) == sorted(students)
    told = ["too: this is the one of" in "".join(s.notes) for s in found]
    assert told == [len(set(students)) > 1] * len(found)


def test_a_file_that_cannot_be_read_is_a_submission_all_the_same(tmp_path):
    """Encrypted, damaged, packed in a way that is not known, under an absolute name."""
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        for name in ("ada/a.ipynb", "ben/a.ipynb", "cyn/a.ipynb", "dov/a.ipynb", "/eli.ipynb"):
            archive.writestr(name, f"{{{name}}}")
        archive.writestr("dov/timestamp.txt", "0001-01-01T00:00:00+14:00")
        archive.writestr("fay/../../gus/a.ipynb", "{}")
    raw = bytearray((tmp_path / "class.zip").read_bytes())
    raw[raw.index(b"{ben/a.ipynb}") + 1] ^= 1
    directory = raw.index(b"PK\1\2")
    for entry, flags, method in ((b"ada/a", 1, 0), (b"cyn/a", 0, 77)):
        local, central = raw.index(entry), raw.index(entry, directory)
        raw[local - 24], raw[central - 38] = flags, flags
        raw[local - 22], raw[central - 36] = method, method
    (tmp_path / "class.zip").write_bytes(raw)
    found = {s.student: s for s in collect([tmp_path / "class.zip"], NAMES)}
    assert set(found) == {"ada", "ben", "cyn", "dov", "eli", "gus"}
    for student, said in (("ada", "encrypted"), ("ben", "CRC"), ("cyn", "compression method")):
        assert found[student].raw == b"" and said in found[student].fault
    assert (found["dov"].timestamp, found["dov"].fault) == (None, "")


def test_a_file_name_that_is_no_text_is_read(tmp_path):
    folder = os.fsencode(tmp_path) + b"/Z\xf6e"
    os.mkdir(folder)
    with open(folder + b"/a.ipynb", "w") as file:
        file.write("{}")
    (found,) = collect([tmp_path], NAMES)
    assert (found.student, found.path) == ("Z-e", "Z?e/a.ipynb")


def test_a_link_is_not_followed_and_not_passed_over(tmp_path):
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "secret").write_text("{}")
    (tmp_path / "class" / "ada" / "a.ipynb").symlink_to(tmp_path / "secret")
    (found,) = collect([tmp_path / "class"], NAMES)
    assert (found.student, found.raw) == ("ada", b"")
    assert "it is a link to another file" in found.fault


def test_a_learner_without_a_notebook_is_found_in_a_folder_of_all(tmp_path):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr("submissions/ada/a.ipynb", "{}")
        archive.writestr("submissions/ben/report.pdf", "%PDF")
        archive.writestr("submissions/readme.txt", "from the platform")
    found = {s.student: s.raw for s in collect([tmp_path / "class.zip"], NAMES)}
    assert found == {"ada": b"{}", "ben": None}


def test_a_pattern_that_finds_nobody_leaves_the_path_to_say(tmp_path):
    (tmp_path / "ada.ipynb").write_text("{}")
    (found,) = collect([tmp_path], NAMES, r"(?P<student>hw)?")
    assert found.student == "ada"


def test_an_archive_that_does_not_say_that_its_names_are_utf8(tmp_path):
    """As macOS and Info-ZIP make them; the other is from a program that writes code page 437."""
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr("Zo__ Li_12_assignsubmission_file/a.ipynb", "{}")
        archive.writestr("Am^lie/a.ipynb", "{}")
    raw = (tmp_path / "class.zip").read_bytes()
    raw = raw.replace(b"Zo__", "Zo\u00eb".encode()).replace(b"Am^lie", b"Am\x82lie")
    (tmp_path / "class.zip").write_bytes(raw)
    found = collect([tmp_path / "class.zip"], NAMES)
    assert [(s.student, s.raw) for s in found] == [("Am\u00e9lie", b"{}"), ("Zo\u00eb-Li", b"{}")]


def test_the_time_of_handing_in_is_utc(tmp_path):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "3-roofline.ipynb").write_text("{}")
    (tmp_path / "ada" / "timestamp.txt").write_text("2026-12-01T10:00:00+02:00")
    (found,) = collect([tmp_path], NAMES)
    assert found.timestamp.isoformat() == "2026-12-01T08:00:00"


def test_a_place_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not there"):
        collect([tmp_path / "nowhere"], NAMES)
    (tmp_path / "class.zip").write_text("no archive")
    with pytest.raises(InputError, match="zip archive"):
        collect([tmp_path / "class.zip"], NAMES)
