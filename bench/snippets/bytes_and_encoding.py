text = "naïve café, 東京"
raw = text.encode("utf-8")
swapped = bytes(b ^ 0x20 if 65 <= b <= 122 else b for b in raw)
[len(text), len(raw), raw.hex(" ", 4), swapped[:5].decode("ascii", "replace"), int.from_bytes(raw[:3], "big")]
