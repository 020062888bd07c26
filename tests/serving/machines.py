"""Machines and models of the serving tests, small and round so that sums can be done by hand."""

from inferlab.accelerator import Accelerator
from inferlab.architecture import MLA, Architecture, MoE

LLAMA_7B = Architecture(
    name="LLaMA-7B",
    layers=32,
    hidden=4096,
    ffn=11008,
    heads=32,
    kv_heads=32,
    head_dim=128,
    vocab=32000,
)
A100 = Accelerator(name="A100", peaks={"bf16": 312e12}, bandwidth=1.555e12, capacity=40e9)

SMALL = {
    "layers": 4,
    "hidden": 64,
    "heads": 8,
    "kv_heads": 2,
    "head_dim": 8,
    "ffn": 96,
    "vocab": 100,
}
SHAPES = {
    "full attention": Architecture(name="full", **SMALL),
    "sliding window": Architecture(name="window", window=7, windowed_layers=3, **SMALL),
    "experts": Architecture(name="moe", moe=MoE(layers=3, experts=8, active=2, ffn=32), **SMALL),
    "latent attention": Architecture(
        name="mla",
        mla=MLA(kv_rank=16, q_rank=24, nope_dim=8, rope_dim=4, v_dim=8),
        **SMALL | {"kv_heads": 8},
    ),
}
TINY_GPU = Accelerator(name="tiny", peaks={"bf16": 1e9}, bandwidth=1e8, capacity=4e9)
