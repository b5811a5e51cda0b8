import re
log = "2024-05-01 ERROR disk full\n2024-05-02 INFO ok\n2024-05-03 ERROR timeout"
pattern = re.compile(r"^(?P<day>\d{4}-\d{2}-\d{2}) (?P<level>[A-Z]+) (?P<text>.*)$", re.M)
[m.groupdict() for m in pattern.finditer(log) if m["level"] == "ERROR"]
