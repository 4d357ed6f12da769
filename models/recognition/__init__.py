"""What can be told of a model and of data by looking at them: kinds, inputs, vocabularies, columns, labels, scores."""
