"""Print the polynomials of ``maps.h``: interpolants at Chebyshev nodes, made with 60 digits.

An interpolant at these nodes is within a few per cent of the best polynomial of its degree, and
needs no package. ::

    python native/coefficients.py
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, getcontext

getcontext().prec = 60
LN2 = Decimal(2).ln()


def interpolant(function: Callable[[Decimal], Decimal], half: float, degree: int) -> list[Decimal]:
    """Return the coefficients, lowest first, of the interpolant on [−half, half]."""
    count = degree + 1
    nodes = [Decimal(half * math.cos(math.pi * (2 * i + 1) / (2 * count))) for i in range(count)]
    divided = [function(node) for node in nodes]
    for order in range(1, count):
        for i in range(count - 1, order - 1, -1):
            divided[i] = (divided[i] - divided[i - 1]) / (nodes[i] - nodes[i - order])
    result = [Decimal(0)] * count  # Newton's form, multiplied out from the inside
    for node, value in zip(reversed(nodes), reversed(divided), strict=True):
        shifted = [Decimal(0), *result[:-1]]
        result = [up - node * same for up, same in zip(shifted, result, strict=True)]
        result[0] += value
    return result


def power(f: Decimal) -> Decimal:
    """2^f."""
    return (f * LN2).exp()


def remainder(r: Decimal) -> Decimal:
    """(e^r − 1 − r) / r²."""
    return Decimal("0.5") if r.copy_abs() < Decimal("1e-20") else (r.exp() - 1 - r) / (r * r)


def main() -> None:
    """Print a line a coefficient."""
    half = float(LN2) / 2
    for name, function, limit, degree in (
        ("2^f, float", power, 0.5, 6),
        ("2^f, double", power, 0.5, 11),
        ("(e^r - 1 - r) / r^2, float", remainder, half, 5),
        ("(e^r - 1 - r) / r^2, double", remainder, half, 10),
    ):
        print(name)
        for coefficient in interpolant(function, limit, degree):
            print(f"    {coefficient:.20e}")


if __name__ == "__main__":
    main()
