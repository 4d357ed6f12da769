"""A verifier of VNN-LIB queries: boxes of numbers as inputs, linear facts about the outputs of a ReLU network."""
