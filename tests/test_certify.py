"""The certificate of every score that is shipped, and of scores made to fail."""

import numpy as np
import pytest

from scorers import AIC, BIC, MDL, RNML, Block, RNMLCentred, RNMLGamma, RNMLPrintedC, RNMLStirling, Scorer, certify

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


def test_a_score_that_knows_its_labels_and_units() -> None:
    def crooked(f: Block) -> np.ndarray:
        by_label = np.arange(f.m) if f.shape == (f.m,) else np.arange(f.m)[:, None]
        return f.tau + 0.1 * by_label * f.k

    certificate = certify(crooked, cases=5)
    assert not certificate.loc["label-invariant", "holds"]
    assert not certificate.loc["scale-invariant", "holds"]
    assert certificate.loc["shift-invariant", "holds"]


def test_the_certificate_is_reproducible() -> None:
    first, second = certify(BIC(), cases=3, seed=4), certify(BIC(), cases=3, seed=4)
    assert first.equals(second)
    assert not certify(BIC(), cases=3, seed=5).equals(first)
