rows = [("tea", 2, 3.5), ("coffee", 11, 4.25), ("water", 1, 0)]
lines = [f"{name:<8}|{count:>4d}|{price:8.2f}|{count * price:>10,.1f}" for name, count, price in rows]
total = sum(count * price for _, count, price in rows)
print("\n".join(lines))
f"{total=:.2f} {total!r} {1234567:_} {0.256:.1%} {255:08b}"
