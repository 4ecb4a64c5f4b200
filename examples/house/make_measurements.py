"""Writes weather.csv, heating.csv and room.csv: five days of a house in winter, half of whose laws the example knows.

Every hour the temperature outside and the sun's power on its windows; the heating's switch, whenever it was turned; the
room's temperature every quarter of an hour, with noise. What the sun brings through windows with blinds, and the house's own
numbers, are what the example is to find; the files do not tell them.
usage: make_measurements.py [FOLDER]; needs NumPy
"""
import pathlib
import sys

import numpy as np

LOSSES, HEATING = 0.08, 1.6  # 1/h, K/h
NOISE = 0.05  # K
HOURS, STEPS = 120, 64  # of one hour; switches are turned at whole steps


def through_the_windows(sun):
    """In K/h: blinds go down at half a kilowatt."""
    return 1.2 * sun / (1 + np.exp((sun - 0.5) / 0.06))


def weather(random):
    hour = np.arange(HOURS + 1)
    fronts = np.interp(hour, np.arange(0, HOURS + 24, 24), random.normal(2, 4, HOURS // 24 + 1))
    outside = fronts + 3 * np.sin(2 * np.pi * (hour - 9) / 24) + random.normal(0, 0.3, hour.size)
    clouds = np.interp(hour, np.arange(0, HOURS + 3, 3), random.uniform(0.15, 1, HOURS // 3 + 1))
    height = np.sin(2 * np.pi * (hour % 24 - 6) / 24)
    return hour, np.round(outside, 2), np.round(np.clip(height, 0, None) * clouds, 3)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    random = np.random.default_rng(11)
    hour, outside, sun = weather(random)
    room, on = 19.0, 0
    switched, measured = [(0, 0)], []

    def rate(time, room, on):
        return (LOSSES * (np.interp(time, hour, outside) - room) + HEATING * on +
                through_the_windows(np.interp(time, hour, sun)))

    for step in range(STEPS * HOURS + 1):
        time = step / STEPS
        if step % (STEPS // 4) == 0:
            measured.append((time, room + random.normal(0, NOISE)))
        wanted = 20.5 if 6 <= time % 24 < 22 else 17
        if (room < wanted - 0.5 and not on) or (room > wanted + 0.5 and on):
            on = 1 - on
            switched.append((time, on))
        middle = room + rate(time, room, on) / (2 * STEPS)
        room += rate(time + 0.5 / STEPS, middle, on) / STEPS
    for name, head, form, rows in (("weather", "hour,outside,sun", "%g", np.column_stack([hour, outside, sun])),
                                   ("heating", "hour,on", ["%.6f", "%d"], switched),
                                   ("room", "hour,room", "%.2f", measured)):
        np.savetxt(folder / f"{name}.csv", rows, form, ",", header=head, comments="")


if __name__ == "__main__":
    main()
