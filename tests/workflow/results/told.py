"""What a command prints, and the tables in it."""

from workflow.suite.__main__ import main


def told(capsys, *words):
    """Exit code, output and errors of a command."""
    code = main(list(words))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def lines_of(text, column="difference"):
    """Column -> entry of each line of the Markdown tables that have this column."""
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("| table ")]
    return [dict(zip(_cells(head), _cells(line), strict=True)) for head, _, *lines in blocks if column in _cells(head) for line in lines]


def _cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]
