"""Static embeddings: a vector for each token, their mean, and a small head."""
