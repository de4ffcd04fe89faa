"""The cheapest assignment of rows to columns, as of objects to the queries that are to find them.

Source:  Crouse 2016, "On implementing 2D rectangular assignment algorithms" (shortest augmenting paths)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def cheapest_assignment(costs: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the pairs of rows and columns with the least sum of costs, each row and column in at most one.

    Takes a time of min(N, M)² · max(N, M).

    Args:    costs: finite numbers
    Shapes:  (N, M) -> rows and columns, min(N, M) each, in the order of the rows
    """
    table = np.asarray(costs, np.float64)
    if table.shape[0] > table.shape[1]:
        columns, rows = cheapest_assignment(table.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    count, width = table.shape
    row_of, column_of = np.full(width, -1, np.int64), np.full(count, -1, np.int64)
    row_price, column_price = np.zeros(count), np.zeros(width)
    for start in range(count):
        distance, before = np.full(width, np.inf), np.full(width, -1, np.int64)
        done = np.zeros(width, np.bool_)
        row, least, column = start, 0.0, -1
        while True:  # the shortest path of exchanges from the row to a column that no row has
            through = least + table[row] - row_price[row] - column_price
            shorter = ~done & (through < distance)
            distance[shorter], before[shorter] = through[shorter], row
            column = int(np.where(done, np.inf, distance).argmin())
            least, row = float(distance[column]), int(row_of[column])
            if row < 0:
                break
            done[column] = True
        gain = least - distance[done]
        row_price[start] += least
        row_price[row_of[done]] += gain
        column_price[done] -= gain
        while True:
            row = int(before[column])
            row_of[column] = row
            column, column_of[row] = int(column_of[row]), column
            if row == start:
                break
    return np.arange(count), column_of
