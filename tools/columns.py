"""Text in aligned columns."""

from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows as lines of text: the first column aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
