"""Many affine functions of a program's variables at once, as sparse rows: what the linear layers do to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .integer_program import Floats, Indices


@dataclass(frozen=True, eq=False)
class Expressions:
    """Function i is constant[i] + sum of coefficients[j] * variable columns[j] for starts[i] <= j < starts[i + 1].

    The columns of one function are distinct.
    """

    starts: Indices
    columns: Indices
    coefficients: Floats
    constant: Floats

    def __len__(self) -> int:
        return len(self.constant)

    @classmethod
    def fixed(cls, values: Floats) -> Expressions:
        none = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(values.size + 1, dtype=np.int64), none, np.zeros(0), values.reshape(-1).astype(np.float64))

    @classmethod
    def of_terms(cls, rows: Indices, columns: Indices, coefficients: Floats, constant: Floats) -> Expressions:
        """From terms in any order: those of one row and column added up, zeros dropped."""
        if len(rows):
            order = np.lexsort((columns, rows))
            rows, columns, coefficients = rows[order], columns[order], coefficients[order]
            first = np.append(True, (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1]))
            coefficients = np.add.reduceat(coefficients, np.flatnonzero(first))
            rows, columns = rows[first], columns[first]
            kept = coefficients != 0
            rows, columns, coefficients = rows[kept], columns[kept], coefficients[kept]
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(constant)))])
        return cls(starts.astype(np.int64), columns, coefficients, constant)

    @property
    def rows(self) -> Indices:
        """The function that each term belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def terms(self, row: int) -> tuple[Indices, Floats]:
        part = slice(int(self.starts[row]), int(self.starts[row + 1]))
        return self.columns[part], self.coefficients[part]

    def taken(self, index: Indices) -> Expressions:
        """Functions index[0], index[1], ..."""
        index = index.reshape(-1)
        lengths = np.diff(self.starts)[index]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(starts[-1]) + np.repeat(self.starts[index] - starts[:-1], lengths)
        return Expressions(starts, self.columns[at], self.coefficients[at], self.constant[index])

    def scaled(self, multiply: Floats, add: Floats) -> Expressions:
        """multiply[i] * function i + add[i]."""
        return self.of_terms(
            self.rows, self.columns, self.coefficients * multiply[self.rows], self.constant * multiply + add
        )

    def mapped(self, weight: Floats, bias: Floats) -> Expressions:
        """The functions in blocks of len(weight): out[block, m] = sum_k in[block, k] * weight[k, m] + bias[m]."""
        width, outputs = weight.shape
        functions = self.rows
        rows, columns, coefficients = [], [], []
        for block in range(len(self) // width):
            part = slice(int(self.starts[block * width]), int(self.starts[(block + 1) * width]))
            used, place = np.unique(self.columns[part], return_inverse=True)
            local = np.zeros((width, len(used)))
            local[functions[part] - block * width, place] = self.coefficients[part]
            product = weight.T @ local
            rows.append(np.repeat(np.arange(outputs) + block * outputs, len(used)))
            columns.append(np.tile(used, outputs))
            coefficients.append(product.reshape(-1))
        constant = (self.constant.reshape(-1, width) @ weight + bias).reshape(-1)
        return self.of_terms(np.concatenate(rows), np.concatenate(columns), np.concatenate(coefficients), constant)

    def values(self, variables: Floats) -> Floats:
        """[functions]: what they come to."""
        terms = self.coefficients * variables[self.columns]
        return self.constant + np.bincount(self.rows, weights=terms, minlength=len(self))

    def bounds(self, low: Floats, high: Floats, group: Indices) -> tuple[Floats, Floats]:
        """[functions] each: the least and greatest values by interval arithmetic, groups taken as a whole.

        Variables of a group (group[column] >= 0) are one-hot, so together they add the coefficient of one of them.
        """
        rows, of_term = self.rows, group[self.columns]
        alone = of_term < 0
        ends = self.coefficients * low[self.columns], self.coefficients * high[self.columns]
        least = self.constant + np.bincount(rows[alone], np.minimum(*ends)[alone], minlength=len(self))
        greatest = self.constant + np.bincount(rows[alone], np.maximum(*ends)[alone], minlength=len(self))
        if alone.all():
            return least, greatest
        sizes = np.bincount(group[group >= 0])
        keys, place, count = np.unique(
            rows[~alone] * len(sizes) + of_term[~alone], return_inverse=True, return_counts=True
        )
        # A member without a term has coefficient 0.
        missing = np.where(count < sizes[keys % len(sizes)], 0.0, np.inf)
        smallest, largest = missing.copy(), -missing
        np.minimum.at(smallest, place, self.coefficients[~alone])
        np.maximum.at(largest, place, self.coefficients[~alone])
        least += np.bincount(keys // len(sizes), smallest, minlength=len(self))
        greatest += np.bincount(keys // len(sizes), largest, minlength=len(self))
        return least, greatest


def joined(parts: Sequence[Expressions]) -> Expressions:
    """The functions of all parts, one after the other."""
    lengths = np.concatenate([np.diff(part.starts) for part in parts])
    return Expressions(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([part.columns for part in parts]),
        np.concatenate([part.coefficients for part in parts]),
        np.concatenate([part.constant for part in parts]),
    )


def added(parts: Sequence[Expressions], signs: Sequence[int]) -> Expressions:
    """Function by function, the sum of the parts with these signs."""
    return Expressions.of_terms(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.columns for part in parts]),
        np.concatenate([sign * part.coefficients for sign, part in zip(signs, parts, strict=True)]),
        np.asarray(sum(sign * part.constant for sign, part in zip(signs, parts, strict=True))),
    )
