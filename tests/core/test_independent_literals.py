"""The running example's three numbers, against sums by hand."""

from inferlab.accelerator import Accelerator
from inferlab.accounting import TEXT
from inferlab.architecture import Architecture
from inferlab.roofline import ridge_point
from inferlab.step import decode, prefill, step

LLAMA = Architecture.preset("LLaMA-7B-text")


def test_prefill(independent):
    independent("prefill-flop").check(step(LLAMA, prefill(3000), TEXT).flops)


def test_decode(independent):
    independent("decode-flop").check(step(LLAMA, decode(3000), TEXT).flops)


def test_ridge_point(independent):
    independent("ridge-a100-40gb").check(ridge_point(Accelerator.preset("A100-SXM-40GB")))
