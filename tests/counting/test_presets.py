"""The data that ships: every machine and model that the course names, dense peaks, a source a number."""

import csv
import json
from pathlib import Path

import pytest

from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
from inferlab.quantities import InputError

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "lib" / "inferlab" / "data" / "models"
MEASURED = list(csv.DictReader((ROOT / "tests" / "data" / "measured.csv").open()))

MACHINES = [
    "A100-SXM-40GB", "A100-SXM-80GB", "A100-PCIe-40GB", "A100-PCIe-80GB", "H100-SXM", "H100-PCIe",
    "H100-NVL", "H200", "B200", "H20", "H800", "L4", "L40S", "A10G", "T4", "RTX 3090", "RTX 4090",
    "RTX 5090", "MI300X", "MI325X", "RX 7900 XT", "RX 7900 XTX", "RX 9070 XT", "RTX A6000",
    "RTX 3090 Ti", "MI250X-GCD", "M1 Pro", "M1 Max", "M2 Pro", "M2 Max", "M3 Pro", "M3 Max", "M4 Pro",
    "M4 Max", "TPU v4", "TPU v5e", "TPU v5p", "TPU v6e", "Groq 3 LPU", "Jetson AGX Orin 64GB",
]  # fmt: skip

# What datasheets print with sparsity, in 1e12: half of it is the most that ours may say.
WITH_SPARSITY = {
    "A100-SXM-80GB": {"bf16": 624, "int8": 1248}, "H100-SXM": {"bf16": 1979, "fp8": 3958},
    "H100-PCIe": {"bf16": 1513, "fp8": 3026}, "H100-NVL": {"bf16": 1671, "fp8": 3341},
    "H200": {"bf16": 1979, "fp8": 3958}, "B200": {"fp8": 9000, "fp4": 18000},
    "L4": {"bf16": 242, "fp8": 485}, "L40S": {"bf16": 733, "fp8": 1466}, "A10G": {"bf16": 140},
    "RTX-4090": {"bf16": 330.4, "fp8": 660.6}, "RTX-A6000": {"bf16": 309.7},
    "MI300X": {"bf16": 2614.9, "fp8": 5229.8}, "RX-9070-XT": {"fp16": 390, "fp8": 779},
    "Jetson-AGX-Orin-64GB": {"int8": 170},
}  # fmt: skip


@pytest.mark.parametrize("name", [*MACHINES, *Accelerator.names()])
def test_every_machine_is_there_with_a_source_for_each_number(name):
    machine = Accelerator.preset(name)
    numbers = {"peaks", "bandwidth", "capacity"}
    if machine.link_bandwidth is not None:
        numbers.add("link_bandwidth")
    assert set(machine.sources) == numbers
    assert all(machine.sources.values())


def test_numbers_are_in_bytes_and_flop_a_second():
    for name in Accelerator.names():
        machine = Accelerator.preset(name)
        assert all(1e12 <= peak <= 1e17 for peak in machine.peaks.values()), name
        assert 1e11 <= machine.bandwidth <= 2e14, name
        assert 4e8 <= machine.capacity <= 3e11, name
        assert machine.link_bandwidth is None or 1e10 <= machine.link_bandwidth <= 3e12, name


@pytest.mark.parametrize("name", WITH_SPARSITY)
def test_no_peak_counts_on_sparsity(name):
    machine = Accelerator.preset(name)
    for dtype, printed in WITH_SPARSITY[name].items():
        assert machine.peak(dtype) == pytest.approx(printed * 1e12 / 2, rel=0.015)


def test_a_narrower_dtype_is_never_slower():
    for name in Accelerator.names():
        peaks = Accelerator.preset(name).peaks
        for wide, narrow in (("fp32", "bf16"), ("bf16", "fp8"), ("bf16", "int8"), ("fp8", "fp4")):
            if wide in peaks and narrow in peaks:
                assert peaks[narrow] >= peaks[wide], name


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.json")), ids=lambda path: path.stem)
def test_every_model_file_says_where_it_is_from(path):
    record = json.loads(path.read_text())
    assert path.stem == record["name"].lower()
    assert set(record) <= {"name", "aliases", "source", "config", "but"}
    assert len(record["source"]) > 10
    assert Architecture.preset(record["name"]).source == record["source"]


def test_every_measured_model_with_a_public_config_is_known_by_its_name():
    # Kernels and GEMMs are no models; these two have no public config.
    unpublished = {"GPT-style 13B", "PaLM-540B"}
    names = {row["model"] for row in MEASURED} - unpublished
    models = {name for name in names if not name.startswith(("GEMM", "GQA attention"))}
    assert len(models) == 22
    for name in models:
        assert Architecture.preset(name).parameters.total > 0


def test_names_are_found_whatever_their_case_and_dashes():
    assert Accelerator.preset("rtx 4090").name == "RTX-4090"
    assert Architecture.preset("llama3.1 8b").name == "Llama-3.1-8B"
    assert Architecture.preset("DeepSeek-R1").name == "DeepSeek-V3"
    for wrong in ("", "A100", 7, None):
        with pytest.raises(InputError):
            Accelerator.preset(wrong)
