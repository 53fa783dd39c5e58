# SPDX-License-Identifier: Apache-2.0
"""One class of exceptions, with a code, and classes below it for those that callers tell apart."""


class WoodpeckerError(RuntimeError):
    """A failure of the library.

    Attributes
    ----------
    code : str
        Its short name, such as ``ECORRUPT`` (``common/err.h``).
    """

    def __init__(self, text, code="EINVAL"):
        super().__init__(text)
        self.code = code


class NotFound(WoodpeckerError, FileNotFoundError):
    """There is no such file."""


class CorruptFile(WoodpeckerError):
    """A file is damaged, or is none of Woodpecker's."""


class DoesNotFit(WoodpeckerError):
    """A file of another version, or for another CPU."""


class InvalidInput(WoodpeckerError, ValueError):
    """An input is missing, or has another name, shape or type."""


class OutOfRange(WoodpeckerError, IndexError):
    """An index in the data is out of its axis."""


_KINDS = {"ENOENT": NotFound, "ECORRUPT": CorruptFile, "EPARSE": CorruptFile, "EMISMATCH": DoesNotFit,
          "EINVAL": InvalidInput, "ERANGE": OutOfRange}


def error(code, text):
    """The exception of a code of the library."""
    return _KINDS.get(code, WoodpeckerError)(text, code)
