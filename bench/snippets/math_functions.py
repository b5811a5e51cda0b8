import math
angle = math.radians(30)
[round(math.sin(angle), 12), math.isqrt(10 ** 12), math.comb(10, 3), math.hypot(3, 4), math.log2(1024), math.dist((0, 0), (1, 1))]
