"""Widgets that move a formula of the book, on the published page and in JupyterLab.

    from inferlab.widgets import PrefillFlops

    PrefillFlops()                      # at the chapter's running example
    PrefillFlops(N=1500)                # or started elsewhere

How to write one is told in README.md beside this file.
"""

from importlib import import_module

_WIDGETS = {
    "NextToken": "next_token",
    "PrefillFlops": "prefill_flops",
    "RooflineExplorer": "roofline_explorer",
    "KVGrowth": "kv_growth",
    "MatrixProduct": "matrix_product",
    "BatchIntensity": "batch_intensity",
    "GenerationWork": "generation_work",
    "RolloutShare": "rollout_share",
    "TwoBills": "two_bills",
    "EngineSteps": "engine_steps",
    "AgentPrefill": "agent_prefill",
    "TurnTTFT": "turn_ttft",
    "SplitPhases": "split_phases",
    "DeploymentSizer": "deployment_sizer",
}
"""Class name -> module. A new widget adds its line here, and nothing else."""

__all__ = list(_WIDGETS)


def __getattr__(name: str):
    # On demand, so that a page pays for the widgets it shows and no others.
    if name in _WIDGETS:
        return getattr(import_module(f"{__name__}.{_WIDGETS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_WIDGETS])
