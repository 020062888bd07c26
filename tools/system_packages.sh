#!/bin/sh
# Install what the tests use beside Python, where this user may: a browser for the site (and a library
# that the program which drives it wants), bubblewrap for grading in a sandbox, PostgreSQL for the
# gradebook of a large class, npm to make the vendored files again and compare.
#
# Debian or Ubuntu as root: through apt. Elsewhere: Playwright's own browser; the rest stays as it
# is. Nothing here is an error: a test that misses something says so by name.
set -u
cd "$(dirname "$0")/.."

identifier=unknown
if [ -r /etc/os-release ]; then
    identifier=$(. /etc/os-release && echo "${ID:-unknown}")
fi

wanted=""
command -v bwrap > /dev/null || wanted="$wanted bubblewrap"
ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null ||
    wanted="$wanted postgresql"
command -v npm > /dev/null || wanted="$wanted npm"
.venv/bin/playwright --version > /dev/null 2>&1 || wanted="$wanted libatomic1"
# Ubuntu's package is a wrapper around a snap, which does not run in a container.
[ "$identifier" = debian ] && ! command -v chromium > /dev/null && wanted="$wanted chromium"

if [ -n "$wanted" ] && command -v apt-get > /dev/null && [ "$(id -u)" = 0 ]; then
    echo "Installing$wanted"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086  # one word per package
    { apt-get update -qq && apt-get install -qq -y --no-install-recommends $wanted; } \
        > /tmp/inferlab-apt.$$ 2>&1 || { cat /tmp/inferlab-apt.$$ >&2; }
    rm -f /tmp/inferlab-apt.$$
fi

if ! command -v chromium > /dev/null && ! .venv/bin/python tools/browser.py > /dev/null 2>&1; then
    echo "Installing Playwright's Chromium"
    .venv/bin/playwright install chromium ||
        echo "No browser could be installed; the tests of the site will say so." >&2
fi
exit 0
