"""Logistic regression, for the calibrations: the likeliest numbers, found by Newton steps."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 100


def likeliest(features: Floats, targets: Floats, weights: Floats, ridge: Floats, start: Floats) -> Floats:
    """The numbers (features,) of least weighted log loss plus `ridge` times half their squared distance from `start`.

    `features`: (claims, features), a constant among them where wanted; `targets` 0 to 1 and `weights`: (claims,);
    `ridge` and `start`: (features,). Steps are halved while they do not help, so that the same claims always give the
    same numbers.
    """

    def loss(numbers: Floats) -> float:
        z = features @ numbers
        return float(weights @ (np.logaddexp(0, z) - targets * z) + ridge @ (numbers - start) ** 2 / 2)

    numbers = start
    for _ in range(_STEPS):
        said = (1 + np.tanh(features @ numbers / 2)) / 2
        gradient = features.T @ (weights * (said - targets)) + ridge * (numbers - start)
        curvature = (features.T * (weights * said * (1 - said))) @ features + np.diag(ridge + 1e-12)
        step = np.linalg.solve(curvature, gradient)
        size, before = 1.0, loss(numbers)
        while loss(numbers - size * step) > before and size > 1e-10:
            size /= 2
        numbers = numbers - size * step
        if np.abs(size * step).max() < 1e-9:
            break
    return numbers
