matrix = [[row * 4 + column for column in range(4)] for row in range(4)]
transposed = [[row[i] for row in matrix] for i in range(4)]
diagonal = [matrix[i][i] for i in range(4)]
{"t": transposed, "d": diagonal, "even": {v for row in matrix for v in row if v % 2 == 0}}
