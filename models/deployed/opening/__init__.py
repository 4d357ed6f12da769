"""What an ONNX file is, reads and answers, and what it may be given together: found out when it is opened."""
