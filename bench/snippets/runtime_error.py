def average(values):
    return sum(values) / len(values)

def report(groups):
    result = {}
    for name, values in groups.items():
        try:
            result[name] = average(values)
        except ZeroDivisionError as error:
            result[name] = type(error).__name__
    return result

report({"a": [1, 2, 3], "b": [], "c": [10]})
