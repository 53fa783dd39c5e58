#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""By hand: the fits behind erf in nest/expand.c and exp in target/c/math.c; prints their tables,
and each fit's error in units of the type's last place.

erf(x) / x is fitted by P(x^2) / Q(x^2) up to the x from which erf rounds to 1. The problem is linear if
(P - Q f) / Q is weighted by the Q of the round before (Loeb's algorithm); weighted least squares come
close to the minimax fit when each point's weight is multiplied by its error again and again (Lawson's
algorithm). Cody (1969) fits erf by such quotients, too.

exp(x) for |x| up to half the logarithm of 2 is 1 + x + x^2 P(x), so that exp(0) is 1; P is linear, and
only Lawson's part is needed.
"""
import math
from decimal import Decimal, getcontext

getcontext().prec = 70
POINTS = 120
ROUNDS = 30
ROOT_OF_PI = Decimal("3.1415926535897932384626433832795028841971693993751058209749445923").sqrt()


def erf(x):
    """By its series; 16 of the digits cancel at 6."""
    term = total = x
    n = 0
    while abs(term) > Decimal(10) ** -60:
        n += 1
        term *= -x * x / n
        total += term / (2 * n + 1)
    return 2 / ROOT_OF_PI * total


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


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def fit(end, degree):
    """The coefficients of P and Q, of x^0 first, and the largest relative error."""
    places = [end * Decimal((1 - math.cos(math.pi * (i + 0.5) / POINTS)) / 2) for i in range(POINTS)]
    powers = [[x ** (2 * k) for k in range(degree + 1)] for x in places]
    value = [erf(x) / x for x in places]
    share, before, best = [Decimal(1)] * POINTS, [Decimal(1)] * POINTS, (None, None, Decimal(1))
    for _ in range(ROUNDS):
        weight = [s.sqrt() / (f * q) for s, f, q in zip(share, value, before)]
        rows = [[w * p for p in row] + [-w * f * p for p in row[1:]] + [w * f]
                for w, f, row in zip(weight, value, powers)]
        columns = list(zip(*rows))
        solution = solve([[dot(a, b) for b in columns] for a in columns[:-1]])
        p, q = solution[:degree + 1], [Decimal(1)] + solution[degree + 1:]
        before = [dot(q, row) for row in powers]
        error = [abs(dot(p, row) / b / f - 1) for row, b, f in zip(powers, before, value)]
        if max(error) < best[2] and min(p + q) > 0:
            best = (p, q, max(error))
        total = dot(share, error)
        share = [s * e * POINTS / total for s, e in zip(share, error)]
    return best


def fit_exp(end, degree):
    """The coefficients of P, of x^0 first, and the largest relative error of exp."""
    places = [end * Decimal(math.cos(math.pi * (i + 0.5) / POINTS)) for i in range(POINTS)]
    powers = [[x ** (2 + k) for k in range(degree + 1)] for x in places]
    share, best = [Decimal(1)] * POINTS, (None, Decimal(1))
    for _ in range(ROUNDS):
        rows = [[s.sqrt() / x.exp() * p for p in row + [x.exp() - 1 - x]] for s, x, row in zip(share, places, powers)]
        columns = list(zip(*rows))
        p = solve([[dot(a, b) for b in columns] for a in columns[:-1]])
        error = [abs((1 + x + dot(p, row)) / x.exp() - 1) for x, row in zip(places, powers)]
        if max(error) < best[1]:
            best = (p, max(error))
        total = dot(share, error)
        share = [s * e * POINTS / total for s, e in zip(share, error)]
    return best


def main():
    p, error = fit_exp(Decimal(2).ln() / 2 * Decimal("1.0005"), 4)
    print("exp in f32: error %.3f of 2^-24" % (error * 2 ** 24))
    print(", ".join(repr(float(c)) for c in reversed(p)))
    for name, digits, end, degree in (("f32", 24, "3.92", 5), ("f64", 53, "5.92", 12)):
        p, q, error = fit(Decimal(end), degree)
        print("%s up to %s: error %.3f of 2^-%d" % (name, end, error * 2 ** digits, digits))
        for coefficients in (p, q):
            print(", ".join(repr(float(c)) for c in reversed(coefficients)))


if __name__ == "__main__":
    main()
