"""Step models that the serving tests share."""

import pytest

from inferlab.serving import StepModel
from serving.machines import A100, LLAMA_7B, SHAPES, TINY_GPU


@pytest.fixture(scope="session")
def llama():
    """LLaMA-7B on an A100 with 40 GB."""
    return StepModel(architecture=LLAMA_7B, accelerator=A100)


@pytest.fixture(scope="session")
def small():
    """A model whose memory holds 64 tokens only."""
    return StepModel(architecture=SHAPES["full attention"], accelerator=TINY_GPU, kv_tokens=64)
