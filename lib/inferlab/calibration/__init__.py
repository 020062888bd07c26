"""Calibration: what engines reach of the bound, fitted to published measurements (chapter 9).

A step is taken apart as in the roofline, with an efficiency on each ceiling and the overheads that a
roofline leaves out. Each (accelerator, engine) has its own few parameters, fitted to the rows
that were measured there, and stored with those rows and the error of predicting each from the
others. The parameters trade off against each other: read the prediction, not the physics.
"""

from inferlab.calibration.fitting import (
    MIN_ROWS,
    PRIOR,
    fit,
    left_out_because,
    unseen_models,
    usable,
)
from inferlab.calibration.groups import (
    Checked,
    Group,
    checked,
    find,
    groups,
    left_out,
    quantile_of,
    read,
    summary,
    write,
)
from inferlab.calibration.model import Efficiency, cache_dtype

__all__ = [
    "MIN_ROWS",
    "PRIOR",
    "Checked",
    "Efficiency",
    "Group",
    "cache_dtype",
    "checked",
    "find",
    "fit",
    "groups",
    "left_out",
    "left_out_because",
    "quantile_of",
    "read",
    "summary",
    "unseen_models",
    "usable",
    "write",
]
