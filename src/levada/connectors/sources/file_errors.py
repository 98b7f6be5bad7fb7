"""Attributes errors in reading a file to that file: the error names it, and other files are read.

Parsers raise many kinds of errors at damaged bytes, also of memory and overflow, and panics of
native code. Only Levada's own errors, and system errors without relation to the file (no disk
space, no descriptors), are not faults of the file. A file that was deleted before its part of an
epoch was read is reported like a replaced one (``read_split``).
"""

from __future__ import annotations

import codecs
import errno

from levada.core.frozen import frozen
from levada.errors import FileFault, LevadaError, SourceError

# errors caused by a file's contents: an offset before its beginning or after any end
_OF_CONTENT = (errno.EINVAL, errno.EOVERFLOW, errno.EFBIG, errno.ENOMEM)


_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


_PACKED = {b"\x1f\x8b": ("gzip", ".gz"), b"\x28\xb5\x2f\xfd": ("zstd", ".zst")}


def encoding_fault(data: bytes) -> str:
    """Returns a sentence if bytes that are not valid text are packed, or look like UTF-16 or
    UTF-32: by a byte order mark, or because many of the first ones are zero in the same places.
    Else "".

    >>> encoding_fault("<http://e/a>".encode("utf-16-le"))
    'It is UTF-16, and only UTF-8 is read.'
    """
    for mark, (packer, ending) in _PACKED.items():
        if data.startswith(mark):
            return f"It is packed with {packer}. Names of packed data files end in {ending}."
    word = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "")
    if not word:
        head = data[: min(len(data), 200) // 4 * 4]
        zeros = [head[place::4].count(0) / max(len(head) // 4, 1) for place in range(4)]
        few, *_, many = sorted([zeros[0] + zeros[2], zeros[1] + zeros[3]])
        if few < 0.2 and many > 0.8:
            word = "UTF-16"
        elif min(zeros) < 0.2 and sum(zeros) > 2.4:
            word = "UTF-32"
    return f"It is {word}, and only UTF-8 is read." if word else ""


@frozen
class FileFaults:
    """Turns exceptions in the block into a ``FileFault`` of the file at ``path``, or the
    ``SourceError`` of a system error.

    >>> with FileFaults("a.csv", "s"):
    ...     raise OverflowError("too large")
    Traceback (most recent call last):
    levada.errors.FileFault: The file a.csv of the stream s cannot be read: too large.
    """

    path: str
    stream: str

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and not isinstance(error, LevadaError) and is_of_data(error):
            raise fault(
                error, f"The file {shown(self.path)} of the stream {self.stream}"
            ) from error


def fault(error: BaseException, what: str) -> SourceError:
    """Returns the error of reading ``what``: a ``FileFault`` unless the system is at fault."""
    number = error.errno if isinstance(error, OSError) else None
    kind = FileFault if number is None or number in _OF_CONTENT else SourceError
    return kind(f"{what} cannot be read: {reason(error)}.")


def reason(error: BaseException) -> str:
    """Returns the message of an error in one line; its name if it has none.

    >>> reason(MemoryError()), reason(KeyError("v")), reason(ValueError("no\\nway"))
    ('MemoryError', "KeyError: 'v'", 'no')
    """
    if isinstance(error, OSError) and error.strerror:
        return str(error.strerror)
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    name = type(error).__name__
    if isinstance(error, LookupError | AssertionError):
        return f"{name}: {said}"
    return said.rstrip(".") or name


def is_of_data(error: BaseException) -> bool:
    """Whether data made a parser raise this error, rather than a signal or the end of the process.

    >>> is_of_data(LookupError()), is_of_data(KeyboardInterrupt())
    (True, False)
    """
    return isinstance(error, Exception) or is_panic(error)


def is_panic(error: BaseException) -> bool:
    """Whether this is a panic of a library written in Rust: neither an ``Exception`` nor an
    exit.
    """
    return type(error).__name__ == "PanicException"


def shown(name: str) -> str:
    r"""Returns a file's name for people and JSON: bytes that are not UTF-8 as escapes.

    >>> shown("a\udcff.nt"), shown("é.nt")
    ('a\\xff.nt', 'é.nt')
    """
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
