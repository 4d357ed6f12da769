"""How far swaps move what the windows of a convolution give: intervals, and moves that add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .network_shape import Box, Changes, Moved

if TYPE_CHECKING:
    import torch


def window_box(weight: torch.Tensor, bias: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> Box:
    """Centre and radius through the convolution; ReLU and maximum rise with what they read."""
    import torch
    from torch.nn import functional

    centre, radius = ((low + high) / 2).transpose(1, 2), ((high - low) / 2).transpose(1, 2)
    middle = functional.conv1d(centre, weight, bias)
    reach = functional.conv1d(radius, weight.abs())
    return torch.relu(middle - reach).amax(dim=2), torch.relu(middle + reach).amax(dim=2)


def moves_of_windows(weight: torch.Tensor, bias: torch.Tensor, vectors: torch.Tensor, changes: Changes) -> Box:
    """[batch, places, swaps, filters]: with d_t the move of window t by one swap, and t* the window that wins before
    any: a feature rises by at most max(0, max over t of d_t), and sinks by at most max(0, -d_t*). Both add up, for ReLU
    and maximum move no further than what they read."""
    import torch
    from torch.nn import functional

    filters, _, width = weight.shape
    windows = functional.conv1d(vectors.transpose(1, 2), weight, bias)
    winner = windows.argmax(dim=2)
    low = high = changes.vectors.new_zeros(*changes.vectors.shape[:-1], filters)
    for offset in range(width):
        window = (changes.places - offset)[:, :, None, None]
        inside = (window >= 0) & (window < windows.shape[2])
        move = changes.vectors @ weight[:, :, offset].T * inside
        high = torch.maximum(high, move)
        low = torch.where(window == winner[:, None, None, :], move.clamp(max=0.0), low)
    return low, high


def added_up(moves: Box) -> Moved:
    """Of features that each swap moves by no less than `low` and no more than `high`, whatever else is swapped."""
    low, high = moves

    def through(matrix: torch.Tensor) -> Box:
        rows = (matrix if matrix.dim() == 2 else matrix.unsqueeze(1)).transpose(-1, -2)
        up, down = rows.clamp(min=0.0), rows.clamp(max=0.0)
        return low @ up + high @ down, high @ up + low @ down

    return through
