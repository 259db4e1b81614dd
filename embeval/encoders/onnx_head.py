"""Which part of a language model's graph is its head, so that a converter can leave it in float32.

Log-probabilities are differences of scores, and how many scores are larger hangs on the last digits of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PLACES = "places"
"""The input that says where tokens are asked for: all that depends on it is the head."""
OWN = "float32."
"""Beginning of the names of weights that are the head's alone."""


def node_names(model: Any) -> set[str]:
    """Names of the nodes of the head; none in the graph of another model.

    They are those that depend on ``PLACES``, and those that depend on weights alone and that nothing else reads.
    """
    graph = model.graph
    inputs = {each.name for each in graph.input}
    if PLACES not in inputs:
        return set()
    asked, varying = {PLACES}, set(inputs)
    readers: dict[str, set[str]] = {}
    for node in graph.node:  # what a node reads is made before it
        for values in (asked, varying):
            if values.intersection(node.input):
                values.update(node.output)
        for name in node.input:
            readers.setdefault(name, set()).add(node.name)
    found = {node.name for node in graph.node if asked.intersection(node.output)}
    for node in reversed(graph.node):
        of_node = set[str]().union(*(readers.get(name, ()) for name in node.output))
        if varying.isdisjoint(node.output) and of_node and of_node <= found:
            found.add(node.name)
    return found


def with_body(model: Any, convert: Callable[[Any, list[str]], Any]) -> Any:
    """The model after ``convert``, which is given the body alone: the head stays as it is.

    ``convert`` must leave the types of inputs and outputs as they are. It is also given names of nodes that it should
    leave out: they look vectors up in a table that the head reads too, which then needn't be there twice. The model is
    changed on the way.
    """
    graph = model.graph
    of_head = node_names(model)
    if not of_head:
        return convert(model, [])
    head = [node for node in graph.node if node.name in of_head]
    body = [node for node in graph.node if node.name not in of_head]
    read = {name for node in head for name in node.input}
    weights = [each for each in graph.initializer if each.name in read]
    outputs = list(graph.output)
    types = {each.name: each for each in graph.value_info}
    border = [types[name] for node in body for name in node.output if name in read]
    read_by_body = {name for node in body for name in node.input}
    remaining = [each for each in graph.initializer if each.name in read_by_body]
    _replace(graph.node, body)
    _replace(graph.output, border)
    del graph.value_info[:]  # a converter changes all of them, whatever they are of
    _replace(graph.initializer, remaining)
    tables = {each.name for each in weights}
    converted = convert(model, [node.name for node in body if node.op_type == "Gather" and node.input[0] in tables])
    _replace(converted.graph.output, outputs)
    there = {(each.name, each.data_type) for each in converted.graph.initializer}
    weights = [each for each in weights if (each.name, each.data_type) not in there]
    renamed = {each.name for each in weights}
    for weight in weights:
        weight.name = OWN + weight.name
    for node in head:
        node.input[:] = [OWN + name if name in renamed else name for name in node.input]
    converted.graph.initializer.extend(weights)
    converted.graph.node.extend(head)
    return converted


def _replace(field: Any, values: list[Any]) -> None:
    """New content for a repeated field of protobuf, which is emptied first: the old one is copied before."""
    copies = []
    for each in values:
        copy = type(each)()
        copy.CopyFrom(each)
        copies.append(copy)
    del field[:]
    field.extend(copies)
