"""Who handed in what: the file names of learning platforms, archives, hostile names."""

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
    assert len(found["ben"].raw) < 21_000_000
    assert found["cy"].raw is None
    assert len(found) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["class.zip"]


@pytest.mark.parametrize("name", ["..", ".", "-", "a/../..", "\n", "$(reboot)", "x" * 300])
def test_a_learners_name_never_leads_out_of_the_course(name):
    from inferlab.grading.collect import _safe

    safe = _safe(name)
    assert safe and "/" not in safe and safe not in (".", "..") and len(safe) <= 100


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
