def multiply(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]

a = [[1, 2], [3, 4]]
power = a
for _ in range(10):
    power = multiply(power, a)
power
