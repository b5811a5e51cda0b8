def parse(text):
    try:
        return int(text)
    except ValueError as error:
        return f"bad: {error}"
    finally:
        seen.append(text)

seen = []
[parse("12"), parse("1x"), parse(""), seen]
