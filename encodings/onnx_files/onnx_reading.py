"""From an ONNX file to a Network, or a refusal that names the node."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadInput, Unsupported
from ..network import SMOOTH, Embedding, Head, Network, Node, Rearrangement
from ..smooth.masked_values import is_masked, masked
from ..space import Frame, SwapSpace
from .computed import is_floating, is_foreign, is_real_only
from .constant_folding import SIZES, perform
from .construction import FLOATS, Array, Builder, Call, Known, Shared, Tokens, Value, Wire
from .model_ports import LENGTH, TOKENS, Given, ModelInput, roles_of, type_named
from .operators import OPERATORS

OPSETS = range(13, 23)
HEADS: dict[str, Head] = {
    "Softmax": "softmax",
    "LogSoftmax": "log_softmax",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
}
UNITS = {"float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
CURVES = "of smooth functions Exp, Tanh, Sigmoid, Erf, Gelu and HardSigmoid are supported"
SELECT = "tokens may select embeddings, and be compared with constants (a mask of the padding)"
COMPARED = "a comparison of values that depend on the text is not supported: use Relu, Max, Min or Clip"
BENT = "the network is smooth: certify proves about it, and all else is for piecewise linear networks"
LARGEST = 1 << 20
"""Numbers that a smooth network may compute for a sentence: larger ones are sooner run than proved about."""
FEWEST_KEPT, MOST_KEPT = 4, 64
"""Networks that are kept: the fewest whatever their size, and of small ones as many as there are lengths of texts."""
ROOM = 2**27
"""Bytes of all that are kept beyond the fewest."""
LOOPS = (
    "loops are not supported: export the model with fixed branches, and Embedding with a mean or sum, no EmbeddingBag"
)
PLACES = (
    "places of the largest number are not supported: where it is the last operator, export the model with its logits; "
    'where it looks for the last word (as that of GPT-2 does), the model can only be run: without road = "read"'
)
READ_TOKENS = {
    "Cast", "Dropout", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape", "Shape",
    "Size", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
}  # fmt: skip
"""Operators that select embeddings by tokens, or move these about."""
COMPUTE_TOKENS = {
    "Add", "Clip", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mul", "Sub",
}  # fmt: skip
"""Operators on tokens and constants that are done for every choice: where all give the same, that is a constant."""
HINTS = {
    "LogSoftmax": "it is read as the last operator only",
    "Elu": CURVES,
    "Selu": CURVES,
    "Softplus": CURVES,
    "HardSwish": CURVES,
    "Mish": CURVES,
    "If": "control flow is not supported: export the model with fixed branches",
    "Loop": LOOPS,
    "Scan": LOOPS,
    "SequenceEmpty": LOOPS,
    "ArgMax": PLACES,
    "ArgMin": PLACES,
    "Trilu": "triangles of what depends on the text are not supported: use Mul or Where with a triangular constant",
    "TopK": "the model must answer with its logits, not with a class",
    "Equal": COMPARED,
    "Mod": SELECT,
    "Not": COMPARED,
    "Greater": COMPARED,
    "GreaterOrEqual": COMPARED,
    "Less": COMPARED,
    "LessOrEqual": COMPARED,
    "NonZero": SELECT,
    "ReduceMin": "use Neg, ReduceMax and Neg",
    "CumSum": "cumulative sums are not supported: use MatMul with a triangular constant",
}
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}


@dataclass(frozen=True, eq=False)
class Model:
    """An ONNX file that was read and looks like a classifier of token ids."""

    path: Path
    proto: Any
    opset: int
    inputs: tuple[ModelInput, ...]
    """In the order of the file; one of them reads the tokens."""
    output: str
    batch: int | None
    """Fixed batch size (1), or None when the model takes any."""
    given: Given | None = None
    """What it was made from, where it was."""
    networks: OrderedDict[Frame, Network] = field(default_factory=OrderedDict, init=False, repr=False, compare=False)
    """The last ones that were read, by what texts share."""
    layers: Shared = field(default_factory=dict, init=False, repr=False, compare=False)
    """Of recurrent layers, for the networks of all lengths."""

    @property
    def named(self) -> Path:
        """The file that people know it by."""
        return self.path if self.given is None or self.given.path is None else self.given.path

    @property
    def place(self) -> int:
        """Of the tokens among the inputs."""
        return next(place for place, one in enumerate(self.inputs) if one.role == TOKENS)

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(one.role for one in self.inputs)

    @property
    def input(self) -> str:
        """The name of the one that reads the tokens."""
        return self.inputs[self.place].name

    @property
    def input_type(self) -> str:
        return self.inputs[self.place].type

    @property
    def length(self) -> int | None:
        """Fixed number of tokens, or None when the model takes any."""
        return self.inputs[self.place].length

    @cached_property
    def constants(self) -> dict[str, Array]:
        """The initializers, for the networks of all lengths."""
        import onnx.numpy_helper

        base, found = str(self.path.parent), dict[str, Array]()
        for tensor in self.proto.graph.initializer:
            try:
                found[tensor.name] = np.asarray(onnx.numpy_helper.to_array(tensor, base))
            except (KeyError, OSError, TypeError, ValueError) as error:
                reason = " ".join(str(error).split())[:200]
                raise BadInput(f"{self.path}: initializer {tensor.name!r} cannot be read ({reason})") from None
            found[tensor.name].flags.writeable = False
        return found


def open_model(path: Path, roles: Mapping[str, str] | None = None) -> Model:
    """Read the file and check that it maps token ids [batch, length], and constants of a text, to one output.

    `roles`: of several inputs which is the tokens, the mask and so on, by name; those of usual names need none.
    """
    proto = load(path)
    opset = opset_of(proto)
    if opset not in OPSETS:
        raise Unsupported(
            f"{path}: opset {opset}; opsets {OPSETS[0]} to {OPSETS[-1]} are read (onnx.version_converter)"
        )
    if proto.functions:
        raise Unsupported(f"{path}: model-local functions ({proto.functions[0].name}); inline them with onnx.inliner")
    graph = proto.graph
    if graph.sparse_initializer:
        raise Unsupported(f"{path}: sparse weights ({graph.sparse_initializer[0].values.name}); store them dense")
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    if not inputs:
        raise BadInput(f"{path}: 0 inputs (none); a classifier reads token ids")
    if len(graph.output) != 1:
        names = ", ".join(value.name for value in graph.output)
        raise BadInput(f"{path}: {len(graph.output)} outputs ({names}); one is read: choose it by [model] output")
    found = roles_of([value.name for value in inputs], roles, str(path))
    sizes = [sizes_of(value, role, str(path)) for value, role in zip(inputs, found, strict=True)]
    lengths = {length for (_, length), role in zip(sizes, found, strict=True) if length and role != LENGTH}
    if len(lengths) > 1:
        raise Unsupported(
            f"{path}: its inputs read different numbers of tokens: {', '.join(map(str, sorted(lengths)))}"
        )
    read = tuple(
        ModelInput(value.name, type_named(value.type.tensor_type.elem_type), role, next(iter(lengths), None))
        for value, role in zip(inputs, found, strict=True)
    )
    batch = next((batch for batch, _ in sizes if batch), None)
    return Model(path, proto, opset, read, graph.output[0].name, batch)


def load(path: Path) -> Any:
    """The ModelProto of a file, its external data included."""
    import onnx
    from google.protobuf.message import DecodeError

    if path.is_dir():
        raise BadInput(f"{path} is a directory; an ONNX file is needed")
    if not path.exists():
        raise BadInput(f"{path}: no such file")
    try:
        proto = onnx.load(path)
        onnx.checker.check_model(path, full_check=False)
    except (DecodeError, onnx.checker.ValidationError, OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise BadInput(f"{path}: not a readable ONNX model ({reason})") from None
    return proto


def opset_of(proto: Any) -> int:
    return next((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), 0)


def sizes_of(value: Any, role: str, path: str) -> tuple[int | None, int | None]:
    """Batch and length of an input, None where open; refused unless it is whole numbers [batch, length]."""
    import onnx

    what = "token ids" if role == TOKENS else role
    tensor = value.type.tensor_type
    if tensor.elem_type not in (onnx.TensorProto.INT64, onnx.TensorProto.INT32):
        name = type_named(tensor.elem_type)
        refused = BadInput if role == TOKENS and "float" in name else Unsupported  # others can be run
        raise refused(f"{path}: input {value.name} is {name}; {what} are int64 or int32")
    if not tensor.HasField("shape") or len(tensor.shape.dim) != 2:
        rank = len(tensor.shape.dim) if tensor.HasField("shape") else "unknown"
        refused = BadInput if role == TOKENS else Unsupported
        raise refused(f"{path}: input {value.name} has rank {rank}; {what} are [batch, length]")
    batch, length = (
        dimension.dim_value if dimension.HasField("dim_value") and dimension.dim_value > 0 else None
        for dimension in tensor.shape.dim
    )
    if batch not in (None, 1):
        raise Unsupported(f"{path}: a fixed batch of {batch}; export with a dynamic batch, or a batch of 1")
    return batch, length


def read_network(path: Path, length: int | None = None) -> Network:
    """The network of an ONNX file, for sentences of `length` tokens (needed when the model takes any length)."""
    return network_of(open_model(path), length)


def network_of(
    model: Model,
    length: int | None = None,
    choices: Sequence[Sequence[int]] | None = None,
    constants: Sequence[Sequence[int]] = (),
) -> Network:
    """The network that the model is for sentences of `length` tokens, made of these choices if they are given.

    A model that computes with tokens, a mask of the padding say, is a network only where all choices of a position
    come to the same. `constants`: what its other inputs are given, in the order of the file.
    """
    return reading_of(model, length, choices, constants)[0]


def network_for(model: Model, space: SwapSpace, *, smooth: bool = False) -> Network:
    """The network that the model is for the sentences of this space; a `smooth` one only for those who can use it.

    The last ones are kept: texts of one length share theirs, if what the model makes of their tokens is the same.
    """
    network = model.networks.pop(space.frame, None)
    if network is None or not network.is_for(space.choices):
        network = network_of(model, space.length, space.choices, (*space.before, *space.after))
    model.networks[space.frame] = network
    if len(model.networks) > min(MOST_KEPT, max(FEWEST_KEPT, ROOM // own_bytes(network))):
        model.networks.popitem(last=False)
    bent = next((node for node in network.nodes if isinstance(node.layer, SMOOTH)), None)
    if bent is not None and not smooth:
        raise Unsupported(f"{bent.origin}: {BENT}")
    size = 0 if bent is None else sum(node.size for node in network.nodes if not isinstance(node.layer, Rearrangement))
    if size > LARGEST:
        raise Unsupported(
            f"a smooth network that computes {size:,} numbers for a sentence; {LARGEST:,} are proved about"
        )
    return network


def own_bytes(network: Network) -> int:
    """Of its numbers, without the tables of its embeddings, which all networks of a model share."""
    layers = [node.layer for node in network.nodes if not isinstance(node.layer, Embedding)]
    arrays = {id(value): value for layer in layers for value in vars(layer).values() if isinstance(value, np.ndarray)}
    return 1 + sum(array.nbytes for array in arrays.values())


def reading_of(
    model: Model,
    length: int | None = None,
    choices: Sequence[Sequence[int]] | None = None,
    constants: Sequence[Sequence[int]] = (),
) -> tuple[Network, list[tuple[Call, Array]]]:
    """Also what the model made of tokens, in order, and what came of it: all that depends on the choices."""
    if length is None:
        length = model.length
    if length is None:
        raise BadInput(f"{model.named}: the model takes any number of tokens; say how many")
    if model.length not in (None, length):
        raise BadInput(f"{model.named}: the model reads {model.length} tokens, not {length}")
    if length < 1:
        raise BadInput(f"{model.named}: a sentence of {length} tokens")
    if choices is not None and len(choices) != length:
        raise BadInput(f"{model.named}: choices for {len(choices)} positions, and sentences of {length} tokens")
    others = [one for one in model.inputs if one.role != TOKENS]
    if len(others) != len(constants):
        names = ", ".join(f"{one.name} ({one.role})" for one in others)
        raise BadInput(f"{model.named}: beside the tokens it reads {names or 'nothing'}; {len(constants)} were given")
    builder = Builder(moved, len(model.proto.graph.node), choices, model.layers)
    values: dict[str, Value] = {
        model.input: Tokens(np.arange(length, dtype=np.int64).reshape(1, length), model.input_type),
    }
    for one, integers in zip(others, constants, strict=True):
        if len(integers) != (1 if one.role == LENGTH else length):
            raise BadInput(f"{model.named}: {len(integers)} numbers for {one.name}, and sentences of {length} tokens")
        values[one.name] = Known(np.array([integers], dtype=one.type))
    values.update((name, Known(array)) for name, array in model.constants.items())
    builder.types.update(str(array.dtype) for array in model.constants.values() if is_floating(array))
    nodes = needed_nodes(model.proto.graph, model.output)
    builder.head = head_of(nodes, model.output)
    head: Head = "logits"
    for position, node in nodes:
        call = call_of(model, node, position, values)
        builder.number = position
        results = translate(builder, call)
        if position == builder.head and isinstance(call.value(0), Wire):
            head = HEADS[node.op_type]
            builder.real_only.append(f"{call.where}: a function of the logits, which is rounded")
        values.update((name, value) for name, value in zip(node.output, results, strict=False) if name)
    network = finish(model, builder, values.get(model.output), head, length)
    given = tuple(tuple(map(int, integers)) for integers in constants)
    network = replace(
        network,
        before=given[: model.place],
        after=given[model.place :],
        same=partial(come_to_the_same, tuple(builder.settled)) if builder.settled else None,
    )
    return network, builder.settled


def needed_nodes(graph: Any, output: str) -> list[tuple[int, Any]]:
    """The nodes that the output depends on, through the names they read, with their places in the file."""
    read, found = {output}, []
    for position, node in reversed(list(enumerate(graph.node))):
        if any(name in read for name in node.output if name):
            read.update(node.input)
            found.append((position, node))
    return found[::-1]


def head_of(nodes: Sequence[tuple[int, Any]], output: str, through: Collection[str] = ()) -> int | None:
    """The place of the function that the output ends with, which leaves the order of the scores as it is."""
    makers = {name: (position, node) for position, node in nodes for name in node.output if name}
    found = makers.get(output)
    while found is not None and found[1].op_type in through:
        found = makers.get(found[1].input[0])
    return None if found is None or found[1].op_type not in HEADS else found[0]


def call_of(model: Model, node: Any, position: int, values: dict[str, Value]) -> Call:
    import onnx

    where = f"{model.path.name}: node {node.name or f'number {position}'} ({node.op_type})"
    if node.domain not in ("", "ai.onnx"):
        raise Unsupported(f"{where}: operator domain {node.domain}; only standard ONNX operators are read")
    if quantised(node.op_type):
        raise Unsupported(f"{where}: quantised operators are not supported; export the float model")
    unknown = [name for name in node.input if name and name not in values]
    if unknown:
        raise BadInput(f"{where}: reads {unknown[0]}, which nothing before it writes")
    return Call(
        operator=node.op_type,
        where=where,
        attributes={a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} | texts(node),
        values=tuple(values[name] if name else None for name in node.input),
        outputs=outputs_of(node),
        opset=model.opset,
    )


def outputs_of(node: Any) -> int:
    """How many outputs the node has: a Split also counts those without a name."""
    named = max((place for place, name in enumerate(node.output, 1) if name), default=0)
    return len(node.output) if node.op_type == "Split" else named


def texts(node: Any) -> dict[str, str]:
    """String attributes as text."""
    import onnx

    return {a.name: a.s.decode() for a in node.attribute if a.type == onnx.AttributeProto.STRING}


def quantised(operator: str) -> bool:
    return "QuantizeLinear" in operator or operator.startswith("QLinear") or operator.endswith("Integer")


def translate(builder: Builder, call: Call) -> list[Value]:
    """The outputs of one ONNX node; whatever is wrong with it is said with its name."""
    try:
        return meaning(builder, call)
    except (BadInput, Unsupported) as error:
        if str(error).startswith(call.where):
            raise
        raise type(error)(f"{call.where}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BadInput(f"{call.where}: its inputs and attributes do not fit it ({reason[:200]})") from None


def meaning(builder: Builder, call: Call) -> list[Value]:
    operator = call.operator
    if operator in RANDOM:
        raise Unsupported(f"{call.where}: a random operator; a classifier to be verified gives one answer")
    builder.types.update(attribute_types(call))
    if operator in ("Shape", "Size"):
        builder.foreign += [f"{call.where}: Size"] * (operator == "Size")
        shape = call.value(0).shape
        part = slice(call.attributes.get("start", 0), call.attributes.get("end", len(shape)))
        return [Known(np.array(shape[part] if operator == "Shape" else math.prod(shape), dtype=np.int64))]
    if operator in SIZES and all(value is None or isinstance(value, Known) for value in call.values):
        results, rounded = performed(call, [value.array if isinstance(value, Known) else None for value in call.values])
        if rounded:
            builder.inexact.append(f"{call.where}: rounded arithmetic on constants")
        judge(builder, call, results)
        for result in results:
            if is_floating(result) and not (np.isfinite(result) | np.isneginf(result)).all():
                raise Unsupported(f"{call.where}: makes NaN, or overflows, of constants")
        return [Known(array) for array in results]
    tokens = sum(isinstance(value, Tokens) for value in call.values)
    if tokens == 1 and operator in COMPUTE_TOKENS and not any(isinstance(value, Wire) for value in call.values):
        return [Known(settled(builder, call))]
    if tokens and operator not in READ_TOKENS:
        raise Unsupported(f"{call.where}: {SELECT}")
    if builder.head is not None and builder.number == builder.head:
        wire = call.wire(0)
        axis = call.axis(call.attributes.get("axis", -1), len(wire.shape))
        if operator in ("Softmax", "LogSoftmax") and axis != len(wire.shape) - 1:
            raise Unsupported(f"{call.where}: over axis {axis}; only over the classes, the last axis")
        return [wire]
    if is_masked(call):
        return masked(builder, call)
    if operator not in OPERATORS:
        hint = HINTS.get(operator, f"supported: {', '.join(OPERATORS)}")
        raise Unsupported(f"{call.where}: operator {operator} is not supported; {hint}")
    return OPERATORS[operator](builder, call)


def judge(builder: Builder, call: Call, results: Sequence[Array]) -> None:
    """Note what arithmetic on constants bars."""
    arrays = [value.array if isinstance(value, Known) else None for value in call.values]
    if is_foreign(call.operator, call.attributes, arrays):
        builder.foreign.append(f"{call.where}: {call.operator} on such constants")
        return
    axes = call.attributes.get("axes") or (arrays[1] is not None and arrays[1].size if len(arrays) > 1 else None)
    sizes = None
    if call.operator == "ReduceSum" and (axes or not call.attributes.get("noop_with_empty_axes", 0)):
        ((sizes,), _) = performed(call, [np.abs(np.asarray(arrays[0], dtype=np.float64)), *arrays[1:]])
    if is_real_only(call.operator, arrays, results, sizes):
        builder.real_only.append(f"{call.where}: numbers that are computed from numbers")


def attribute_types(call: Call) -> list[str]:
    """The floating types of its attributes that are tensors, or numbers for constants."""
    import onnx

    tensors = [value for value in call.attributes.values() if isinstance(value, onnx.TensorProto)]
    names = [onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).name for tensor in tensors]
    names += ["float32" for name in call.attributes if name in ("value_float", "value_floats")]
    return [name for name in names if name in FLOATS]


def settled(builder: Builder, call: Call) -> Array:
    """What comes of tokens and constants, when it is the same for every choice."""
    if builder.choices is None:
        raise Unsupported(f"{call.where}: computes with tokens: what the network is depends on the choices of a text")
    results = [performed(call, arrays)[0][0] for arrays in replaced(call, builder.choices)]
    for result in results:
        if not np.array_equal(result, results[0]):
            raise Unsupported(
                f"{call.where}: computes with tokens, and the choices of a position differ in what comes out: "
                "no swap may lead to a token that a mask tells apart, nor away from it"
            )
    builder.settled.append((call, results[0]))
    return results[0]


def come_to_the_same(known: Sequence[tuple[Call, Array]], choices: Sequence[Sequence[int]]) -> bool:
    """Whether all that was made of tokens is what it was, for every one of these choices."""
    try:
        return all(
            np.array_equal(performed(call, arrays)[0][0], result)
            for call, result in known
            for arrays in replaced(call, choices)
        )
    except (ArithmeticError, AttributeError, LookupError, MemoryError, NotImplementedError, TypeError, ValueError):
        return False  # the network is read, and it is said what is wrong


def replaced(call: Call, choices: Sequence[Sequence[int]]) -> Iterator[list[Array | None]]:
    """The inputs with every position's first choice for its token, with every second one, and so on."""
    for turn in range(max(map(len, choices))):
        tokens = np.array([options[turn % len(options)] for options in choices], dtype=np.int64)
        yield [array_of(value, tokens) for value in call.values]


def array_of(value: Value | None, tokens: Array) -> Array | None:
    match value:
        case Tokens():
            return tokens[value.positions].astype(value.dtype)
        case Known():
            return value.array
        case _:
            return None


def performed(call: Call, arrays: Sequence[Array | None]) -> tuple[list[Array], bool]:
    return perform(call.operator, call.where, call.attributes, arrays, call.outputs, call.opset)


def moved(call: Call, arrays: Sequence[Array | None]) -> list[Array]:
    """The operator performed on whole numbers, which are never rounded."""
    return performed(call, arrays)[0]


def finish(model: Model, builder: Builder, value: Value | None, head: Head, length: int) -> Network:
    """Check the logits and drop the nodes that nothing reads."""
    if not isinstance(value, Wire):
        raise BadInput(f"{model.named}: the output {model.output} does not depend on embedded tokens")
    if len(value.shape) != 2 or value.shape[0] != 1:
        raise BadInput(
            f"{model.named}: output {model.output} has shape {list(value.shape)} for one text; "
            "a classifier answers [batch, classes]"
        )
    if value.shape[1] < 2:
        raise BadInput(
            f"{model.named}: output {model.output} has one class; argmax needs two logits or more "
            "(a single logit z becomes two by Concat with the constant 0)"
        )
    needed: set[int] = set()
    waiting = [value.node]
    while waiting:
        index = waiting.pop()
        if index not in needed:
            needed.add(index)
            waiting.extend(builder.nodes[index].inputs)
    order = sorted(needed)
    renamed = {old: new for new, old in enumerate(order)}
    nodes: tuple[Node, ...] = tuple(
        replace(builder.nodes[old], inputs=tuple(renamed[i] for i in builder.nodes[old].inputs)) for old in order
    )
    tables = [node.layer.table for node in nodes if isinstance(node.layer, Embedding)]
    if not tables:
        raise BadInput(f"{model.named}: the output {model.output} does not depend on embedded tokens")
    return Network(
        nodes=nodes,
        length=length,
        vocabulary_size=min(len(table) for table in tables),
        head=head,
        unit=max(UNITS[builder.coarsest], UNITS[value.dtype]),
        inexact=tuple(dict.fromkeys(builder.inexact)),
        choices=tuple(map(tuple, builder.choices)) if builder.settled and builder.choices is not None else None,
        account=builder.account(),
    )
