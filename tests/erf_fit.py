#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""By hand: the fit behind erf in op/expand_function.c; prints its tables, and each polynomial's error in
units of the type's last place.

The error is that of erf, relative: the fit of a function f is weighted by what an error of f is to erf.
Weighted least squares over Chebyshev's points come close to the minimax polynomial when each point's
weight is multiplied by its error again and again (Lawson's algorithm; Rice & Usow 1968).
"""
import math
from decimal import Decimal, getcontext

getcontext().prec = 70
POINTS = 100
ROUNDS = 40
ROOT_OF_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640629").sqrt()


def erf(x):
    """By its series; 16 of the digits cancel at 6."""
    term = total = x
    n = 0
    while abs(term) > Decimal(10) ** -60:
        n += 1
        term *= -x * x / n
        total += term / (2 * n + 1)
    return 2 / ROOT_OF_PI * total


def below_one(square):
    """erf(x) / x - 1 over x^2, and what an error of it is to erf."""
    x = square.sqrt()
    y = erf(x)
    return y / x - 1, x / y


def above_one(x):
    """log(1 - erf(x)), and what an error of it is to erf."""
    y = erf(x)
    return (1 - y).ln(), (1 - y) / y


def solve(matrix):
    """The solution of a symmetric system; each row ends with its right-hand side."""
    n = len(matrix)
    for i in range(n):
        for r in range(i + 1, n):
            factor = matrix[r][i] / matrix[i][i]
            matrix[r] = [a - factor * b for a, b in zip(matrix[r], matrix[i])]
    solution = [Decimal(0)] * n
    for r in reversed(range(n)):
        known = sum(matrix[r][k] * solution[k] for k in range(r + 1, n))
        solution[r] = (matrix[r][n] - known) / matrix[r][r]
    return solution


def fit(function, low, high, degree):
    """The best coefficients that were met, of x^0 first, and their largest error."""
    places = [low + (high - low) * Decimal((1 - math.cos(math.pi * (i + 0.5) / POINTS)) / 2)
              for i in range(POINTS)]
    powers = [[x ** k for k in range(degree + 1)] for x in places]
    value, weight = zip(*(function(x) for x in places))
    share, best = [Decimal(1)] * POINTS, (None, Decimal("Infinity"))
    for _ in range(ROUNDS):
        squares = [s * w * w for s, w in zip(share, weight)]
        rows = [[q * p for p in row] for q, row in zip(squares, powers)]
        matrix = [[sum(row[r] * p[k] for row, p in zip(rows, powers)) for k in range(degree + 1)]
                  + [sum(row[r] * v for row, v in zip(rows, value))] for r in range(degree + 1)]
        solution = solve(matrix)
        error = [abs(sum(c * p for c, p in zip(solution, row)) - v) * w
                 for row, v, w in zip(powers, value, weight)]
        if max(error) < best[1]:
            best = (solution, max(error))
        total = sum(s * e for s, e in zip(share, error))
        share = [s * e * POINTS / total for s, e in zip(share, error)]
    return best


def main():
    for name, digits, of_one, of_large, end in (("f32", 24, 6, 6, 4), ("f64", 53, 11, 18, 6)):
        for part, function, low, high, degree in (("small", below_one, Decimal("1e-9"), 1, of_one),
                                                  ("large", above_one, 1, end, of_large)):
            solution, error = fit(function, Decimal(low), Decimal(high), degree)
            print("%s %s: error %.3f of 2^-%d" % (name, part, error * 2 ** digits, digits))
            print(", ".join(repr(float(c)) for c in reversed(solution)))


if __name__ == "__main__":
    main()
