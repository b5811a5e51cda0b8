class Account:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("deposit must be positive")
        self.balance += amount
        return self

    def __str__(self):
        return f"{self.owner}: {self.balance:.2f}"

account = Account("Eve", 10).deposit(32.5)
[str(account), account.balance]
