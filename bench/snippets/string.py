text = "The rain in Spain stays mainly in the plain"
words = text.lower().split()
longest = max(words, key=len)
vowels = sum(text.count(v) for v in "aeiou")
{"words": len(words), "longest": longest, "vowels": vowels, "title": text.title(), "reversed": text[::-1]}
