import json
document = '{"users": [{"name": "Ada", "tags": ["x", "y"]}, {"name": "Linus", "tags": []}]}'
data = json.loads(document)
for user in data["users"]:
    user["n"] = len(user["tags"])
json.dumps(data, sort_keys=True, indent=2)
