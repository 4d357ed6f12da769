"""What is certain, and at which confidence, about classifiers that vote over random texts."""
