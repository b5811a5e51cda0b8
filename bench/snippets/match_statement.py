def describe(shape):
    match shape:
        case {"kind": "circle", "r": r}:
            return round(3.14159 * r * r, 2)
        case [w, h]:
            return w * h
        case int() | float() as side:
            return side ** 2
        case _:
            return None

[describe({"kind": "circle", "r": 2}), describe([3, 4]), describe(5), describe("?")]
