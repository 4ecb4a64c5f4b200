"""The tables of tanh in float32: points c whose tanh is almost a float32, and 1 - tanh^2 there.

    pip install mpmath
    python3 tanh_table.py      prints the three tables of tanh-inl.h as C++ literals, in their order

Interval i holds the |x| whose |x| + 3 lies between START[i] and START[i + 1]; its entry stands at the exponent's last
bit and the three leading bits of the fraction of START[i]. Of the float32 around the middle of an interval, c is the
one whose tanh lies nearest to a float32, in parts of an ulp; beyond 5 there are more c than values of tanh, and c is
the one nearest to the inverse of a float32. The coefficients of d coth d come from minimax.py.
"""

import struct

from mpmath import atanh, mp, mpf, tanh

from minimax import literal, rounded

START = [mpf(3) + mpf(i) / 4 for i in range(4)] + [4 + mpf(i) / 2 for i in range(8)] + [mpf(8 + i) for i in range(5)]


def position(start):
    return struct.unpack("I", struct.pack("f", float(start)))[0] >> 20 & 15


def ulps_from_float32(value):
    nearest = rounded(value, 24)
    return abs(value - nearest) / mp.ldexp(1, mp.frexp(nearest)[1] - 24)


def point_with_exact_tanh(lo, hi):
    middle = rounded((lo + hi) / 2, 24)
    spacing = mp.ldexp(1, mp.frexp(middle)[1] - 24)
    return min((middle + k * spacing for k in range(-3000, 3001)), key=lambda c: ulps_from_float32(tanh(c)))


def point_from_tanh(lo, hi):
    """Where tanh has few values left: the inverses of the twelve nearest to the middle."""
    ulp = mpf(2) ** -24
    middle = 1 - ulp * mp.nint((1 - tanh((lo + hi) / 2)) / ulp)
    points = [rounded(atanh(middle + k * ulp), 24) for k in range(-6, 7) if 0 < middle + k * ulp < 1]
    near = [c for c in points if abs(c - (lo + hi) / 2) < mpf("0.1")]
    return min(near, key=lambda c: ulps_from_float32(tanh(c)))


def entry(i):
    lo, hi = START[i] - 3, START[i + 1] - 3
    if i == 0:
        return mpf(0), mpf(0), mpf(1)
    if i == 15:  # the number before 1, and a slope with which the result reaches 1 just before 9
        t = 1 - mpf(2) ** -24
        return rounded(atanh(t), 24), t, rounded((1 - t * t) * mpf("1.035"), 24)
    c = point_with_exact_tanh(lo, hi) if i < 12 else point_from_tanh(lo, hi)
    t = rounded(tanh(c), 24)
    return c, t, rounded(1 - t * t, 24)


if __name__ == "__main__":
    entries = dict(sorted((position(START[i]), entry(i)) for i in range(16)))
    for column, name in enumerate(("kPoint", "kTanh", "kSlope")):
        print(name + ": " + ", ".join(literal(entries[k][column], 24) if entries[k][column] else "0.0f" for k in entries))
