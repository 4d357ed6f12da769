"""Whether sentences can stand together in a batch: shown from the graph that none can change another's answer.

Each operator has a rule (`row_rules`) that says what its output is, by what its inputs are: still, sized or rows. It
raises `Mixed` where the output is none of the three, and so does an operator without a rule. By induction scores that
are rows along their first axis (of B places) are those of each sentence alone. The sizes of all tensors and the numbers
of the sized ones are taken from two runs, with B = 2 and B = 3: they tell a and c. They hold for the width of these
runs, so every width is asked about by itself. No number of a sentence and no weight is looked at: weights are zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import TopologicalSorter
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import one_line
from .row_rules import RULES, SIZES, STILL, TOLD, Kind, Mixed, Numbers, Rows, Step, rule_of

if TYPE_CHECKING:
    import onnx

Feed = Mapping[str, Numbers]
WEIGHT = 1024
"""Numbers from which on a constant of floats is no scale or limit but a weight."""
OLDEST = 7
"""The first opset whose operators broadcast as today's."""


@dataclass
class RowsApart:
    """Of a model's file and the output that holds the scores; what it finds of a width is remembered."""

    path: Path
    output: str
    found: dict[object, str | None] = field(default_factory=dict)

    def why_together_matters(self, feed: Feed) -> str | None:
        """None where sentences of this feed's shape, any number of them, are shown to stay apart; else the reason."""
        key = tuple(sorted((name, array.shape[1:]) for name, array in feed.items()))
        if key not in self.found:
            try:
                self.found[key] = self.graph.judge(feed)
            except Mixed as error:
                self.found[key] = str(error)
        return self.found[key]

    @property
    def reasons(self) -> list[str]:
        return [reason for reason in self.found.values() if reason is not None]

    @cached_property
    def graph(self) -> Graph:
        import onnx

        return graph_of(onnx.load(str(self.path), load_external_data=False), self.output, self.path.parent)


def why_together_matters(proto: Any, feed: Feed, output: str | None = None) -> str | None:
    """Of a model in memory."""
    try:
        return graph_of(proto, output or proto.graph.output[0].name, Path()).judge(feed)
    except Mixed as error:
        return str(error)


# --- the graph and its two runs -----------------------------------------------------------------------------------


def graph_of(proto: onnx.ModelProto, output: str, folder: Path) -> Graph:
    """What the output needs, if all its operators are known. Raises `Mixed`."""
    import onnx

    if proto.functions:
        import onnx.inliner

        proto = onnx.inliner.inline_local_functions(proto)
    opset = next((one.version for one in proto.opset_import if one.domain in ("", "ai.onnx")), 0)
    needed, nodes = {output}, list[Any]()
    for node in reversed(in_order(proto.graph.node)):
        if needed & set(node.output):
            nodes.append(node)
            needed.update(read_by(node))
    nodes.reverse()
    for node in nodes:
        if node.domain not in ("", "ai.onnx") or node.op_type not in RULES:
            raise Mixed(f"operator {node.op_type} is not known to keep sentences apart")
    if opset < OLDEST:
        raise Mixed(f"operators of opset {opset} are not known to keep sentences apart")
    if proto.graph.sparse_initializer:
        raise Mixed("sparse weights are not known to keep sentences apart")
    return Graph(proto, nodes, output, opset, needed, folder)


def in_order(nodes: Sequence[Any]) -> list[Any]:
    """Each behind those it reads of. Converters append nodes at the end, and onnxruntime sorts them."""
    makers = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    read = {place: [makers[name] for name in read_by(node) if name in makers] for place, node in enumerate(nodes)}
    return [nodes[place] for place in TopologicalSorter(read).static_order()]


@dataclass
class Graph:
    proto: Any
    nodes: Sequence[Any]
    output: str
    opset: int
    needed: set[str]
    folder: Path

    @cached_property
    def constants(self) -> dict[str, Numbers]:
        """Those that may say how something is computed."""
        import onnx

        tensors = [one for one in self.proto.graph.initializer if one.name in self.needed and not is_weight(one)]
        return {one.name: onnx.numpy_helper.to_array(one, str(self.folder)) for one in tensors}

    @cached_property
    def asked(self) -> list[str]:
        """Tensors whose numbers are looked at: what sizes say, and what says how something is computed."""
        moving = {given.name for given in self.proto.graph.input} - {one.name for one in self.proto.graph.initializer}
        sizes: set[str] = set()
        asked: set[str] = set()
        for node in self.nodes:
            if node.op_type in ("Shape", "Size"):
                sizes.update(node.output)
                asked.update(node.output)
            elif moving & set(read_by(node)):
                moving.update(node.output)
                if node.op_type in TOLD:
                    asked.update(node.input[1:])
            elif sizes & set(node.input):
                sizes.update(node.output)
                asked.update((*node.input, *node.output))
        return sorted(asked - moving - {""} - {one.name for one in self.proto.graph.initializer})

    @cached_property
    def session(self) -> Any:
        """Answers the sizes of all tensors and the numbers of some."""
        import onnx
        import onnxruntime

        graph = onnx.GraphProto(name="sizes")
        for given in self.inputs:
            graph.node.append(sizes_of(given.name))
            graph.input.append(given)
            if graph.input[-1].type.tensor_type.shape.dim:
                graph.input[-1].type.tensor_type.shape.dim[0].dim_param = "sentences"
        for tensor in self.proto.graph.initializer:
            if tensor.name not in self.needed:
                continue
            if is_weight(tensor):
                graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
            else:
                graph.initializer.append(onnx.numpy_helper.from_array(self.constants[tensor.name], tensor.name))
        for node in self.nodes:
            graph.node.extend([node, *(sizes_of(name) for name in node.output if name)])
        graph.output.extend(onnx.ValueInfoProto(name=f"{name}/sizes") for name in self.tensors)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in self.asked)
        model = onnx.ModelProto(graph=graph, opset_import=self.proto.opset_import, ir_version=self.proto.ir_version)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.enable_cpu_mem_arena = False
        options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED  # Shape first, so that numbers can go
        providers = ["CPUExecutionProvider"]
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)

    @cached_property
    def weights(self) -> dict[str, Numbers]:
        """Zeros, which take no memory before they are written to. As inputs they are not made anew for every run."""
        import onnx

        tensors = [one for one in self.proto.graph.initializer if one.name in self.needed and is_weight(one)]
        kinds = [onnx.helper.tensor_dtype_to_np_dtype(one.data_type) for one in tensors]
        return {one.name: np.zeros(one.dims, dtype=kind) for one, kind in zip(tensors, kinds, strict=True)}

    @cached_property
    def tensors(self) -> list[str]:
        made = [name for node in self.nodes for name in node.output if name]
        return [*(given.name for given in self.inputs), *made]

    @cached_property
    def inputs(self) -> list[Any]:
        constant = {one.name for one in self.proto.graph.initializer}
        return [one for one in self.proto.graph.input if one.name in self.needed and one.name not in constant]

    def run(self, feed: Feed) -> tuple[dict[str, tuple[int, ...]], dict[str, Numbers]]:
        read = {given.name for given in self.session.get_inputs()}
        values = self.session.run(None, {name: array for name, array in feed.items() if name in read} | self.weights)
        sizes = {name: tuple(map(int, value)) for name, value in zip(self.tensors, values, strict=False)}
        sizes |= {one.name: tuple(one.dims) for one in self.proto.graph.initializer if one.name in self.needed}
        numbers = dict(zip(self.asked, values[len(self.tensors) :], strict=True))
        return sizes, self.constants | numbers

    def judge(self, feed: Feed) -> str | None:
        """None, or why. Raises `Mixed` too."""
        try:
            runs = [
                self.run({name: np.repeat(array[:1], size, axis=0) for name, array in feed.items()}) for size in SIZES
            ]
        except Exception as error:  # onnxruntime's exceptions share no base class
            return f"cannot be run with {SIZES[0]} and {SIZES[1]} sentences ({one_line(error)})"
        shapes, numbers = zip(*runs, strict=True)
        kinds: dict[str, Kind] = {one.name: STILL for one in self.proto.graph.initializer}
        kinds |= {name: Rows(0) for name in feed}
        for node in self.nodes:
            step = Step(node, self.opset, kinds, shapes, numbers)
            try:
                made = rule_of(step)
            except (LookupError, TypeError, ValueError) as error:  # a node as its rule does not know it
                raise step.mixed("is written as no rule expects") from error
            for place, name in enumerate(node.output):
                if name:
                    kinds[name] = step.seen(name, made[place] if isinstance(made, tuple) else made)
        scores, sizes = kinds[self.output], shapes[0][self.output]
        if scores != Rows(0) or sizes[:1] != SIZES[:1]:
            return f"{self.output} has no row for each sentence"
        return None


def read_by(node: Any) -> list[str]:
    """Its inputs, and what the branches of an If read."""
    inner = [one for attribute in node.attribute if attribute.HasField("g") for one in attribute.g.node]
    return [*node.input, *(name for one in inner for name in one.input)]


def sizes_of(name: str) -> Any:
    import onnx

    return onnx.helper.make_node("Shape", [name], [f"{name}/sizes"])


def is_weight(tensor: Any) -> bool:
    import onnx

    kinds = {"FLOAT", "FLOAT16", "DOUBLE", "INT8", "UINT8"}
    return prod(tensor.dims) >= WEIGHT and onnx.TensorProto.DataType.Name(tensor.data_type) in kinds
