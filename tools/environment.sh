#!/bin/sh
# Make .venv with exactly the packages of requirements.lock and the library in editable mode.
#
#     sh tools/environment.sh          make or update it; quick when nothing changed
#     PYTHON=/path/to/python sh tools/environment.sh
#
# A Python of 3.11 to 3.13 is all that has to be there.
set -eu
cd "$(dirname "$0")/.."

supported() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        supported "$PYTHON" && echo "$PYTHON"
        return
    fi
    for candidate in python3.13 python3.12 python3.11 python3 python; do
        if supported "$candidate"; then
            echo "$candidate"
            return
        fi
    done
}

# What .venv was made from: a change in any of these means installing again.
state=$(cat requirements.lock pyproject.toml tools/environment.sh | cksum)
stamp=.venv/.installed
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$state" ] && .venv/bin/python -c '' 2>/dev/null; then
    exit 0
fi

python=$(find_python || true)
if [ -z "$python" ] && [ -n "${PYTHON:-}" ]; then
    echo "PYTHON=$PYTHON is no Python 3.11, 3.12 or 3.13: leave it out, or name it with" \
        "PYTHON=/path/to/python." >&2
    exit 1
fi
if [ -z "$python" ]; then
    echo "No Python 3.11, 3.12 or 3.13 was found: install one (Debian and Ubuntu: apt install" \
        "python3 python3-venv; macOS: brew install python@3.13), or name it with" \
        "PYTHON=/path/to/python." >&2
    exit 1
fi
# ensurepip is what Debian leaves out when python3-venv is not installed.
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    echo "$("$python" --version) has no venv module: install it (Debian and Ubuntu: apt install" \
        "python3-venv)." >&2
    exit 1
fi

echo "Making .venv with $("$python" --version) (a minute or a few, and 1 GB of disk)"
if ! .venv/bin/python -c '' 2>/dev/null || ! supported .venv/bin/python; then
    "$python" -m venv --clear .venv
fi
# Whatever index pip is told to ask, the hashes of the lock decide what is installed.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
    --requirement requirements.lock
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --editable .
# At its first start JupyterLab would ask whether to fetch its makers' news, over the first chapter.
.venv/bin/python -m jupyterlab.labextensions disable --level=sys_prefix \
    @jupyterlab/apputils-extension:announcements 2>/dev/null ||
    echo "JupyterLab will ask about news at its first start." >&2
echo "$state" > "$stamp"
