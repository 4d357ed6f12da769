"""Smooth layers: their functions, and the ONNX operators that are made of them."""
