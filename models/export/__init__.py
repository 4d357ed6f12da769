"""Models of other frameworks as ONNX files: one module each, compared with the model that it came from."""
