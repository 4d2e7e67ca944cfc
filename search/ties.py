"""Ties: which of several co-optimal networks a search returns.

AIC, BIC and MDL give every DAG of a Markov equivalence class the same score, so "the" optimum is a class, and its
distance to the truth depends on the member that is returned. Here a tie rule is a matrix of edge weights: ε times
the weights of a network's edges is added to its score, which decides between equal scores and between nothing else.

- ``"random"``: independent uniform weights, so that no label is preferred.
- ``"optimistic"``, ``"pessimistic"``: a learned edge i → j weighs −1 if it is true, 0 if j → i is true, and 1
  otherwise. The structural Hamming distance to the truth (a reversal counts 1) is the number of true edges plus the
  weights of the learned ones, so adding or subtracting ε times them finds the nearest or farthest optimum.
- ``"forward"``, ``"backward"``: an edge that goes against, or along, the order of the labels weighs 1. Where labels
  are in causal order, as in many simulations, the one is a hidden oracle and the other its opposite: what a search that
  takes the last or the first sink of equal ones does.
- ``"first"``: no weights; the search's own order decides.

ε is 1e-12 of the score's size: the sum over children of the larger absolute code length of the family without parents
and of one with as many as are allowed, at least 1. Sums of code lengths that are equal on paper differ by some 1e-15
of that size, and two networks that are not tied rarely come closer than 1e-9: the weights lie between. The same
tolerance defines a tie in `search.exhaustive`. All this is said of scores in double precision: one that is computed in
single precision has no exact ties, only accidents of rounding.
"""

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from scorers.base import Array

Ties = Literal["random", "optimistic", "pessimistic", "forward", "backward", "first"]

# Scores that differ by less than this share of their size are equal.
TOLERANCE = 1e-12


def score_size(none: Array, many: Array) -> Array:
    """The size of a score, from the code lengths of each child without parents and with many.

    Parameters
    ----------
    none, many : Array
        One code length for each child; of several data sets along the leading axes.

    Returns
    -------
    Array
        What differences between networks' scores are small or large in comparison with: one number, or one for each
        data set.
    """
    with np.errstate(over="ignore"):
        size: Array = np.maximum(np.abs(none), np.abs(many)).sum(axis=-1)
    if not np.isfinite(size).all():
        raise ValueError("The scores are so large that their sum is not finite: scale them down.")
    return np.maximum(1.0, size)


def edge_weights(
    ties: Ties, m: int, truth: npt.ArrayLike | None = None, rng: np.random.Generator | int | None = None
) -> Array:
    """The m × m weights of a tie rule, before they are multiplied by ε.

    Parameters
    ----------
    ties : {"random", "optimistic", "pessimistic", "forward", "backward", "first"}
        The rule.
    m : int
        Nodes.
    truth : array_like, optional
        The true adjacency, for "optimistic" and "pessimistic".
    rng : Generator or int, optional
        The source of the random weights.

    Returns
    -------
    Array
        Entry [i, j] is the weight of the edge i → j.
    """
    if ties not in get_args(Ties):
        raise ValueError(f"ties must be one of {', '.join(get_args(Ties))}. Got {ties!r} instead.")
    if ties == "random":
        return np.random.default_rng(rng).random((m, m))
    if ties == "first":
        return np.zeros((m, m))
    if ties in ("forward", "backward"):
        against = np.tril(np.ones((m, m)), k=-1)
        return against if ties == "forward" else against.T
    if truth is None:
        raise ValueError(f"ties={ties!r} needs the truth that the optimum shall be near to or far from: give truth.")
    return shd_weights(truth) if ties == "optimistic" else -shd_weights(truth)


def band_weights(truth: npt.ArrayLike, random: Array) -> Array:
    """The weights of three rules, whose optima span the tie band: optimistic, random as given, pessimistic.

    Of one truth, 3 × m × m; of several, along the leading axes.
    """
    towards = shd_weights(truth)
    return np.stack([towards, random, -towards], axis=-3)


def shd_weights(truth: npt.ArrayLike) -> Array:
    """What a learned edge adds to the SHD: −1 if true, 0 if its reversal is true, 1 otherwise."""
    true = np.asarray(truth, dtype=np.float64)
    return 1.0 - 2.0 * true - np.swapaxes(true, -1, -2)


def shd_of_weights(truth: npt.ArrayLike, learned: npt.ArrayLike) -> int:
    """SHD with reversals counting 1, as the number of true edges plus the weights of the learned ones.

    Examples
    --------
    >>> shd_of_weights([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    1
    """
    return int(np.asarray(truth).sum() + (shd_weights(truth) * np.asarray(learned)).sum())
