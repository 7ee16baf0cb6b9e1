"""The paper's rule for bold and underlined numbers, applicable to its numbers and to ours.

In a comparison the best of each column is sought among the compressed rows (below the dashed line), underlined for full
precision and bold for binary weights; in an ablation among all rows, bold.
"""

from collections.abc import Mapping

from workflow.suite.planning.tables import Row, Table


def ranked(table: Table, row: Row) -> bool:
    """Whether a row takes part: reference rows do not."""
    return row.section != "reference"


def best(table: Table, values: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], str]:
    """(row id, column id) -> mark, for the best value of each column; equal values share the mark."""
    marks = {}
    for column in table.columns:
        ranked_values = {row.id: values[row.id, column.id] for row in table.rows if ranked(table, row) and (row.id, column.id) in values}
        marks |= {(row, column.id): column.best for row, value in ranked_values.items() if value == max(ranked_values.values())}
    return marks
