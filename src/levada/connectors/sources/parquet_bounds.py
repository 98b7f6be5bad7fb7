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
from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from levada.connectors.sources.regular_files import open_arrow
from levada.errors import FileFault

MAX_DECODED = 2 << 30
"""The most bytes of the row groups, with the columns that are needed, that are decoded at once."""
_BUFFER = 1 << 16
_SOUND = set[tuple[object, ...]]()  # checked row groups
_MAX_KEYS = 4096


def check_decoded(
    path: str, meta: pq.FileMetaData, groups: Sequence[int], columns: Collection[str]
) -> None:
    """Raises ``FileFault`` if these columns of these row groups take too much memory."""
    stat = os.stat(path)
    key = (path, stat.st_ino, stat.st_size, stat.st_mtime_ns, *groups, *columns)
    if key in _SOUND:  # ranges of one row group are read one after the other
        return
    texts, size, schema = [], 0, meta.schema
    for j in range(meta.num_columns):  # loops: no call for each column
        leaf = schema.column(j)
        if leaf.path in columns or leaf.path.partition(".")[0] in columns:
            if leaf.physical_type == "BYTE_ARRAY":
                texts.append(leaf.path)
            for i in groups:
                group = meta.row_group(i)
                declared = group.column(j).total_uncompressed_size
                size += max(declared, group.num_rows * max(8, leaf.length))
    _refuse(size)
    if texts:
        _check_texts(path, meta, groups, texts)
    if len(_SOUND) >= _MAX_KEYS:
        _SOUND.clear()
    _SOUND.add(key)


def _check_texts(
    path: str, meta: pq.FileMetaData, groups: Sequence[int], texts: Sequence[str]
) -> None:
    source = open_arrow(path)
    with pq.ParquetFile(
        source, metadata=meta, read_dictionary=texts, pre_buffer=False, buffer_size=_BUFFER
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
