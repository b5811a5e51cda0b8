from datetime import date, datetime, timedelta
start = datetime.fromisoformat("2024-02-27T22:15:00")
moments = [start + timedelta(hours=9 * i) for i in range(5)]
weekend = [m.date() for m in moments if m.weekday() >= 5]
[m.strftime("%a %d %b %H:%M") for m in moments] + [str((date(2024, 12, 24) - start.date()).days), len(weekend)]
