from functools import lru_cache, partial, reduce

@lru_cache(maxsize=None)
def ways(amount, coins=(50, 20, 10, 5, 2, 1)):
    if amount == 0:
        return 1
    if amount < 0 or not coins:
        return 0
    return ways(amount - coins[0], coins) + ways(amount, coins[1:])

power = partial(pow, 2)
[ways(100), power(10), reduce(lambda a, b: a * b, range(1, 11))]
