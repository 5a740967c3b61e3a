"""Who is refused when: fast failure, the broker's own permission."""
