"""ONNX files read as networks, operator by operator, and written."""
