# Kepler's third law, measured: the period of a planet grows with its distance to the power 3/2.
# Reads the table of planets on its standard input, leaves the comparison as a file, and its last
# line is the value that the caller gets.
import csv
import math
import sys

rows = list(csv.DictReader(line for line in sys.stdin if not line.startswith("#")))
distance = [math.log(float(row["distance_1e6_km"])) for row in rows]
period = [math.log(float(row["orbital_period_days"])) for row in rows]

# The line of least squares through (log distance, log period).
mean_x, mean_y = sum(distance) / len(rows), sum(period) / len(rows)
exponent = sum((x - mean_x) * (y - mean_y) for x, y in zip(distance, period)) / sum(
    (x - mean_x) ** 2 for x in distance
)

with open("kepler.csv", "w", newline="") as file:
    out = csv.writer(file)
    out.writerow(["planet", "period_days", "predicted_days", "off_by_percent"])
    print(f"{'planet':8} {'days':>8} {'Kepler':>9}")
    for row, x in zip(rows, distance):
        measured = float(row["orbital_period_days"])
        predicted = math.exp(mean_y + 1.5 * (x - mean_x))
        out.writerow([row["planet"], measured, round(predicted, 1), round(100 * (predicted / measured - 1), 2)])
        print(f"{row['planet']:8} {measured:8.1f} {predicted:9.1f}")

{"planets": len(rows), "exponent": round(exponent, 4)}
