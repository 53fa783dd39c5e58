# SPDX-License-Identifier: Apache-2.0
"""Whether a model has bodies: nodes with a graph as an attribute, such as If, Loop, Scan and SequenceMap.

ONNX Runtime 1.23 does not tell a provider whether the graph that it may claim is such a body. What is claimed in one makes
the session fail: the names of groups in two graphs are equal, and a function that is inlined has no kernel of a group.
"""
import mmap
import os

_GRAPH, _FUNCTIONS = 7, 25  # of a model
_OF_GRAPH, _OF_FUNCTION = 1, 7  # nodes
_ATTRIBUTE = 5
_BODIES = (6, 11)  # a graph, or several


def _number(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _fields(data, at, end):
    """The numbers of the fields of a message of protobuf, with begin and end of those that have a length."""
    while at < end:
        key, at = _number(data, at)
        kind, begin = key & 7, at
        if kind == 0:
            _, at = _number(data, at)
        elif kind == 2:
            length, begin = _number(data, at)
            at = begin + length
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError("a field of kind %d" % kind)
        yield key >> 3, begin, at
    if at != end:
        raise ValueError("a field is cut off")


def _in_nodes(data, begin, end, number):
    return any(field in _BODIES
               for of_graph, *node in _fields(data, begin, end) if of_graph == number
               for of_node, *attribute in _fields(data, *node) if of_node == _ATTRIBUTE
               for field, _, _ in _fields(data, *attribute))


def _in_model(data):
    parts = list(_fields(data, 0, len(data)))
    return not any(number == _GRAPH for number, _, _ in parts) or any(
        _in_nodes(data, begin, end, _OF_GRAPH if number == _GRAPH else _OF_FUNCTION)
        for number, begin, end in parts if number in (_GRAPH, _FUNCTIONS))


def has_bodies(model):
    """Whether some node of a model has a graph as an attribute.

    Parameters
    ----------
    model : str, os.PathLike or bytes

    Returns
    -------
    bool
        True also where the model cannot be read, or is of ONNX Runtime's own format.
    """
    try:
        if isinstance(model, bytes):
            return _in_model(model)
        with open(os.fspath(model), "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _in_model(data)
    except (OSError, TypeError, ValueError, IndexError):
        return True
