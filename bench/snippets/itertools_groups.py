import itertools
data = [("a", 1), ("a", 2), ("b", 3), ("b", 4), ("c", 5)]
groups = {key: [v for _, v in rows] for key, rows in itertools.groupby(data, key=lambda r: r[0])}
pairs = list(itertools.product("xy", repeat=2))
[groups, ["".join(p) for p in pairs], list(itertools.accumulate(range(1, 6)))]
