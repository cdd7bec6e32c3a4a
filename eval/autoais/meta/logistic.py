"""Regularised logistic regression by Newton's method, for the calibrations."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 100


def fit_logistic(features: Floats, targets: Floats, weights: Floats, ridge: Floats, start: Floats) -> Floats:
    """The coefficients (features,) that minimise weighted log loss plus a ridge penalty around `start`.

    The penalty is `ridge` times half the squared distance from `start`. `features`: (claims, features), including a
    constant column if an intercept is wanted; `targets` (0 to 1) and `weights`: (claims,); `ridge` and `start`:
    (features,). Steps are halved until the loss falls, so the same claims always give the same coefficients.
    """

    def loss(numbers: Floats) -> float:
        z = features @ numbers
        return float(weights @ (np.logaddexp(0, z) - targets * z) + ridge @ (numbers - start) ** 2 / 2)

    numbers = start
    for _ in range(_STEPS):
        probabilities = (1 + np.tanh(features @ numbers / 2)) / 2
        gradient = features.T @ (weights * (probabilities - targets)) + ridge * (numbers - start)
        curvature = (features.T * (weights * probabilities * (1 - probabilities))) @ features + np.diag(ridge + 1e-12)
        step = np.linalg.solve(curvature, gradient)
        size, before = 1.0, loss(numbers)
        while loss(numbers - size * step) > before and size > 1e-10:
            size /= 2
        numbers = numbers - size * step
        if np.abs(size * step).max() < 1e-9:
            break
    return numbers
