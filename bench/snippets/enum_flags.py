from enum import Enum

class Color(Enum):
    RED = 1
    GREEN = 2

    @property
    def code(self):
        return self.name[0].lower()

[Color(2).name, Color["RED"].code, [c.value for c in Color]]
