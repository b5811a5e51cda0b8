import csv, io
table = "name,score\nann,90\nbo,72\ncy,85\n"
rows = list(csv.DictReader(io.StringIO(table)))
average = sum(int(r["score"]) for r in rows) / len(rows)
{"average": round(average, 2), "best": max(rows, key=lambda r: int(r["score"]))["name"]}
