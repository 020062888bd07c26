"""PostgreSQL as gradebook: the same results as SQLite, for several instructors at once."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("bubblewrap", "postgresql")
SOME = ["reference", "untouched", "number-as-text"]


def program(name):
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


@pytest.fixture(scope="module")
def server():
    """The URL of a database of a server of its own, which no other machine can reach."""
    # Not in pytest's folder, which only root may enter: the server refuses to run as root.
    folder = Path(tempfile.mkdtemp(prefix="inferlab-postgresql-"))
    user = {}
    if os.getuid() == 0:
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(folder, "nobody", "nogroup")
    data = folder / "data"

    def run(*command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, **user)
        assert done.returncode == 0, done.stdout + done.stderr

    run(program("initdb"), "-D", str(data), "-U", "grader", "-A", "trust", "--no-sync")
    options = f"-k {folder} -c listen_addresses= -c fsync=off"
    run(program("pg_ctl"), "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start")
    yield f"postgresql://grader@/postgres?host={folder}"
    run(program("pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
    shutil.rmtree(folder)


def test_postgresql_holds_what_sqlite_holds(server, graded, grade_class, hostile_class, tmp_path):
    submissions = [hostile_class / name for name in SOME]
    first = grade_class(submissions, tmp_path / "course", gradebook=server)
    assert first.comparable(SOME) == graded.comparable(SOME)
    again = grade_class(submissions, tmp_path / "course", gradebook=server)
    assert (again.summary.graded, again.summary.unchanged) == (0, 3)
    assert again.comparable(SOME) == graded.comparable(SOME)
    assert not (tmp_path / "course" / "gradebook.db").exists()
