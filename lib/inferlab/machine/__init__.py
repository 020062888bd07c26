"""The reader's own machine, measured.

`measure()` returns an `Accelerator` like any other, so that every formula of the book applies to
it; `save` and `load` keep it. `record()` reads the timings that are committed with the book: the
website shows those, and no build ever times anything. `record_now(model)` makes the same on the
reader's machine.
"""

from inferlab.machine.hardware import load, measure, save, threads
from inferlab.machine.timings import Record, record, record_now

__all__ = ["Record", "load", "measure", "record", "record_now", "save", "threads"]
