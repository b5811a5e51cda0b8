import statistics
sample = [2.5, 3.1, 4.7, 5.0, 3.8, 4.1]
[round(statistics.mean(sample), 3), statistics.median(sample), round(statistics.stdev(sample), 4)]
