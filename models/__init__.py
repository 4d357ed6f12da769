"""What becomes an ONNX file, and how texts become its input: vocabularies, data readers, training, export."""
