from collections import Counter, defaultdict, namedtuple
letters = Counter("mississippi river")
index = defaultdict(list)
for word in "one two three four five six".split():
    index[len(word)].append(word)
Point = namedtuple("Point", "x y")
[letters.most_common(3), dict(index), list(Point(1, 2)._replace(y=5))]
