"""A file that a test writes."""


def written(path, content):
    """Writes a text, its line ends as they are; returns the path as users give it, a string."""
    path.write_bytes(content.encode("utf-8"))
    return str(path)
