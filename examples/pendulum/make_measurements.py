"""Writes measured.csv: a pendulum of one metre, released twelve times and filmed with a noisy camera.

Its drag, 0.3 v + 0.15 v |v| in 1/s^2, is what the example's net is to find; the file does not tell it.
usage: make_measurements.py [FILE]; needs NumPy
"""
import sys

import numpy as np

LENGTH, GRAVITY = 1.0, 9.81  # m, m/s^2
NOISE = (0.02, 0.05)  # rad, rad/s
STEPS = 100  # of RK4 from one picture to the next


def drag(rate):
    return 0.3 * rate + 0.15 * rate * abs(rate)


def derivative(state):
    angle, rate = state
    return np.array([rate, -GRAVITY / LENGTH * np.sin(angle) - drag(rate)])


def advance(state, time):
    h = time / STEPS
    for _ in range(STEPS):
        a = derivative(state)
        b = derivative(state + h / 2 * a)
        c = derivative(state + h / 2 * b)
        d = derivative(state + h * c)
        state = state + h / 6 * (a + 2 * b + 2 * c + d)
    return state


def main():
    random = np.random.default_rng(7)
    with open(sys.argv[1] if len(sys.argv) > 1 else "measured.csv", "w") as file:
        file.write("release,t,angle,rate\n")
        for release in range(1, 13):
            state = np.array([random.uniform(-2.2, 2.2), random.uniform(-2, 2)])
            for picture in range(41):
                angle, rate = state + random.normal(size=2) * NOISE
                file.write(f"{release},{0.1 * picture:.1f},{angle:.4f},{rate:.4f}\n")
                state = advance(state, 0.1)


if __name__ == "__main__":
    main()
