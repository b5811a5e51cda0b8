def hanoi(n, source="A", target="C", spare="B"):
    if n == 0:
        return []
    return hanoi(n - 1, source, spare, target) + [source + target] + hanoi(n - 1, spare, target, source)

moves = hanoi(5)
[len(moves), moves[:6]]
