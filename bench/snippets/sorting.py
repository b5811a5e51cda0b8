people = [("Zoe", 31), ("Bob", 25), ("Amy", 31), ("Cal", 19)]
by_age = sorted(people, key=lambda p: (-p[1], p[0]))
names = sorted((name for name, _ in people), key=str.lower, reverse=True)
[by_age, names, min(people, key=lambda p: p[1])]
