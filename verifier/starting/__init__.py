"""How a task begins: a model and data looked at, what they say tried out, and a task file written."""
