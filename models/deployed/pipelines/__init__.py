"""scikit-learn pipelines from texts to classes: their files, what they answer, and how they are read."""
