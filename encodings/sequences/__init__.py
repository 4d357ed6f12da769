"""The sentences of a region through recurrent layers: whole steps at once, in numbers and in ends."""
