"""Scores against bnlearn's: `tests/golden/README.md` says where they come from and how they convert."""

from math import log, pi
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scorers import AIC, BIC, network_score

GOLDEN = Path(__file__).parent / "golden"
SCORES = pd.read_csv(GOLDEN / "scores.csv")


@pytest.mark.parametrize("row", [SCORES.iloc[i] for i in range(len(SCORES))], ids=lambda row: f"{row.dataset}{row.dag}")
def test_bnlearn(row: pd.Series) -> None:
    data = pd.read_csv(GOLDEN / f"{row.dataset}.csv")
    n, m = data.shape
    dags = np.loadtxt(GOLDEN / f"{row.dataset}.dags.csv", delimiter=",").reshape(-1, m, m)
    adjacency = dags[row.dag]
    k = adjacency.sum(axis=0) + 1
    aic, bic = network_score(data, adjacency, AIC()), network_score(data, adjacency, BIC())
    # loglik-g = Σ −n/2 ln(2π RSS/(n−k)) − (n−k)/2, where RSS = n τ̂
    beside_tau = np.sum(n / 2 * np.log(2 * pi * n / (n - k)) + (n - k) / 2)
    assert -(aic - k.sum()) - beside_tau == pytest.approx(row.loglik_g, abs=1e-8)
    # bnlearn counts k + 1 parameters a node
    assert -aic - beside_tau - m == pytest.approx(row.aic_g, abs=1e-8)
    assert -bic - beside_tau - m / 2 * log(n) == pytest.approx(row.bic_g, abs=1e-8)
