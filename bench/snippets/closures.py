def counter(step):
    total = 0
    def advance(times=1):
        nonlocal total
        total += step * times
        return total
    return advance

def compose(*functions):
    def run(value):
        for function in functions:
            value = function(value)
        return value
    return run

advance = counter(3)
[advance(), advance(4), compose(abs, str, len)(-12345)]
