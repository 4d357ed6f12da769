"""The architectures that a recipe can name: adding one is a file beside this one and a line in this table."""

from __future__ import annotations

from .convolutional_network import Convolution
from .flat_network import Flat
from .folded_network import Folded
from .kim_network import Kim
from .mean_network import Mean
from .network_shape import Body
from .recurrent_network import BiGru, BiLstm, Gru, Lstm
from .sentence_encoder import MiniLm
from .static_network import Static
from .transformer_network import Transformer

ARCHITECTURES: dict[str, type[Body]] = {
    "mmws": Flat,
    "mean": Mean,
    "cnn": Convolution,
    "kim": Kim,
    "msr-cnn": Folded,
    "static": Static,
    "lstm": Lstm,
    "bilstm": BiLstm,
    "gru": Gru,
    "bigru": BiGru,
    "transformer": Transformer,
    "minilm": MiniLm,
}


def name_of(body: Body) -> str:
    """What a recipe calls this architecture."""
    return next(name for name, kind in ARCHITECTURES.items() if type(body) is kind)
