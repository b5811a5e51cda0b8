from dataclasses import dataclass, field, asdict

@dataclass(order=True)
class Task:
    priority: int
    name: str
    tags: list = field(default_factory=list)

tasks = sorted([Task(3, "write"), Task(1, "plan", ["now"]), Task(2, "test")])
[asdict(t) for t in tasks]
