import random
generator = random.Random(42)
deck = [rank + suit for suit in "SHDC" for rank in "A23456789TJQK"]
generator.shuffle(deck)
hand = deck[:5]
[sorted(hand), generator.randint(1, 6), round(generator.gauss(0, 1), 6)]
