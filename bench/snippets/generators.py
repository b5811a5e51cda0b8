def primes():
    found = []
    n = 2
    while True:
        if all(n % p for p in found if p * p <= n):
            found.append(n)
            yield n
        n += 1

def take(n, source):
    return [item for _, item in zip(range(n), source)]

take(15, primes())
