"""The certificate of every score that is shipped, and of scores made to fail."""

from collections.abc import Callable
from math import log

import numpy as np
import pytest

from scorers import (
    AIC,
    BIC,
    EBIC,
    GMDL,
    HQIC,
    MDL,
    QNML,
    RNML,
    AICc,
    BGe,
    Block,
    RNMLCentred,
    RNMLGamma,
    RNMLPrintedC,
    RNMLStirling,
    Scorer,
    ZellnerG,
    certify,
)
from scorers.certify import _Networks, _tables, is_upside_down
from scorers.families import Families, score_table
from scorers.moments import Moments
from tests.naive import SCORERS

EQUIVALENT = {
    "score-equivalent": True,
    "shift-invariant": True,
    "scale-invariant": True,
    "label-invariant": True,
    "consistent": True,
}
LIKE_RNML = EQUIVALENT | {"score-equivalent": False, "shift-invariant": False}
EXPECTED: dict[Scorer, dict[str, bool]] = {
    AIC(): EQUIVALENT | {"consistent": False},
    BIC(): EQUIVALENT,
    MDL(): EQUIVALENT,
    RNML(): LIKE_RNML,
    RNMLStirling(): LIKE_RNML,
    RNMLGamma(): LIKE_RNML,
    RNMLPrintedC(): LIKE_RNML,
    RNMLPrintedC(keep_k_squared=True): LIKE_RNML,
    RNMLCentred(): EQUIVALENT | {"score-equivalent": False, "consistent": False},
    AICc(): EQUIVALENT | {"consistent": False},
    HQIC(): EQUIVALENT,
    EBIC(): EQUIVALENT,
    EBIC(gamma=0.5): EQUIVALENT,
    GMDL(): EQUIVALENT | {"score-equivalent": False},
    ZellnerG(): EQUIVALENT | {"score-equivalent": False},
    QNML(): EQUIVALENT,
    QNML(volume=3): EQUIVALENT,
    BGe(): EQUIVALENT | {"scale-invariant": False},
    BGe(alpha_mu=0.5, alpha_w=12): EQUIVALENT | {"scale-invariant": False},
}


@pytest.mark.parametrize("scorer", EXPECTED, ids=repr)
def test_certificate(scorer: Scorer) -> None:
    certificate = certify(scorer)
    assert certificate["holds"].to_dict() == EXPECTED[scorer]
    held = certificate.query("holds and property != 'consistent'")
    assert (held["violation"] < 1e-9).all()
    refuted = certificate.query("not holds and property != 'consistent'")
    assert (refuted["violation"] > 0.1).all()
    assert (certificate["cases"] >= 60).all()
    assert certificate["cases"]["consistent"] > 990


@pytest.mark.parametrize(
    ("penalty", "consistent"),
    [
        (lambda f: f.k * log(log(f.n)), True),  # HQIC: consistent, as slowly as can be
        (lambda f: 3 * f.k, False),  # a constant penalty takes superfluous edges for ever, however few
        (lambda f: 4 * f.k, False),
        (lambda f: 0.02 * f.n * f.k, False),  # one in proportion to n misses weak edges for ever
        (lambda f: 0.02 * f.n**0.9 * f.k, True),
    ],
)
def test_consistency_is_a_matter_of_the_limit(penalty: Callable[[Block], np.ndarray], consistent: bool) -> None:
    certificate = certify(lambda f: f.n / 2 * f.ln_tau + penalty(f), cases=3)
    assert certificate.loc["consistent", "holds"] == consistent


def test_moments_that_are_drawn_are_those_of_data() -> None:
    """Means and variances over repetitions of the log-variances, correlations and means agree."""
    rng = np.random.default_rng(0)
    n, times = 40, 4000
    network = _Networks.draw(1, 3, rng)
    repeated = _Networks(*(np.repeat(array, times, axis=0) for array in vars(network).values()))

    def summary(moments: Moments) -> np.ndarray:
        above = moments.correlation[..., *np.triu_indices(3, k=1)]
        return np.concatenate([moments.ln_variance, moments.offset, above], axis=-1)

    of_data = np.array([summary(Moments.of(network.sample(0, n, rng))) for _ in range(times)])
    drawn = summary(repeated.sample_moments(n, rng))
    error = np.sqrt((of_data.var(axis=0) + drawn.var(axis=0)) / times)
    assert (np.abs(of_data.mean(axis=0) - drawn.mean(axis=0)) < 4 * error).all()
    np.testing.assert_allclose(drawn.std(axis=0), of_data.std(axis=0), rtol=4 * (1 / times) ** 0.5 * 1.5)


def test_a_score_that_knows_its_labels_and_units() -> None:
    def crooked(f: Block) -> np.ndarray:
        by_label = np.arange(f.m) if f.shape == (f.m,) else np.arange(f.m)[:, None]
        return f.tau + 0.1 * by_label * f.k

    certificate = certify(crooked, cases=5)
    assert not certificate.loc["label-invariant", "holds"]
    assert not certificate.loc["scale-invariant", "holds"]
    assert certificate.loc["shift-invariant", "holds"]


@pytest.mark.parametrize("seed", range(4))
def test_one_case_on_two_nodes_is_enough(seed: int) -> None:
    assert certify(BIC(), cases=1, m=2, seed=seed)["holds"].all()


def test_the_certificate_is_reproducible() -> None:
    first, second = certify(BIC(), cases=3, seed=4), certify(BIC(), cases=3, seed=4)
    assert first.equals(second)


def test_data_that_a_score_refuses_do_not_count() -> None:
    rng = np.random.default_rng(0)
    families = Families.of_moments(_Networks.draw(21, 3, rng).sample_moments(100, rng))
    refused = {d for d in range(21) if families.moments.ln_variance[d].min() < -1}

    def picky(f: Block) -> np.ndarray:
        if f.ln_variance.min() < -1:
            raise ValueError("too quiet")
        return BIC()(f)

    tables = _tables(picky, families)
    assert 3 < len(refused) < 18
    assert set(tables) == set(range(21)) - refused
    for d, table in tables.items():
        assert np.array_equal(table, score_table(families.at(d), BIC()))

    def picky_at_large_n(f: Block) -> np.ndarray:
        if f.n > 100_000:
            raise ValueError("too much")
        return BIC()(f)

    with pytest.raises(ValueError, match="too much"):
        certify(picky_at_large_n, cases=1)


def test_a_score_that_is_upside_down() -> None:
    def upside_down(f: Block) -> np.ndarray:
        return -BIC()(f)

    assert is_upside_down(upside_down)
    assert not any(is_upside_down(scorer) for scorer in SCORERS)
    with pytest.raises(ValueError, match="lower is better: if higher is better in yours, return its negative"):
        certify(upside_down)
