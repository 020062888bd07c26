"""Renew requirements.lock from requirements.txt: every package, exact, hashed, one file for all.

    python tools/lock.py

One universal lock serves Linux and macOS and Python 3.11 to 3.13. It is made by uv, which is not
part of the environment: it is installed into a folder of its own for the moment.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = "uv==0.13.9"


def main():
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        uv = Path(folder) / "bin" / "uv"
        pip = [Path(folder) / "bin" / "python", "-m", "pip", "install", "--quiet", UV]
        subprocess.run(pip, check=True)
        command = [uv, "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
        command += ["--python-version", "3.11", "requirements.txt", "-o", "requirements.lock"]
        return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
