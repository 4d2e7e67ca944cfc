"""The inner loops for several tie rules at once: one dynamic programme, whatever their number.

Tie weights decide between networks whose scores are equal, or nearly so, and those are few. So the programme is done
once, without weights; and then with the weights of each rule, but only along *steps* of near-best networks. A step adds
a child to a set of nodes, in which its parents are. It is near best if a network that takes it is worse than the best
one by no more than weights can make up for. All such steps are found, and all parent sets that they can choose, so
nothing is left out that could win; and scores are added up in the order in which a programme with weights in its table
adds them. So the networks are those of one such programme for each rule, even where rounding decides. That is also what
is done instead, if some child has too many parent sets to choose from.

Arrays are named as in `search.kernels`, and nothing is checked here either.
"""

from typing import Any

import numba
import numpy as np

from search.kernels import backtrack, compress, minimise_child, place_child, sinks, smaller

# Parent sets that the near-best steps of one child can choose from; with more each rule gets a programme of its own.
MOST = 64


@numba.njit(cache=True, nogil=True)
def solve(scores: Any, masks: Any, weights: Any, epsilon: Any, parents: Any, local: Any) -> None:
    """parents[d, r] = the best network's parent masks, for each data set's scores[d] and tie weights[d, r].

    scores[d, j, i] belongs to child j with the compressed mask masks[i]; the edge i → j adds to it
    epsilon[d] · weights[d, r, i, j]. local[d, r, j] = the score of child j, without that.
    """
    rules, m = parents.shape[1:]
    best, total = np.empty((m, 1 << (m - 1))), np.empty(1 << m)
    of_child = np.empty((rules, m, m - 1))  # the weights of a child's edges, by the bits of its compressed masks
    for d in range(parents.shape[0]):
        for r in range(rules):
            for j in range(m):
                for b in range(m - 1):
                    of_child[r, j, b] = epsilon[d] * weights[d, r, b + (b >= j), j]
        decided = False
        if rules > 1:
            best[:] = np.inf
            for j in range(m):
                for i in range(masks.shape[0]):
                    best[j, masks[i]] = scores[d, j, i]
            _programme(best, total)
            decided = _decide(scores[d], masks, of_child, best, total, parents[d])
        if not decided:
            for r in range(rules):
                for j in range(m):
                    place_child(scores[d, j], masks, of_child[r, j], 0, False, best[j])
                _programme(best, total)
                backtrack(best, total, parents[d, r])
        for r in range(rules):
            for j in range(m):
                local[d, r, j] = scores[d, j, np.searchsorted(masks, compress(parents[d, r, j], j))]


@numba.njit(cache=True, nogil=True)
def _programme(best: Any, total: Any) -> None:
    """The dynamic programme, from local scores in `best` on."""
    for j in range(best.shape[0]):
        minimise_child(best[j])
    total[:] = np.inf
    total[0] = 0.0
    sinks(best, total, 0, total.shape[0])


@numba.njit(cache=True, nogil=True)
def _decide(scores: Any, masks: Any, weights: Any, best: Any, total: Any, parents: Any) -> bool:
    """Let each rule's weights decide between the near-best networks; False if there are too many parent sets.

    `best` and `total` are those of the programme without weights.
    """
    rules, m = parents.shape
    # With its weights a rule's network is no worse than the best one; so without, it is worse by no more than sums of
    # weights can differ: at most Σ|weights|. Twice that has all that it competes with on its way, too. As to rounding,
    # no sum exceeds `size`.
    slack, size = 0.0, 0.0
    for r in range(rules):
        slack = max(slack, 2 * np.abs(weights[r]).sum())
    for j in range(m):
        size += max(abs(best[j, 0]), abs(best[j, -1]))
    slack += 4 * m * np.finfo(np.float64).eps * size

    sources, children = np.empty(m << (m - 1), np.int64), np.empty(m << (m - 1), np.int64)
    ends = np.empty((1 << m) + 1, np.int64)
    _near_best_steps(best, total, slack, sources, children, ends)
    least, chosen = np.empty((ends[0], rules)), np.empty((ends[0], rules), np.int64)
    if not _weigh_steps(scores, masks, weights, best, slack, sources, children, least, chosen):
        return False

    near = np.empty((1 << m, rules))
    near[0] = 0.0
    for s in range(1, 1 << m):
        if ends[s] > ends[s + 1]:
            near[s] = np.inf
        for e in range(ends[s + 1], ends[s]):
            for r in range(rules):
                near[s, r] = smaller(near[sources[e], r] + least[e, r], near[s, r])
    for r in range(rules):
        s = (1 << m) - 1
        while s:
            e = ends[s + 1]
            while near[sources[e], r] + least[e, r] != near[s, r]:
                e += 1
            s, j, c = sources[e], children[e], chosen[e, r]
            low = (1 << j) - 1
            parents[r, j] = (c & low) | ((c & ~low) << 1)
    return True


@numba.njit(cache=True, nogil=True)
def _near_best_steps(best: Any, total: Any, slack: float, sources: Any, children: Any, ends: Any) -> None:
    """The steps whose best network is worse than the best of all by `slack` at most, from the set of all nodes down.

    Step e adds children[e] to the set sources[e]; those that lead to s are from ends[s + 1] to ends[s].
    """
    m = best.shape[0]
    rest = np.full(1 << m, np.inf)  # the least that the nodes outside a set add to it
    rest[-1] = 0.0
    e = 0
    ends[1 << m] = 0
    for s in range((1 << m) - 1, -1, -1):
        if rest[s] < np.inf:
            for j in range(m):
                if (s >> j) & 1:
                    without = s ^ (1 << j)
                    beyond = best[j, compress(without, j)] + rest[s]
                    if total[without] + beyond <= total[-1] + slack:
                        rest[without] = smaller(beyond, rest[without])
                        sources[e], children[e] = without, j
                        e += 1
        ends[s] = e


@numba.njit(cache=True, nogil=True)
def _weigh_steps(
    scores: Any,
    masks: Any,
    weights: Any,
    best: Any,
    slack: float,
    sources: Any,
    children: Any,
    least: Any,
    chosen: Any,
) -> bool:
    """least[e, r] = the best score of the child of step e with the weights of rule r, chosen[e, r] = its parents.

    Of tied parent sets the one that leaves out the lowest node that is not in all. False if a child has too many.
    """
    m, rules = best.shape[0], least.shape[1]
    values, counts = np.empty((m, MOST)), np.zeros(m, np.int64)  # scores, without weights, of a child in its steps
    for e in range(least.shape[0]):
        j = children[e]
        value = best[j, compress(sources[e], j)]
        i = 0
        while i < counts[j] and values[j, i] != value:
            i += 1
        if i == MOST:
            return False
        values[j, i] = value
        counts[j] = max(counts[j], i + 1)

    sets, own, weighted = np.empty((m, MOST), np.int64), np.empty((m, MOST)), np.empty((m, MOST, rules))
    sizes = np.zeros(m, np.int64)
    unbeaten = np.empty(masks.shape[0] + 1, np.int64)  # parent sets that no subset is better than by more than `slack`
    for j in range(m):
        highest = values[j, : counts[j]].max() + slack
        count = 0
        for i in range(masks.shape[0]):
            unbeaten[count] = i
            count += scores[j, i] <= smaller(highest, best[j, masks[i]] + slack)
        for i in unbeaten[:count]:
            near = False
            for value in values[j, : counts[j]]:
                near |= value <= best[j, masks[i]] and scores[j, i] <= value + slack
            if near:
                k = sizes[j]
                if k == MOST:
                    return False
                sets[j, k], own[j, k] = masks[i], scores[j, i]
                for r in range(rules):
                    weighted[j, k, r] = scores[j, i] + _weight(masks[i], weights[r, j])
                sizes[j] += 1

    least[:] = np.inf
    for e in range(least.shape[0]):
        j = children[e]
        c = compress(sources[e], j)
        for k in range(sizes[j]):
            if sets[j, k] & ~c == 0 and own[j, k] <= best[j, c] + slack:
                for r in range(rules):
                    differ = sets[j, k] ^ chosen[e, r]
                    first = differ & -differ & chosen[e, r]
                    if weighted[j, k, r] < least[e, r] or (weighted[j, k, r] == least[e, r] and first):
                        least[e, r], chosen[e, r] = weighted[j, k, r], sets[j, k]
    return True


@numba.njit(inline="always")
def _weight(mask: int, weights: Any) -> Any:
    """The sum of the weights of a mask's bits, added up as `place_child` does it: ten low bits, the others, both."""
    low, high = 0.0, 0.0
    for b in range(weights.shape[0]):
        if (mask >> b) & 1:
            if b < 10:
                low += weights[b]
            else:
                high += weights[b]
    return low + high
