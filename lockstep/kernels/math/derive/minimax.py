"""Minimax polynomial coefficients of the elementary functions in this folder, in the formats they are used in.

    pip install mpmath
    python3 minimax.py [NAME ...]      prints coefficients as C++ literals, highest degree first, and the error;
                                       normal_tail takes ten minutes, the rest two

Each entry approximates `target` by sum c[i] x^i on [lo, hi], minimising the largest |weight (target - sum)| by
the iteration of Lawson (1961). Coefficients are rounded from the lowest degree up, and those not yet rounded are
fitted again after each rounding, so that they take up the rounding of the ones before. The printed error is that of
the rounded coefficients in exact arithmetic; it has to lie well below 2^-24 or 2^-53.
"""

import struct
import sys

from mpmath import atan, erf, erfc, exp, expm1, log, log1p, lu_solve, matrix, mp, mpf, pi, sin, sqrt

mp.prec = 220
LN2 = log(mpf(2))


def rounded(x, bits):
    """x to a significand of `bits` bits."""
    if x == 0:
        return x
    mantissa, exponent = mp.frexp(x)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits)


def literal(x, bits):
    text = float(x).hex() if bits == 53 else struct.unpack("f", struct.pack("f", float(x)))[0].hex()
    head, exponent = text.split("p")
    if "." in head:
        head = head.rstrip("0").rstrip(".")
    return f"{head}p{exponent}" + ("" if bits == 53 else "f")


class Problem:
    """target and weight sampled once on a Chebyshev grid that leaves out 0, where weights may vanish."""

    def __init__(self, target, weight, lo, hi, size):
        nodes = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(pi * i / (size - 1)) for i in range(size)]
        self.x = [v for v in nodes if abs(v) > (hi - lo) * mpf(2) ** -40]
        self.f = [target(v) for v in self.x]
        self.w = [abs(weight(v)) for v in self.x]

    def error(self, coefficients):
        result = []
        for z, f, w in zip(self.x, self.f, self.w):
            value = mpf(0)
            for c in reversed(coefficients):
                value = value * z + c
            result.append(w * (f - value))
        return result

    def fit(self, fixed, count):
        """Lawson's iteration (weighted least squares) for the coefficients after the fixed ones.

        Unlike the exchange algorithm it does not mind that r, r^2, ... is no Chebyshev system on an interval
        around 0, which is what remains once the lowest coefficients are fixed.
        """
        free = range(len(fixed), count)
        base = self.error(fixed)
        columns = [[w * v**k for v, w in zip(self.x, self.w)] for k in free]
        lawson = [mpf(1)] * len(self.x)
        best, smallest = None, mpf("inf")
        for _ in range(30):
            n = len(columns)
            a, b = matrix(n, n), matrix(n, 1)
            for i in range(n):
                weighted = [l * c for l, c in zip(lawson, columns[i])]
                for j in range(i + 1):
                    a[i, j] = a[j, i] = mp.fdot(weighted, columns[j])
                b[i] = mp.fdot(weighted, base)
            solution = lu_solve(a, b)
            coefficients = list(fixed) + [solution[i] for i in range(n)]
            error = [abs(e) for e in self.error(coefficients)]
            largest = max(error)
            if largest < smallest:
                best, smallest = coefficients, largest
            lawson = [l * e / largest + mpf(2) ** -200 for l, e in zip(lawson, error)]
            total = sum(lawson)
            lawson = [l * len(lawson) / total for l in lawson]
        return best


def derive(target, weight, lo, hi, count, bits, fixed=()):
    """Rounded coefficients, lowest degree first, and the largest weighted error; `fixed` gives the first ones."""
    problem = Problem(target, weight, mpf(lo), mpf(hi), 12 * count + 61)
    done = list(fixed)
    while len(done) < count:
        done.append(rounded(problem.fit(done, count)[len(done)], bits))
    check = Problem(target, weight, mpf(lo), mpf(hi), 1777)
    return done, max(abs(e) for e in check.error(done))


def parts(value, bits, count, cut):
    """value as a sum of numbers of the format, each the rest rounded, or cut off so that all keep one sign."""
    result = []
    for _ in range(count):
        mantissa, exponent = mp.frexp(value)
        scaled = mp.ldexp(mantissa, bits)
        part = mp.ldexp(mp.floor(scaled) if cut else mp.nint(scaled), exponent - bits)
        result.append(part)
        value -= part
    return result


# The largest |r| of e^r after the multiple of ln2 is taken away, with room for its own rounding.
HALF = LN2 / 2 * mpf("1.0001")
SQRT2 = sqrt(mpf(2))


def mills_times(y):
    """(x + 4) e^(x^2/2) (1 - Phi(x)) at y = (x - 4)/(x + 4)."""
    x = 4 * (1 + y) / (1 - y)
    return exp(x * x / 2) * erfc(x / SQRT2) / 2 * (x + 4)


def end_of_tail(bits):
    x = mpf("14.8") if bits == 24 else mpf("39.2")
    return (x - 4) / (x + 4)


def atanh_tail(z):
    """C (1/5 + z/7 + z^2/9 + ...), C = 2/ln2."""
    s = sqrt(z)
    return 2 / LN2 * (mp.atanh(s) / s - 1 - z / 3) / z**2


# name: what it is, target, weight, interval (of bits), {bits: number of coefficients}, first coefficients given
TABLE = {
    "exp": ("e^r = 1 + r + r^2 q(r)", lambda r: (expm1(r) - r) / r**2, lambda r: r**2 / exp(r),
            lambda bits: (-HALF, HALF), {24: 5, 53: 10}, {}),
    "exp2": ("2^r = 1 + r q(r)", lambda r: expm1(r * LN2) / r, lambda r: r / exp(r * LN2),
             lambda bits: (mpf("-0.5001"), mpf("0.5001")), {24: 6, 53: 11}, {}),
    "tanh": ("(e^2r - 1)/2 = r + r^2 q(r)", lambda r: (expm1(2 * r) / 2 - r) / r**2,
             lambda r: r**2 / (expm1(2 * r) / 2), lambda bits: (-HALF / 2, HALF / 2), {53: 10}, {}),
    "coth": ("d coth d = 1 + d^2 q(d^2), |d| <= 1/4", lambda z: (sqrt(z) / mp.tanh(sqrt(z)) - 1) / z,
             lambda z: z / (sqrt(z) / mp.tanh(sqrt(z))), lambda bits: (mpf("1e-9"), mpf(1) / 16), {24: 2}, {}),
    "log": ("log(1 + f) = f + f^2 q(f)", lambda f: (log1p(f) - f) / f**2, lambda f: f**2 / log1p(f),
            lambda bits: (1 / SQRT2 - 1, SQRT2 - 1), {24: 9}, {}),
    "log2": ("log2(1 + f) = f/ln2 + f^2 q(f)", lambda f: (log1p(f) - f) / f**2 / LN2,
             lambda f: f**2 / log1p(f) * LN2, lambda bits: (1 / SQRT2 - 1, SQRT2 - 1), {24: 9}, {}),
    "log_s": ("log((1+s)/(1-s)) = 2 s + s^3 q(s^2)",
              lambda z: (log1p(sqrt(z)) - log1p(-sqrt(z)) - 2 * sqrt(z)) / sqrt(z) ** 3,
              lambda z: sqrt(z) ** 3 / (log1p(sqrt(z)) - log1p(-sqrt(z))),
              lambda bits: (mpf("1e-9"), mpf("0.02945")), {53: 7}, {}),
    "pow": ("log2((1+s)/(1-s)) = C (s + s^3/3) + s^5 q(s^2), C = 2/ln2", atanh_tail, lambda z: z * z,
            lambda bits: (mpf("1e-8"), mpf("0.02945")), {24: 3, 53: 8}, {}),
    "log1p": ("log(1 + u) = u + u^2 q(u), u in [0, 1]", lambda u: (log1p(u) - u) / u**2, lambda u: u**2 / log1p(u),
              lambda bits: (mpf("1e-9"), mpf(1)), {24: 9, 53: 20}, {}),
    "sin": ("sin r = r + r^3 q(r^2)", lambda z: (sin(sqrt(z)) - sqrt(z)) / sqrt(z) ** 3,
            lambda z: sqrt(z) ** 3 / sin(sqrt(z)), lambda bits: (mpf("1e-9"), mpf("2.49")), {24: 5, 53: 9}, {}),
    "erf": ("erf x = x + x q(x^2), |x| <= 1", lambda z: erf(sqrt(z)) / sqrt(z) - 1,
            lambda z: sqrt(z) / erf(sqrt(z)), lambda bits: (mpf("1e-9"), mpf(1)), {24: 7, 53: 13}, {}),
    "atan": ("atan x = x + x^3 q(x^2), |x| <= 1", lambda z: (atan(sqrt(z)) - sqrt(z)) / sqrt(z) ** 3,
             lambda z: sqrt(z) ** 3 / atan(sqrt(z)), lambda bits: (mpf("1e-9"), mpf(1)), {24: 9, 53: 20}, {}),
    "normal_tail": ("(x + 4) e^(x^2/2) (1 - Phi(x)) = q(y), y = (x - 4)/(x + 4)", mills_times,
                    lambda y: 1 / mills_times(y), lambda bits: (mpf(-1), end_of_tail(bits)), {24: 10, 53: 23}, {}),
}
# name: value, number of parts, whether they are cut
CONSTANTS = {
    "ln2": (LN2, 2, False),
    "1/ln2": (1 / LN2, 2, False),
    "2/ln2": (2 / LN2, 2, False),
    "2/(3 ln2)": (2 / LN2 / 3, 2, False),
    "pi": (pi, 3, True),
    "pi/2": (pi / 2, 2, False),
    "1/pi": (1 / pi, 1, False),
    "2 sqrt(2/pi)": (2 * sqrt(2 / pi), 1, False),
    "0.044715 * 2 sqrt(2/pi)": (mpf("0.044715") * 2 * sqrt(2 / pi), 1, False),
}


def show(name):
    comment, target, weight, interval, counts, fixed = TABLE[name]
    for bits, count in counts.items():
        c, error = derive(target, weight, *interval(bits), count, bits, fixed.get(bits, ()))
        print(f"{name}, {bits} bits: {comment}, error 2^{mp.nstr(log(error) / LN2, 4)}")
        print("  " + ", ".join(literal(v, bits) for v in reversed(c)), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        for name, (value, count, cut) in CONSTANTS.items():
            for bits in (24, 53):
                print(f"{name}, {bits} bits: " + ", ".join(literal(v, bits) for v in parts(+value, bits, count, cut)))
    for name in sys.argv[1:] or TABLE:
        show(name)
