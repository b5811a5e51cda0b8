from decimal import Decimal, ROUND_HALF_UP
prices = ["19.99", "5.01", "0.125"]
total = sum(Decimal(p) for p in prices)
tax = (total * Decimal("0.19")).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
{"total": total, "tax": tax}
