"""The followed text's sections 3.1 and 3.2, row by row of claims.csv."""

import csv
from pathlib import Path

import pytest

from inferlab.cost import request_flops, request_time, serving_bill, training_bill
from inferlab.quantities import bytes_of
from inferlab.training import device_seconds, training_flops, training_tokens

P = 8 * 10**9
PEAK, BANDWIDTH = 990e12, 3.35e12
FLOOR = request_flops(P, 512, 128) / PEAK

training = training_bill(P, PEAK, 3, mfu=0.4)
serving = serving_bill(request_time(P, 512, 128, PEAK, BANDWIDTH), 10**6, 2.5)

LIVE = {
    "train-tokens": training_tokens(P),
    "train-flops": training_flops(P, training_tokens(P)),
    "train-gpu-days": device_seconds(training_flops(P, training_tokens(P)), PEAK) / 86400,
    "train-cost-peak": training_bill(P, PEAK, 3).usd,
    "train-cost-40mfu": training.usd,
    "request-flops": request_flops(P, 512, 128),
    "serve-month-compute-floor": 30e6 * FLOOR / 3600 * 2.5,
    "serve-month-batch-1": serving.usd_a_month,
    "serve-year-vs-train": serving.usd_a_year / training.usd,
    "weights-70b": bytes_of(70 * 10**9, "fp16") / 1e9,
}


def claims():
    file = Path(__file__).parents[1] / "data" / "claims.csv"
    with open(file, encoding="utf-8", newline="") as lines:
        return {r["id"]: r for r in csv.DictReader(lines) if r["section"] in ("3.1", "3.2")}


def test_every_claim_of_these_sections_is_computed():
    assert set(LIVE) == set(claims())


@pytest.mark.parametrize("claim", LIVE)
def test_the_library_computes_the_claim(claim):
    assert float(LIVE[claim]) == pytest.approx(float(claims()[claim]["computed"]), rel=1e-5)
