"""The elementary functions of the installed onnxruntime, measured: over every float32 input, or a sample of them."""
