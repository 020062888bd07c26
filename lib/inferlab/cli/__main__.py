"""`python -m inferlab.cli`, where the command `inferlab` is not on the path."""

import sys

from inferlab.cli import main

sys.exit(main())
