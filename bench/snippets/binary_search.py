def find(items, wanted):
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(items) and items[low] == wanted else -1

numbers = list(range(0, 1000, 7))
[find(numbers, 693), find(numbers, 5), find(numbers, 0)]
