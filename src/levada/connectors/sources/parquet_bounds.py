"""Refuses Parquet files that become huge when they are decoded.

A row group is decoded as a whole. Runs and dictionaries make a hundred kilobytes of file into a
hundred gigabytes of rows: a text of a megabyte stands in the dictionary once, and each row costs a
few bits. So before rows are decoded, their number, the sizes in the footer and the longest text of
each dictionary are looked at. Only if rows times the longest text exceed the bound, the rows are
read as numbers of the dictionary, and their bytes are added up. Cost: the dictionaries are decoded
once more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from levada.connectors.sources.regular_files import open_arrow
from levada.errors import FileFault

MAX_DECODED = 2 << 30
"""The most bytes of the row groups, with the columns that are needed, that are decoded at once."""
_BUFFER = 1 << 16


def check_decoded(path: str, groups: Sequence[int], columns: Sequence[str]) -> None:
    """Raises ``FileFault`` if these columns of these row groups take too much memory."""
    stat = os.stat(path)
    _check(path, (stat.st_ino, stat.st_size, stat.st_mtime_ns), tuple(groups), tuple(columns))


@lru_cache(4096)  # ranges of one row group are read one after the other
def _check(
    path: str, _stamp: tuple[int, int, int], groups: tuple[int, ...], columns: tuple[str, ...]
) -> None:
    with pq.ParquetFile(open_arrow(path)) as file:
        meta = file.metadata
    leaves = [meta.schema.column(j) for j in range(meta.num_columns)]
    needed = [j for j, leaf in enumerate(leaves) if _is_below(leaf.path, columns)]
    parts = [(meta.row_group(i), j) for i in groups for j in needed]
    declared = sum(group.column(j).total_uncompressed_size for group, j in parts)
    _refuse(max(declared, sum(group.num_rows * max(8, leaves[j].length) for group, j in parts)))
    texts = [leaves[j].path for j in needed if leaves[j].physical_type == "BYTE_ARRAY"]
    if not texts:
        return
    source = open_arrow(path)
    with pq.ParquetFile(
        source, read_dictionary=texts, pre_buffer=False, buffer_size=_BUFFER
    ) as file:
        bound = 0
        for i in groups:
            batch = next(file.iter_batches(1, row_groups=[i], columns=texts), None)
            longest = 0 if batch is None else sum(map(_longest, _dictionaries(batch.columns)))
            bound += longest * meta.row_group(i).num_rows
        if bound <= MAX_DECODED:
            return
        total = 0
        for batch in file.iter_batches(row_groups=groups, columns=texts):
            total += sum(map(_bytes, _dictionaries(batch.columns)))
            _refuse(total)


def _refuse(size: int) -> None:
    if size > MAX_DECODED:
        raise FileFault(
            f"Its row groups are larger than {MAX_DECODED >> 30} GB when they are decoded.",
            hint="Write smaller row groups.",
        )


def _is_below(path: str, columns: Sequence[str]) -> bool:
    """Whether a leaf is one of the columns, or in one."""
    return any(path == column or path.startswith(f"{column}.") for column in columns)


def _dictionaries(arrays: Sequence[pa.Array]) -> Iterator[pa.DictionaryArray]:
    """Yields the columns of texts, also those in structs and lists."""
    for array in arrays:
        if pt.is_dictionary(array.type):
            yield array
        elif pt.is_nested(array.type):
            yield from _dictionaries(
                array.flatten() if pt.is_struct(array.type) else [array.values]
            )


def _longest(array: pa.DictionaryArray) -> int:
    return int(pc.max(pc.binary_length(array.dictionary)).as_py() or 0)


def _bytes(array: pa.DictionaryArray) -> int:
    lengths = pc.cast(pc.binary_length(array.dictionary), pa.int64())
    return int(pc.sum(lengths.take(array.indices)).as_py() or 0)
