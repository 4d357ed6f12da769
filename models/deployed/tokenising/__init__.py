"""From whole sentences to the rows of token ids that a model reads, as it is deployed."""
