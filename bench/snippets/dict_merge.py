stock = {"apple": 3, "pear": 5, "plum": 0}
delivery = {"pear": 7, "fig": 2}
merged = {name: stock.get(name, 0) + delivery.get(name, 0) for name in sorted(stock | delivery)}
{name: count for name, count in merged.items() if count}
