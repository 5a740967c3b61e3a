"""Text of strangers on a terminal: whatever could command it is escaped."""


def visible(text: str) -> str:
    """On one line; control characters, and all else that is not to be seen, are escaped."""
    return text if text.isprintable() else "".join(map(_visible, text))


def visible_body(body: bytes) -> str:
    """As text on one line; bytes that are not UTF-8 are escaped as well."""
    return visible(body.decode("utf-8", "backslashreplace"))


def visible_lines(text: str) -> str:
    """The same, but its lines stay lines, and tabs tabs."""
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


def visible_json(text: str) -> str:
    """JSON as it is, but with no character in its strings that is not to be seen."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign == "\n" else _in_json(sign) for sign in text)


def _visible(sign: str) -> str:
    return sign if sign.isprintable() else sign.encode("unicode_escape").decode()


def _in_json(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
